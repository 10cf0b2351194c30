//! The FlowRuns that are not over.

use futures::stream::{BoxStream, SelectAll};
use kube::ResourceExt as _;
use kube::runtime::watcher;
use kubezap_api::flow_run::FlowRunPhase;
use kubezap_api::metadata::ANNOTATION_TRACEPARENT;
use kubezap_api::{FlowRun, lower};
use kubezap_engine::driver::RunKey;

use super::record::Facts;
use crate::watch::{Change, ObjectKey, Scope};

/// What the server leaves out, where it can select by phase (Kubernetes 1.32 and later).
const NOT_OVER: &str = "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Cancelled";

/// Watches the FlowRuns that are not over. An older server shows the others too; [`is_over`] tells them.
pub(super) fn changes(scope: &Scope) -> SelectAll<BoxStream<'static, Change<FlowRun>>> {
    let everything = watcher::Config::default();
    scope.changes(&everything.clone().fields(NOT_OVER), Some(&everything))
}

/// Whether a run has left the set that is watched.
pub(super) fn is_over(run: &FlowRun) -> bool {
    run.status
        .as_ref()
        .and_then(|status| status.phase)
        .is_some_and(|phase| match phase {
            FlowRunPhase::Succeeded | FlowRunPhase::Failed | FlowRunPhase::Cancelled => true,
            FlowRunPhase::Pending | FlowRunPhase::Running => false,
        })
}

pub(super) fn key(key: ObjectKey) -> RunKey {
    let ObjectKey {
        namespace,
        name,
        uid,
    } = key;
    RunKey {
        namespace,
        name,
        uid,
    }
}

/// What is remembered of an object: what its statuses and calls need beside the driver's state.
pub(super) fn facts(run: &FlowRun) -> Facts {
    Facts {
        generation: run.metadata.generation,
        created: run
            .creation_timestamp()
            .map_or(jiff::Timestamp::UNIX_EPOCH, |time| time.0),
        traceparent: run.annotations().get(ANNOTATION_TRACEPARENT).cloned(),
        degraded: lower::flow_run_degraded(&run.spec),
    }
}
