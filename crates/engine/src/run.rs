//! The state of a run, as stored in `FlowRun.status`, and what identifies it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::event::Event;
use crate::flow::StepName;

/// Phase of a run. The last three are terminal and never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunPhase {
    /// Nothing has started.
    #[default]
    Pending,
    /// At least one step has started.
    Running,
    /// All steps finished and every failure was absorbed.
    Succeeded,
    /// A failure was not absorbed, or the run took too long.
    Failed,
    /// Someone asked for it.
    Cancelled,
}

/// Phase of a step. `Succeeded`, `Failed` and `Skipped` are final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepPhase {
    /// Its dependencies are not finished, or it waits for its turn.
    #[default]
    Pending,
    /// A call is in flight, or the next attempt is due at `resume_after`.
    Running,
    /// A wait step that ends at `resume_after`.
    Waiting,
    /// Done.
    Succeeded,
    /// Gave up.
    Failed,
    /// Did not run, or its failure counts as not having run (`onFailure: Skip`).
    Skipped,
}

impl RunPhase {
    /// Whether nothing follows.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// As `status.phase` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }
}

impl StepPhase {
    /// Whether the step has its outcome.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Skipped)
    }

    /// As `status.steps[].phase` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Waiting => "Waiting",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
        }
    }
}

/// State of one run. Equality is what the conflict rule compares.
///
/// Times are whole microseconds, so that a round trip through the store gives an equal value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Where the run is.
    pub phase: RunPhase,
    /// Why a run that has not started waits (`Queued`), or why it ended; empty otherwise. Stored as the reason of its conditions.
    pub reason: String,
    /// For people.
    pub message: String,
    /// When the first step started.
    pub start_time: Option<Timestamp>,
    /// When it reached a terminal phase.
    pub completion_time: Option<Timestamp>,
    /// The ControllerRevision it is pinned to.
    pub revision: Option<String>,
    /// All steps in the Flow's order; empty before the first write.
    pub steps: Vec<StepState>,
}

/// State of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepState {
    /// Its name.
    pub name: StepName,
    /// Where it is.
    pub phase: StepPhase,
    /// When its first attempt started.
    pub start_time: Option<Timestamp>,
    /// When it reached a final phase.
    pub completion_time: Option<Timestamp>,
    /// Attempts that started.
    pub attempts: u32,
    /// For people; an error's text.
    pub message: String,
    /// A word in CamelCase, see [`reason`]; empty when there is nothing to say.
    pub reason: String,
    /// Results in the order they were declared.
    pub results: Vec<StepResult>,
    /// When a wait ends, or the next attempt starts.
    pub resume_after: Option<Timestamp>,
    /// Identifies the newest attempt's call.
    pub execution_id: Option<String>,
}

/// One named result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepResult {
    /// Its name.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// What a run is made from: its identity and the immutable spec.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// Name of the FlowRun.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Its `creationTimestamp`.
    pub created: Timestamp,
    /// Name of the Flow; empty for a run of a Trigger's `action`.
    pub flow: String,
    /// The Trigger that made it, if one did.
    pub trigger: Option<TriggerRef>,
    /// `spec.params`. Templates when `trigger` is `None`, literals otherwise.
    pub params: BTreeMap<String, String>,
    /// What fired it.
    pub event: Arc<Event>,
}

/// The Trigger a run came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerRef {
    /// Its name.
    pub name: String,
    /// Its type, such as `webhook`.
    pub kind: String,
}

/// What a run may hold.
pub mod limits {
    /// One result, in bytes of its text.
    pub const MAX_RESULT_BYTES: usize = crate::transition::size::MAX_RESULT_BYTES;
    /// All results of a run together, in bytes of their text.
    pub const MAX_RESULTS_BYTES: usize = crate::transition::size::MAX_RESULTS_BYTES;
    /// The status, in bytes of its JSON.
    pub const MAX_STATUS_BYTES: usize = crate::transition::size::MAX_STATUS_BYTES;
}

/// The words of `reason`, on steps and on runs.
pub mod reason {
    /// A `when` expression was false.
    pub const CONDITION_FALSE: &str = "ConditionFalse";
    /// Everything in `runAfter` was skipped.
    pub const DEPENDENCY_SKIPPED: &str = "DependencySkipped";
    /// The run ended before the step could start.
    pub const NOT_REACHED: &str = "NotReached";
    /// A run that waits for its turn.
    pub const QUEUED: &str = "Queued";
    /// Between two attempts.
    pub const RETRYING: &str = "Retrying";
    /// A wait step that has not ended.
    pub const WAITING: &str = "Waiting";
    /// An expression failed or exceeded its budget.
    pub const EVAL_ERROR: &str = "EvalError";
    /// A step's or the run's time was up.
    pub const TIMED_OUT: &str = "TimedOut";
    /// A result, or all results together, exceed what a run may hold.
    pub const RESULT_TOO_LARGE: &str = "ResultTooLarge";
    /// A response that is not 2xx.
    pub const HTTP_STATUS: &str = "HTTPStatus";
    /// The egress guard refused the target.
    pub const EGRESS_DENIED: &str = "EgressDenied";
    /// The target's name could not be resolved.
    pub const DNS: &str = "DNS";
    /// The target could not be connected to, or closed the connection.
    pub const CONNECT: &str = "Connect";
    /// The TLS handshake failed.
    pub const TLS: &str = "TLS";
    /// The response exceeds the executor's limit.
    pub const RESPONSE_TOO_LARGE: &str = "ResponseTooLarge";
    /// The request could not be built from what the templates gave.
    pub const INVALID_REQUEST: &str = "InvalidRequest";
    /// The call was aborted.
    pub const CANCELED: &str = "Canceled";
    /// The executor took the call and its answer was lost.
    pub const EXECUTOR_LOST: &str = "ExecutorLost";
    /// No executor could be reached.
    pub const EXECUTOR_UNAVAILABLE: &str = "ExecutorUnavailable";
    /// A Secret, ConfigMap or key that is named does not exist or may not be read.
    pub const REFERENCE_NOT_FOUND: &str = "ReferenceNotFound";
    /// A mocked host has no route for the request.
    pub const MOCK_UNMATCHED: &str = "MockUnmatched";
    /// A required parameter has no value.
    pub const PARAM_MISSING: &str = "ParamMissing";
    /// The Flow does not exist.
    pub const FLOW_NOT_FOUND: &str = "FlowNotFound";
    /// The Flow exists and is not Ready.
    pub const FLOW_NOT_READY: &str = "FlowNotReady";
    /// A step's failure was not absorbed.
    pub const STEP_FAILED: &str = "StepFailed";
    /// The API server refused the status for good.
    pub const STATUS_REFUSED: &str = "StatusRefused";
    /// All is done.
    pub const COMPLETED: &str = "Completed";
    /// Someone cancelled the run.
    pub const CANCELLED: &str = "Cancelled";
}
