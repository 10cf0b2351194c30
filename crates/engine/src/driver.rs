//! How one owner keeps many runs on a conditional store: slots, the write pipeline, conflicts, timers, and the dispatch
//! queue with its fairness. Pure: adapters carry inputs in and outputs out and decide nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::effect::{Call, References};
use crate::flow::{Flow, StepIndex};
use crate::observation::CallOutcome;
use crate::run::{Run, RunSpec};

/// A share of the runs: `hash(namespace/trigger, or flow) mod 64`; the label `kubezap.io/slot`.
pub type Slot = u8;

/// How many slots there are.
pub const SLOTS: u8 = 64;

/// Names a run. The uid tells a run from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// Namespace of the FlowRun.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A FlowRun as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunObject {
    /// Its immutable part.
    pub spec: Arc<RunSpec>,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// The label `kubezap.io/slot`; `None` for runs that plugins or people made.
    pub slot: Option<Slot>,
    /// The annotation `kubezap.io/cancel=true`.
    pub cancel: bool,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `.status`, `None` while nothing was written.
    pub status: Option<Run>,
}

/// What an adapter brings in.
#[derive(Debug)]
pub enum Input {
    /// The slots this owner holds from now on. Runs of lost slots are dropped and their calls aborted.
    Slots(BTreeSet<Slot>),
    /// A list or watch showed a run. For a run that is already held only its metadata counts.
    Seen(RunObject),
    /// A watch showed that a run is gone, or has left the set of non-terminal runs.
    Gone(RunKey),
    /// Answer to [`Output::LoadFlow`].
    FlowLoaded(RunKey, FlowAnswer),
    /// Answer to [`Output::Write`], or to [`Output::Label`].
    Written(RunKey, WriteAnswer),
    /// Answer to [`Output::Read`].
    Read(RunKey, ReadAnswer),
    /// A call ended; answer to [`Output::Call`].
    CallFinished(RunKey, String, CallOutcome),
    /// Answer to [`Output::ReadReferences`].
    ReferencesRead(
        RunKey,
        StepIndex,
        Result<std::collections::BTreeMap<crate::effect::KeyRef, String>, String>,
    ),
    /// The instant of [`Driver::wake`] has come.
    Tick,
}

/// What became of a Flow that a run asked for.
#[derive(Clone, Debug)]
pub enum FlowAnswer {
    /// The revision and what it holds.
    Found {
        /// Name of the ControllerRevision.
        revision: String,
        /// What it holds.
        flow: Arc<Flow>,
    },
    /// It does not exist, or is not Ready: the run fails with this reason and message.
    Refused {
        /// [`crate::run::reason::FLOW_NOT_FOUND`] or [`crate::run::reason::FLOW_NOT_READY`].
        reason: &'static str,
        /// For people.
        message: String,
    },
    /// Could not be asked; asked again later.
    Unavailable,
}

/// What became of a conditional write.
#[derive(Clone, Debug)]
pub enum WriteAnswer {
    /// Stored.
    Stored {
        /// The new `metadata.resourceVersion`.
        resource_version: String,
    },
    /// 409: the resourceVersion is not the newest.
    Conflict,
    /// 404, or the uid differs: the run was deleted.
    Gone,
    /// 413 or 422: refused for good.
    Refused {
        /// The server's message.
        message: String,
    },
    /// Anything else: no answer, 429, 5xx. It may have been stored.
    Unavailable,
}

/// What became of a read.
#[derive(Clone, Debug)]
pub enum ReadAnswer {
    /// As it is now.
    Found(RunObject),
    /// 404.
    Gone,
    /// No answer; read again later.
    Unavailable,
}

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
    /// A run's terminal state is stored, for metrics, counters and collection.
    Finished {
        /// Which run.
        key: RunKey,
        /// As stored.
        run: Box<Run>,
    },
    /// A run was given up without a write: another owner has it, or even the minimal status was refused.
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

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Unique to this process start, `[a-z0-9]`, at most 16 characters.
    pub incarnation: String,
    /// Calls in flight per namespace.
    pub calls_per_namespace: usize,
    /// Calls in flight in all.
    pub calls_total: usize,
    /// Runs taken up per second after a restart.
    pub resume_per_second: u32,
    /// How long an outcome that nothing waits for may stay unwritten.
    pub coalesce: Duration,
}

/// Keeps the runs of the slots it holds.
#[derive(Debug)]
pub struct Driver {}

impl Driver {
    /// Starts with no slots.
    pub fn new(_config: Config) -> Self {
        unimplemented!()
    }

    /// Takes one input and says what to do.
    pub fn handle(&mut self, _input: Input, _now: Timestamp) -> Vec<Output> {
        unimplemented!()
    }

    /// When [`Input::Tick`] is due.
    pub fn wake(&self) -> Option<Timestamp> {
        unimplemented!()
    }
}
