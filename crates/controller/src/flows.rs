//! Which Flow a run gets: what the reconcilers have stored, by name; and pinned revisions, by theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{Api, Client};
use kubezap_api::flow::FlowSpec;
use kubezap_api::lower::{self, Lowered};
use kubezap_api::trigger::Trigger;
use kubezap_engine::driver::FlowAnswer;
use kubezap_engine::flow::Flow;
use kubezap_engine::run::{RunSpec, reason};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::reconcile::Place;
use crate::revision::Holder;

/// How long a run waits for a Flow that has just been written; after that the driver asks again.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a run of a Flow would get now.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// Stored, and able to run.
    Ready { revision: String, flow: Arc<Flow> },
    /// Not able to run, and why.
    Refused { message: String },
}

/// The edition of an object: a uid and a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edition {
    uid: String,
    generation: i64,
}

impl Edition {
    pub(crate) fn of(object: &impl kube::Resource) -> Self {
        Self {
            uid: object.meta().uid.clone().unwrap_or_default(),
            generation: object.meta().generation.unwrap_or_default(),
        }
    }
}

/// Flows and actions that runs may get, kept by the reconcilers; cheap to clone, all clones are one.
#[derive(Clone)]
pub(crate) struct Flows {
    client: Client,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// Something in `known` has moved.
    moved: Notify,
}

#[derive(Default)]
struct Known {
    holders: HashMap<(Holder, Place), Entry>,
    pinned: HashMap<(String, String), Weak<Flow>>,
}

struct Entry {
    /// What the watch showed last.
    seen: Edition,
    /// What was stored last.
    standing: Option<(Edition, Standing)>,
}

impl Flows {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            shared: Arc::default(),
        }
    }

    /// Notes what the watch shows: from now on runs wait until this edition is [`Flows::settle`]d.
    pub(crate) fn see(&self, holder: Holder, place: &Place, edition: Option<Edition>) {
        let mut known = self.lock();
        let key = (holder, place.clone());
        match edition {
            None => {
                known.holders.remove(&key);
            }
            Some(seen) => match known.holders.get_mut(&key) {
                Some(entry) => entry.seen = seen,
                None => {
                    let entry = Entry {
                        seen,
                        standing: None,
                    };
                    known.holders.insert(key, entry);
                }
            },
        }
        drop(known);
        self.shared.moved.notify_waiters();
    }

    /// Says what an edition came to, once its revision is stored.
    pub(crate) fn settle(
        &self,
        holder: Holder,
        place: &Place,
        edition: Edition,
        standing: Standing,
    ) {
        let mut known = self.lock();
        if let Standing::Ready { revision, flow } = &standing {
            let key = (place.namespace.clone(), revision.clone());
            known.pinned.retain(|_, flow| flow.strong_count() > 0);
            known.pinned.insert(key, Arc::downgrade(flow));
        }
        if let Some(entry) = known.holders.get_mut(&(holder, place.clone())) {
            entry.standing = Some((edition, standing));
        }
        drop(known);
        self.shared.moved.notify_waiters();
    }

    /// What an edition came to, if that is known.
    pub(crate) fn standing(
        &self,
        holder: Holder,
        place: &Place,
        edition: &Edition,
    ) -> Option<Standing> {
        self.lock()
            .holders
            .get(&(holder, place.clone()))?
            .standing
            .as_ref()
            .filter(|(of, _)| of == edition)
            .map(|(_, standing)| standing.clone())
    }

    /// Finds the Flow for a run: the revision it is pinned to, else the newest stored one.
    pub(crate) async fn find(&self, spec: &RunSpec, pinned: Option<&str>) -> FlowAnswer {
        let (holder, of) = match &spec.trigger {
            Some(trigger) if spec.flow.is_empty() => (Holder::Trigger, trigger.name.as_str()),
            _ => (Holder::Flow, spec.flow.as_str()),
        };
        match pinned {
            Some(revision) => self.revision(holder, &spec.namespace, of, revision).await,
            None => self.newest(holder, &Place::new(&spec.namespace, of)).await,
        }
    }

    async fn newest(&self, holder: Holder, place: &Place) -> FlowAnswer {
        let waited = tokio::time::timeout(PATIENCE, async {
            let mut asked = false;
            loop {
                // Registered before the look, so that nothing is missed in between.
                let moved = self.shared.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                match self.look(holder, place) {
                    Look::Settled(standing) => return answer(standing),
                    Look::Unknown if !asked => {
                        // The watch may lag behind whoever made the run.
                        asked = true;
                        match self.exists(holder, place).await {
                            Ok(true) => {}
                            Ok(false) => return not_found(holder, place),
                            Err(error) => {
                                tracing::warn!(namespace = place.namespace, name = place.name, %error, "cannot look for a Flow");
                                return FlowAnswer::Unavailable;
                            }
                        }
                        continue;
                    }
                    Look::Unknown | Look::Unsettled => {}
                }
                moved.await;
            }
        });
        waited.await.unwrap_or(FlowAnswer::Unavailable)
    }

    fn look(&self, holder: Holder, place: &Place) -> Look {
        match self.lock().holders.get(&(holder, place.clone())) {
            None => Look::Unknown,
            Some(entry) => match &entry.standing {
                Some((of, standing)) if *of == entry.seen => Look::Settled(standing.clone()),
                _ => Look::Unsettled,
            },
        }
    }

    async fn exists(&self, holder: Holder, place: &Place) -> kube::Result<bool> {
        let (client, namespace) = (self.client.clone(), place.namespace.as_str());
        Ok(match holder {
            Holder::Flow => {
                let api: Api<kubezap_api::Flow> = Api::namespaced(client, namespace);
                api.get_metadata_opt(&place.name).await?.is_some()
            }
            Holder::Trigger => {
                let api: Api<Trigger> = Api::namespaced(client, namespace);
                api.get_metadata_opt(&place.name).await?.is_some()
            }
        })
    }

    async fn revision(&self, holder: Holder, namespace: &str, of: &str, name: &str) -> FlowAnswer {
        let key = (namespace.to_owned(), name.to_owned());
        let found = |flow| FlowAnswer::Found {
            revision: name.to_owned(),
            flow,
        };
        if let Some(flow) = self.lock().pinned.get(&key).and_then(Weak::upgrade) {
            return found(flow);
        }
        let api: Api<ControllerRevision> = Api::namespaced(self.client.clone(), namespace);
        let stored = match api.get_opt(name).await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(namespace, revision = name, %error, "cannot read a revision");
                return FlowAnswer::Unavailable;
            }
        };
        let Some(data) = stored.and_then(|stored| stored.data) else {
            return FlowAnswer::Refused {
                reason: reason::FLOW_NOT_FOUND,
                message: format!(
                    "the ControllerRevision {name} that the run is pinned to does not exist"
                ),
            };
        };
        match lower_data(holder, of, data.0) {
            Ok(flow) => {
                self.lock().pinned.insert(key, Arc::downgrade(&flow));
                found(flow)
            }
            Err(why) => FlowAnswer::Refused {
                reason: reason::FLOW_NOT_READY,
                message: format!(
                    "the ControllerRevision {name} that the run is pinned to cannot run: {why}"
                ),
            },
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.shared
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

enum Look {
    Unknown,
    Unsettled,
    Settled(Standing),
}

fn answer(standing: Standing) -> FlowAnswer {
    match standing {
        Standing::Ready { revision, flow } => FlowAnswer::Found { revision, flow },
        Standing::Refused { message } => FlowAnswer::Refused {
            reason: reason::FLOW_NOT_READY,
            message,
        },
    }
}

fn not_found(holder: Holder, place: &Place) -> FlowAnswer {
    let Place { namespace, name } = place;
    let message = match holder {
        Holder::Flow => format!("the Flow {name} does not exist in the namespace {namespace}"),
        Holder::Trigger => {
            format!(
                "the Trigger {name}, whose action was to run, does not exist in the namespace {namespace}"
            )
        }
    };
    FlowAnswer::Refused {
        reason: reason::FLOW_NOT_FOUND,
        message,
    }
}

/// Lowers what a revision holds.
fn lower_data(holder: Holder, of: &str, data: Value) -> Result<Arc<Flow>, String> {
    let lowered = match holder {
        Holder::Flow => {
            let spec: FlowSpec = serde_json::from_value(data).map_err(|error| error.to_string())?;
            lower::flow(of, &spec)
        }
        Holder::Trigger => {
            let trigger: Trigger = serde_json::from_value(json!({
                "apiVersion": "automation.kubezap.io/v1alpha1",
                "kind": "Trigger",
                "metadata": {"name": of},
                "spec": {"type": "webhook", "action": data},
            }))
            .map_err(|error| error.to_string())?;
            lower::action(&trigger)
        }
    };
    runnable(&lowered)
}

/// The Flow, or why it cannot run, as its condition says it.
pub(crate) fn runnable(lowered: &Lowered) -> Result<Arc<Flow>, String> {
    match &lowered.flow {
        Ok(flow) if lowered.not_supported.is_empty() => Ok(Arc::clone(flow)),
        _ => {
            let verdict = lowered.ready();
            Err(format!("{}: {}", verdict.reason, verdict.message))
        }
    }
}
