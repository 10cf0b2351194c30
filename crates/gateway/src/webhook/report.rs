//! A Trigger's `lastTriggeredTime`, `lastResult` and `lastError`, merge-patched at most once per five seconds: an event costs
//! its FlowRun's writes and nothing else. A result that differs from the one reported last is reported at once, though not
//! twice within a second: a sender that alternates good and bad requests must not cost a write each.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use kubezap_api::trigger::Trigger;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SAME: Duration = Duration::from_secs(5);
const CHANGED: Duration = Duration::from_secs(1);
const PATCH_DEADLINE: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 8;
/// The most characters of `lastError`.
const MOST: usize = 1024;

/// What became of a request that a Trigger's status tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A FlowRun is stored.
    Succeeded,
    /// It cannot be stored; why.
    Failed(String),
    /// The sender failed the check.
    AuthFailed,
    /// Over a limit.
    RateLimited,
}

impl Outcome {
    fn result(&self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed(_) => "Failed",
            Self::AuthFailed => "AuthFailed",
            Self::RateLimited => "RateLimited",
        }
    }

    /// Why the check failed is not for the status: it stands in the access log and a counter only.
    fn error(&self) -> Option<String> {
        match self {
            Self::Succeeded | Self::RateLimited => None,
            Self::Failed(why) => Some(why.chars().take(MOST).collect()),
            Self::AuthFailed => {
                Some("a request failed authentication; the access log says why".to_owned())
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: String,
    trigger: String,
}

#[derive(Default)]
struct Entry {
    /// Not written yet. The time is that of the last event, which a failed check is not.
    pending: Option<(Outcome, Option<Timestamp>)>,
    written: Option<(&'static str, Instant)>,
}

impl Entry {
    fn due(&self) -> Option<Instant> {
        let (outcome, _) = self.pending.as_ref()?;
        Some(match self.written {
            None => Instant::now(),
            Some((result, at)) if result == outcome.result() => at + SAME,
            Some((_, at)) => at + CHANGED,
        })
    }
}

/// Collects outcomes; [`Reporter::run`] writes them.
pub(crate) struct Reporter {
    client: Client,
    entries: Mutex<BTreeMap<Key, Entry>>,
    changed: Notify,
}

impl Reporter {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            entries: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Takes an outcome in; never waits.
    pub(crate) fn record(&self, namespace: &str, trigger: &str, outcome: Outcome, at: Timestamp) {
        let fired = match outcome {
            Outcome::Succeeded | Outcome::Failed(_) => Some(at),
            Outcome::AuthFailed | Outcome::RateLimited => None,
        };
        let key = Key {
            namespace: namespace.to_owned(),
            trigger: trigger.to_owned(),
        };
        let mut entries = self.lock();
        let entry = entries.entry(key).or_default();
        let before = entry.pending.take().and_then(|(_, time)| time);
        entry.pending = Some((outcome, fired.or(before)));
        drop(entries);
        self.changed.notify_one();
    }

    /// Writes what is due until `shutdown`, then what is left.
    pub(crate) async fn run(&self, shutdown: CancellationToken) {
        loop {
            let next = self.lock().values().filter_map(Entry::due).min();
            let timer = async {
                match next {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = timer => self.write(|due| due <= Instant::now()).await,
                () = self.changed.notified() => {}
                () = shutdown.cancelled() => break,
            }
        }
        self.write(|_| true).await;
    }

    async fn write(&self, wanted: impl Fn(Instant) -> bool) {
        let mut patches = Vec::new();
        {
            let mut entries = self.lock();
            // An entry that has nothing to say and could say anything at once is not needed.
            entries.retain(|_, entry| {
                entry.pending.is_some()
                    || entry
                        .written
                        .is_some_and(|(_, at)| at.elapsed() < 12 * SAME)
            });
            for (key, entry) in entries.iter_mut() {
                if entry.due().is_some_and(&wanted)
                    && let Some((outcome, time)) = entry.pending.take()
                {
                    entry.written = Some((outcome.result(), Instant::now()));
                    patches.push((key.clone(), outcome, time));
                }
            }
        }
        futures::stream::iter(patches)
            .for_each_concurrent(AT_ONCE, |(key, outcome, time)| {
                self.patch(key, outcome, time)
            })
            .await;
    }

    async fn patch(&self, key: Key, outcome: Outcome, time: Option<Timestamp>) {
        let mut status = json!({
            "lastResult": outcome.result(),
            "lastError": outcome.error(),
        });
        if let Some(time) = time {
            // Whole seconds, as metav1.Time holds them.
            status["lastTriggeredTime"] = json!(whole_seconds(time).to_string());
        }
        let triggers: Api<Trigger> = Api::namespaced(self.client.clone(), &key.namespace);
        let body = Patch::Merge(json!({ "status": status }));
        let parameters = PatchParams::default();
        let patch = triggers.patch_status(&key.trigger, &parameters, &body);
        match tokio::time::timeout(PATCH_DEADLINE, patch).await {
            Ok(Ok(_)) => {}
            // Deleted meanwhile.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {}
            // The next outcome tells all that this one would have told.
            Ok(Err(error)) => {
                tracing::warn!(namespace = key.namespace, trigger = key.trigger, %error, "cannot write a Trigger's status");
            }
            Err(_) => {
                tracing::warn!(
                    namespace = key.namespace,
                    trigger = key.trigger,
                    "cannot write a Trigger's status: no answer"
                );
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
