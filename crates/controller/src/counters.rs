//! What a Flow's status says of its runs: a patch at most every five seconds, whatever runs.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use kubezap_api::Flow;
use kubezap_engine::run::RunPhase;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::reconcile::Place;

/// The least time between two patches of one Flow.
const EVERY: Duration = Duration::from_secs(5);

/// The most bytes of `lastError`.
const MAX_ERROR: usize = 4096;

/// A run that is over.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// The run's Flow.
    pub(crate) flow: Place,
    pub(crate) phase: RunPhase,
    pub(crate) at: Timestamp,
    pub(crate) message: String,
}

/// What the next patch of a Flow says.
#[derive(Clone, Debug)]
struct Pending {
    count: i64,
    at: Timestamp,
    result: RunPhase,
    error: Option<String>,
}

impl Pending {
    fn of(run: Finished) -> Self {
        Self {
            count: 1,
            at: run.at,
            result: run.phase,
            error: (run.phase == RunPhase::Failed).then_some(run.message),
        }
    }

    /// Takes in another; the later one is what is shown.
    fn merge(&mut self, other: Self) {
        self.count += other.count;
        if other.at >= self.at {
            self.at = other.at;
            self.result = other.result;
            self.error = other.error.or(self.error.take());
        } else if self.error.is_none() {
            self.error = other.error;
        }
    }
}

/// Counts for as long as runs end somewhere.
pub(crate) async fn run(client: Client, mut finished: mpsc::UnboundedReceiver<Finished>) {
    let mut pending: HashMap<Place, Pending> = HashMap::new();
    // When each Flow may be patched again.
    let mut after: HashMap<Place, Instant> = HashMap::new();
    loop {
        let next = pending
            .keys()
            .map(|flow| after.get(flow).copied().unwrap_or_else(Instant::now))
            .min();
        tokio::select! {
            run = finished.recv() => match run {
                Some(run) => {
                    let flow = run.flow.clone();
                    add(&mut pending, flow, Pending::of(run));
                }
                None => return,
            },
            () = due(next) => {
                let now = Instant::now();
                after.retain(|_, at| *at > now);
                let ready: Vec<_> = pending.keys().filter(|flow| !after.contains_key(*flow)).cloned().collect();
                for flow in ready {
                    let Some(counted) = pending.remove(&flow) else { continue };
                    after.insert(flow.clone(), now + EVERY);
                    if let Err(error) = patch(&client, &flow, &counted).await {
                        tracing::debug!(namespace = flow.namespace, flow = flow.name, %error, "not counted yet");
                        add(&mut pending, flow, counted);
                    }
                }
            }
        }
    }
}

fn add(pending: &mut HashMap<Place, Pending>, flow: Place, more: Pending) {
    match pending.get_mut(&flow) {
        Some(counted) => counted.merge(more),
        None => {
            pending.insert(flow, more);
        }
    }
}

async fn due(next: Option<Instant>) {
    match next {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Adds to what the Flow says, conditional on the resourceVersion: a second replica counts too.
async fn patch(client: &Client, place: &Place, counted: &Pending) -> kube::Result<()> {
    let api: Api<Flow> = Api::namespaced(client.clone(), &place.namespace);
    let Some(flow) = api.get_opt(&place.name).await? else {
        return Ok(());
    };
    let before = flow
        .status
        .as_ref()
        .and_then(|status| status.execution_count);
    let mut status = json!({
        "executionCount": before.unwrap_or_default() + counted.count,
        "lastExecutionTime": Time(counted.at),
        "lastResult": counted.result.as_str(),
    });
    if let Some(error) = &counted.error {
        status["lastError"] = cut(error).into();
    }
    let patch = json!({
        "metadata": {"uid": flow.metadata.uid, "resourceVersion": flow.metadata.resource_version},
        "status": status,
    });
    api.patch_status(
        &flow.name_any(),
        &PatchParams::default(),
        &Patch::Merge(patch),
    )
    .await
    .map(drop)
}

fn cut(text: &str) -> &str {
    let mut end = MAX_ERROR.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(second: i64, phase: RunPhase, message: &str) -> Pending {
        Pending::of(Finished {
            flow: Place::new("a", "f"),
            phase,
            at: Timestamp::from_second(second).unwrap(),
            message: message.to_owned(),
        })
    }

    #[test]
    fn the_latest_run_is_shown_and_the_last_failure_stays() {
        let mut counted = finished(10, RunPhase::Failed, "first");
        counted.merge(finished(30, RunPhase::Succeeded, ""));
        counted.merge(finished(20, RunPhase::Failed, "between"));
        assert_eq!(counted.count, 3);
        assert_eq!(counted.result, RunPhase::Succeeded);
        assert_eq!(counted.at, Timestamp::from_second(30).unwrap());
        assert_eq!(counted.error.as_deref(), Some("first"));
    }
}
