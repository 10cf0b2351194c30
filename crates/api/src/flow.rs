//! Flow: the steps that a FlowRun takes.

mod action;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::action::{
    Action, ActionType, HttpAction, HttpMethod, PublishAction, TransformAction, WaitAction,
};
use crate::schema::{self, words};

/// What a run of this Flow does.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "automation.kubezap.io",
    version = "v1alpha1",
    kind = "Flow",
    namespaced,
    status = "FlowStatus",
    derive = "PartialEq",
    shortname = "flw",
    category = "kubezap",
    doc = "A Flow is a set of steps that a FlowRun takes, in the order their dependencies allow.",
    printcolumn(
        name = "READY",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "REASON",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(name = "RUNS", type_ = "integer", json_path = ".status.executionCount"),
    printcolumn(name = "LAST", type_ = "date", json_path = ".status.lastExecutionTime"),
    printcolumn(name = "RESULT", type_ = "string", json_path = ".status.lastResult"),
    printcolumn(
        name = "AGE",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct FlowSpec {
    /// What this Flow is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// The most a run may take, as a duration such as 10m.
    #[serde(default = "ten_minutes")]
    #[schemars(schema_with = "schema::duration")]
    pub timeout: String,
    /// What a failed step without onFailure does: Fail stops the run, Continue lets it go on.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// Values that a run takes: from FlowRun.spec.params, else from the field of the same name at the top of the event's
    /// body, else the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub params: Vec<Param>,
    /// What is done. A step starts when the steps it refers to and those in its runAfter are finished; steps without either
    /// start at once.
    #[schemars(
        length(min = 1, max = 128),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub steps: Vec<Step>,
}

/// What a failed step does to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// Steps in flight finish, nothing new starts, the run fails.
    #[default]
    Fail,
    /// The step is Failed and its dependents run.
    Continue,
}

words!(FailurePolicy, ["Fail", "Continue"]);

/// A value that a run takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Param {
    /// Name, as in $(params.name).
    #[schemars(schema_with = "schema::param_name")]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// A run without a value for it fails.
    #[serde(default)]
    pub required: bool,
    /// The value of a run that has no other; literal text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub default: Option<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Name, unique in the Flow: lower-case letters, digits and hyphens, starting with a letter.
    #[schemars(schema_with = "schema::step_name")]
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// Steps that finish first. When all of them are skipped, so is this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::step_names")]
    pub run_after: Vec<String>,
    /// Conditions; unless all are true the step is skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub when: Vec<When>,
    /// What the step does.
    pub action: Action,
    /// Results that the step is said to have; for readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub results: Vec<ResultDeclaration>,
    /// Makes a failed attempt be repeated. Without it there is one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy: Option<RetryPolicy>,
    /// The most one attempt may take, as a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub timeout: Option<String>,
    /// What the step's failure does: Fail stops the run, Continue lets dependents run, Skip counts the step as skipped.
    /// By default the Flow's failurePolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct When {
    /// A CEL expression that gives true or false.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
}

/// A result, described for readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultDeclaration {
    /// Its name.
    #[schemars(schema_with = "schema::result_name")]
    pub name: String,
    /// What it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
}

/// How a failed attempt is repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// Attempts beyond the first.
    #[schemars(range(min = 0, max = 1000))]
    pub max_retries: i32,
    /// How the delay grows: Fixed, Linear or Exponential.
    #[serde(default)]
    pub backoff_type: BackoffType,
    /// Delay before the second attempt, as a duration.
    #[serde(default = "one_second")]
    #[schemars(schema_with = "schema::duration")]
    pub initial_delay: String,
    /// The most a delay grows to, as a duration.
    #[serde(default = "one_minute")]
    #[schemars(schema_with = "schema::duration")]
    pub max_delay: String,
    /// Factor of exponential growth, at least 1, as text such as "2.0".
    #[serde(default = "two")]
    #[schemars(length(max = 16), regex(pattern = r"^[0-9]*[1-9][0-9]*(\.[0-9]+)?$"))]
    pub multiplier: String,
}

/// How a delay grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackoffType {
    /// Not at all.
    Fixed,
    /// By the initial delay each time.
    Linear,
    /// By a factor each time.
    #[default]
    Exponential,
}

words!(BackoffType, ["Fixed", "Linear", "Exponential"]);

/// What a step's failure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Stops the run.
    Fail,
    /// Lets dependents run.
    Continue,
    /// Counts the step as skipped.
    Skip,
}

words!(OnFailure, ["Fail", "Continue", "Skip"]);

/// Whether a Flow can run, and how its runs went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowStatus {
    /// Ready, Degraded and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Runs that finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<i64>,
    /// When the last run finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_execution_time: Option<Time>,
    /// Phase in which the last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub last_result: Option<String>,
    /// Message of the last run that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub last_error: Option<String>,
}

fn ten_minutes() -> String {
    "10m".to_owned()
}

fn one_second() -> String {
    "1s".to_owned()
}

fn one_minute() -> String {
    "60s".to_owned()
}

fn two() -> String {
    "2.0".to_owned()
}
