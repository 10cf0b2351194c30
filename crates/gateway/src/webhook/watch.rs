//! Follows the Triggers of the gateway's namespaces and keeps the route table current.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use http::Method;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use kubezap_api::lower;
use kubezap_api::trigger::Trigger;
use kubezap_chassis::admin::{Gate, Readiness};
use kubezap_chassis::namespaces::Namespaces;
use tokio_util::sync::CancellationToken;

use super::route::{Route, Routes, Table};

/// Watches until `shutdown`, one watch for each namespace: one that fails does not stop the others.
pub(crate) async fn follow(
    client: Client,
    namespaces: Namespaces,
    routes: Routes,
    readiness: Readiness,
    shutdown: CancellationToken,
) {
    let known = Known::new(routes);
    let watches: Vec<_> = match namespaces {
        Namespaces::All => vec![("all namespaces".to_owned(), Api::<Trigger>::all(client))],
        Namespaces::Only(names) => names
            .into_iter()
            .map(|name| {
                let api = Api::namespaced(client.clone(), &name);
                (name, api)
            })
            .collect(),
    };
    let all = watches.into_iter().map(|(scope, api)| {
        let gate = readiness.gate(format!("triggers of {scope}"), "waiting for the first list");
        one(scope, api, &known, gate)
    });
    tokio::select! {
        _ = futures::future::join_all(all) => {}
        () = shutdown.cancelled() => {}
    }
}

async fn one(scope: String, api: Api<Trigger>, known: &Known, gate: Gate) {
    let mut listed = false;
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let done = matches!(event, Event::InitDone);
                known.take(&scope, event);
                if done {
                    listed = true;
                    gate.ready();
                }
            }
            Err(error) => {
                // After the first list the table stands and requests are served; the watch catches up by itself.
                if !listed {
                    gate.not_ready(error.to_string());
                }
                tracing::warn!(scope, %error, "the watch of Triggers failed; trying again");
            }
        }
    }
}

type Key = (String, String);

/// What is known of all Triggers, over all watches.
struct Known {
    routes: Routes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    triggers: BTreeMap<Key, Entry>,
    /// What a list that is under way has shown so far, by scope.
    listing: BTreeMap<String, BTreeSet<Key>>,
}

struct Entry {
    scope: String,
    version: Version,
    route: Option<Arc<Route>>,
}

/// What a route depends on. Status writes, our own among them, change none of it.
#[derive(PartialEq, Eq)]
struct Version {
    uid: Option<String>,
    generation: Option<i64>,
    deleting: bool,
    annotations: BTreeMap<String, String>,
}

impl Known {
    fn new(routes: Routes) -> Self {
        Self {
            routes,
            state: Mutex::default(),
        }
    }

    fn take(&self, scope: &str, event: Event<Trigger>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        // While the first list is under way the table is not shown: half a list could give a path to the wrong Trigger.
        let changed = match event {
            Event::Init => {
                state.listing.insert(scope.to_owned(), BTreeSet::new());
                false
            }
            Event::InitApply(trigger) => {
                if let Some(seen) = state.listing.get_mut(scope) {
                    seen.insert(key(&trigger));
                }
                state.apply(scope, trigger);
                false
            }
            Event::InitDone => {
                let seen = state.listing.remove(scope).unwrap_or_default();
                state
                    .triggers
                    .retain(|key, entry| entry.scope != scope || seen.contains(key));
                true
            }
            Event::Apply(trigger) => state.apply(scope, trigger),
            Event::Delete(trigger) => state.triggers.remove(&key(&trigger)).is_some(),
        };
        if changed {
            let routes = state
                .triggers
                .values()
                .filter_map(|entry| entry.route.clone());
            let (table, conflicts) = Table::new(routes);
            for conflict in conflicts {
                tracing::warn!(
                    namespace = conflict.namespace,
                    trigger = conflict.trigger,
                    path = conflict.path,
                    kept_by = conflict.kept_by,
                    "an older Trigger keeps the path; this one is not served"
                );
            }
            self.routes.replace(table);
        }
    }
}

impl State {
    fn apply(&mut self, scope: &str, trigger: Trigger) -> bool {
        let key = key(&trigger);
        let version = Version {
            uid: trigger.uid(),
            generation: trigger.metadata.generation,
            deleting: trigger.metadata.deletion_timestamp.is_some(),
            annotations: trigger.annotations().clone(),
        };
        if self
            .triggers
            .get(&key)
            .is_some_and(|entry| entry.version == version)
        {
            return false;
        }
        let entry = Entry {
            scope: scope.to_owned(),
            version,
            route: route(trigger),
        };
        self.triggers.insert(key, entry);
        true
    }
}

fn key(trigger: &Trigger) -> Key {
    (trigger.namespace().unwrap_or_default(), trigger.name_any())
}

/// The route of a Trigger, unless it is paused, being deleted, no webhook, or asks for something that is not supported:
/// a Trigger whose limits cannot be kept is not served at all.
fn route(trigger: Trigger) -> Option<Arc<Route>> {
    if !trigger.spec.enabled || trigger.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let lowered = lower::trigger(&trigger);
    let webhook = lowered.webhook?;
    let stopping = lowered.problems.iter().chain(&lowered.not_supported);
    let reasons: Vec<_> = stopping.map(ToString::to_string).collect();
    if !reasons.is_empty() {
        tracing::info!(
            namespace = trigger.namespace(),
            trigger = trigger.name_any(),
            reasons = reasons.join("; "),
            "the Trigger is not served"
        );
        return None;
    }
    let method = Method::from_bytes(webhook.method.as_bytes()).ok()?;
    let created = trigger
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(i64::MAX, |time| time.0.as_second());
    Some(Arc::new(Route {
        namespace: trigger.namespace().unwrap_or_default(),
        method,
        path: webhook.path,
        auth: webhook.auth,
        redact_headers: webhook.redact_headers,
        redact_body: webhook.redact_body,
        engine: lowered.trigger,
        object: Arc::new(trigger),
        created,
    }))
}
