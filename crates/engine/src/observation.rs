//! What a shell saw happen to a run.

use std::collections::BTreeMap;

use crate::effect::KeyRef;
use crate::flow::StepIndex;

/// One observation.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// The call left the queue; its time runs from now.
    CallStarted {
        /// Which call.
        execution_id: String,
    },
    /// The call ended.
    CallFinished {
        /// Which call; an unknown or superseded one is ignored.
        execution_id: String,
        /// How.
        outcome: CallOutcome,
    },
    /// The ConfigMaps a step asked for.
    ReferencesRead {
        /// Which step asked.
        step: StepIndex,
        /// Their values, or the name of what is missing, for people.
        result: Result<BTreeMap<KeyRef, String>, String>,
    },
    /// Someone set `kubezap.io/cancel=true`.
    CancelRequested,
}

/// How a call ended. Credentials are already masked in every text.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome {
    /// The target answered.
    Response(Response),
    /// No answer from the target.
    Failed(Failure),
    /// Provably never left for the target: dispatched again without counting an attempt.
    NotDelivered {
        /// Why, for people.
        message: String,
    },
}

/// An HTTP response, capped by the executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

/// Why a call has no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A constant of [`crate::run::reason`].
    pub reason: &'static str,
    /// For people; starts with the executor's code where one was given (`egress_denied: ...`).
    pub message: String,
}
