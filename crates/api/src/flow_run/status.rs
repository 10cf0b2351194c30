//! What became of a run.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, words};

/// What became of a run. Written by the controller alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowRunStatus {
    /// The metadata.generation that was acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pending, Running, Succeeded, Failed or Cancelled. The last three never change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<FlowRunPhase>,
    /// When the first step started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<MicroTime>,
    /// When the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub completion_time: Option<MicroTime>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_millis: Option<i64>,
    /// How long it took, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub duration: Option<String>,
    /// Why it ended as it did, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// Name of the ControllerRevision that holds the Flow as this run sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub flow_revision: Option<String>,
    /// Every step in the Flow's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<StepStatus>,
    /// Succeeded and Running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlowRunPhase {
    /// Nothing has started.
    #[default]
    Pending,
    /// At least one step has started.
    Running,
    /// All steps finished and every failure was absorbed.
    Succeeded,
    /// A failure was not absorbed, or time was up.
    Failed,
    /// Someone asked for it.
    Cancelled,
}

words!(
    FlowRunPhase,
    ["Pending", "Running", "Succeeded", "Failed", "Cancelled"]
);

impl FlowRunPhase {
    /// The word in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    /// Whether the run has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// What became of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Pending, Running, Succeeded, Failed, Skipped or Waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<StepPhase>,
    /// When its first attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub start_time: Option<MicroTime>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub completion_time: Option<MicroTime>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_millis: Option<i64>,
    /// Attempts that started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Why it is where it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// The same in one word, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// Its results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub results: Vec<StepResult>,
    /// When a wait ends, or the next attempt starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub resume_after: Option<MicroTime>,
    /// Identifies the newest attempt.
    #[serde(
        rename = "executionID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 253))]
    pub execution_id: Option<String>,
}

/// Where a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepPhase {
    /// It has not started.
    #[default]
    Pending,
    /// An attempt is under way, or the next one is due.
    Running,
    /// Done.
    Succeeded,
    /// Gave up.
    Failed,
    /// Did not run, or its failure counts as not having run.
    Skipped,
    /// A wait that has not ended.
    Waiting,
}

words!(
    StepPhase,
    [
        "Pending",
        "Running",
        "Succeeded",
        "Failed",
        "Skipped",
        "Waiting"
    ]
);

impl StepPhase {
    /// The word in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
            Self::Waiting => "Waiting",
        }
    }
}

/// A result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its text.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    pub value: String,
}
