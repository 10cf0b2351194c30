//! What an adapter brings to the driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::slot::Slot;
#[cfg(doc)]
use super::{Driver, Output};
use crate::effect::KeyRef;
use crate::flow::{Flow, StepIndex};
use crate::observation::CallOutcome;
use crate::run::{Run, RunSpec};

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
    /// The slots this owner holds from now on. Runs of lost slots are dropped and their calls aborted. The runs of slots
    /// that are new are listed after this, since what was seen of them before was passed over.
    Slots(BTreeSet<Slot>),
    /// A list or watch showed a run. For a run that is already held only its metadata counts. Events may lag and come
    /// again; those of one run come in their order.
    Seen(RunObject),
    /// A watch showed that a run is gone, or has left the set of non-terminal runs.
    Gone(RunKey),
    /// Answer to [`Output::LoadFlow`].
    FlowLoaded(RunKey, FlowAnswer),
    /// Answer to [`Output::Write`], or to [`Output::Label`].
    Written(RunKey, WriteAnswer),
    /// Answer to [`Output::Read`].
    Read(RunKey, ReadAnswer),
    /// A call ended; answer to [`Output::Call`]. One that comes after an abort is ignored.
    CallFinished(RunKey, String, CallOutcome),
    /// Answer to [`Output::ReadReferences`].
    ReferencesRead(RunKey, StepIndex, Result<BTreeMap<KeyRef, String>, String>),
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
