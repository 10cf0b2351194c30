//! What expressions can see.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::effect::KeyRef;
use crate::event::Event;
use crate::flow::StepName;

/// Everything an expression can refer to, credentials excepted.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// What fired the run.
    pub event: Arc<Event>,
    /// Name and type of the Trigger, empty for a manual run: `trigger.name`, `trigger.type`.
    pub trigger_name: String,
    /// See `trigger_name`.
    pub trigger_type: String,
    /// `run.name`.
    pub run_name: String,
    /// `run.namespace`, also `trigger.namespace`.
    pub run_namespace: String,
    /// `run.uid`.
    pub run_uid: String,
    /// Resolved parameters.
    pub params: Arc<BTreeMap<String, String>>,
    /// Every step of the Flow.
    pub steps: Arc<BTreeMap<StepName, StepView>>,
    /// ConfigMap keys that were read for this step.
    pub configmaps: BTreeMap<KeyRef, String>,
    /// What `now()` gives: deterministic, see the engine's durability rules.
    pub now: Timestamp,
}

/// A step as expressions see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepView {
    /// Its phase as `status.steps[].phase` spells it.
    pub status: String,
    /// Its message.
    pub message: String,
    /// Attempts that started.
    pub attempts: u32,
    /// Results by name, implicit ones included.
    pub results: BTreeMap<String, String>,
}
