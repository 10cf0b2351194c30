//! What an adapter carries out for the driver.

use std::sync::Arc;

use super::input::RunKey;
use super::slot::Slot;
use crate::effect::{Call, References};
use crate::flow::StepIndex;
use crate::run::{Run, RunSpec};

/// What an adapter carries out.
#[derive(Debug)]
pub enum Output {
    /// Find the Flow for a run: the pinned revision, else the newest stored one.
    LoadFlow {
        /// For which run.
        key: RunKey,
        /// Its Flow or Trigger is named here.
        spec: Arc<RunSpec>,
        /// The revision its status is pinned to.
        pinned: Option<String>,
    },
    /// PUT `/status`, conditional on the resourceVersion.
    Write {
        /// Which run.
        key: RunKey,
        /// The last one known.
        resource_version: String,
        /// The whole status.
        run: Box<Run>,
        /// Why, for the metric `status_writes_total{reason}`.
        reason: WriteReason,
    },
    /// Merge-patch the slot label onto a run that has none, conditional on the resourceVersion.
    Label {
        /// Which run.
        key: RunKey,
        /// The last one known.
        resource_version: String,
        /// The label's value.
        slot: Slot,
    },
    /// GET a run, after a conflict only.
    Read {
        /// Which run.
        key: RunKey,
    },
    /// Read what it names, render, send, report.
    Call {
        /// For which run.
        key: RunKey,
        /// The call.
        call: Box<Call>,
    },
    /// Read ConfigMaps for a step.
    ReadReferences {
        /// For which run.
        key: RunKey,
        /// For which step.
        step: StepIndex,
        /// What.
        references: References,
    },
    /// Close the call's socket; its `CallFinished` is ignored if it still comes.
    Abort {
        /// For which run.
        key: RunKey,
        /// Which call.
        execution_id: String,
    },
    /// A run's terminal state is stored, for metrics, counters and collection. Every run whose Flow was answered ends in
    /// this or in [`Output::Dropped`], once each time it is taken up.
    Finished {
        /// Which run.
        key: RunKey,
        /// As stored.
        run: Box<Run>,
    },
    /// A run was given up without a write: another owner has it, it is deleted, its slot is lost, or even the minimal
    /// status was refused.
    Dropped {
        /// Which run.
        key: RunKey,
        /// Why, for the log.
        why: &'static str,
    },
}

/// Why a status is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteReason {
    /// A call waits for it.
    Gate,
    /// The run ended.
    Terminal,
    /// 250 ms have passed since something nobody waits for.
    Coalesced,
    /// Started more than 250 ms ago and nothing was written yet.
    Running,
    /// A wait or a long backoff.
    Resume,
}
