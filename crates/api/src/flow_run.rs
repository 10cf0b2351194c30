//! FlowRun: one run of a Flow, made by an event or by a person.

mod status;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::status::{FlowRunPhase, FlowRunStatus, StepPhase, StepResult, StepStatus};
use crate::schema::{self, words};

/// What is run and what fired it. It cannot be changed once the run exists.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "automation.kubezap.io",
    version = "v1alpha1",
    kind = "FlowRun",
    namespaced,
    status = "FlowRunStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "fr",
    category = "kubezap",
    doc = "A FlowRun is one run of a Flow: the event that fired it, and what became of every step.",
    selectable = ".status.phase",
    selectable = ".spec.flowRef.name",
    selectable = ".spec.triggerRef.name",
    printcolumn(name = "FLOW", type_ = "string", json_path = ".spec.flowRef.name"),
    printcolumn(name = "PHASE", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "AGE",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    ),
    printcolumn(name = "DURATION", type_ = "string", json_path = ".status.duration"),
    printcolumn(
        name = "TRIGGER",
        type_ = "string",
        json_path = ".spec.triggerRef.name",
        priority = 1
    ),
    printcolumn(
        name = "MESSAGE",
        type_ = "string",
        json_path = ".status.message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::forbidden_here("self == oldSelf", "the spec of a FlowRun cannot be changed; make another FlowRun"),
    schema::required(
        "flowRef",
        "(has(self.flowRef) && size(self.flowRef.name) > 0) || has(self.triggerRef)",
        "name the Flow to run",
    ),
]))]
pub struct FlowRunSpec {
    /// The Flow to run; empty for a run of a Trigger's action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_ref: Option<RunFlowRef>,
    /// Values for the Flow's params. Those that the Flow does not declare are ignored. Templates when a person made the run,
    /// literal text when a Trigger did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub params: Vec<ParamValue>,
    /// The Trigger that made the run; absent when a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_ref: Option<TriggerRef>,
    /// The event that fired it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_data: Option<TriggerData>,
    /// How long the run is kept after it finished, as a duration; "0" deletes it at once. By default the Trigger's flowRunGC.
    #[serde(
        rename = "ttlAfterFinished",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::duration")]
    pub ttl_after_finished: Option<String>,
}

/// The Flow of a run, in the run's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFlowRef {
    /// Name of the Flow; empty for a run of a Trigger's action.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Refused: a Flow lives in the namespace of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        extend("x-kubernetes-validations" = [schema::forbidden_here(
            "size(self) == 0",
            "a Flow lives in the namespace of its runs; remove this field",
        )])
    )]
    pub namespace: Option<String>,
}

/// A value for a param.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamValue {
    /// Name of the param.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its value.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    pub value: String,
}

/// The Trigger that made a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerRef {
    /// Name of the Trigger, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its type, such as webhook.
    #[serde(rename = "type", default)]
    #[schemars(length(max = 63))]
    pub type_: String,
}

/// The event that fired a run. What does not apply to the source is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerData {
    /// webhook, cron, kafka, kubernetes-event, plugin, amqp, nats or manual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub source: Option<String>,
    /// Method of the HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub method: Option<String>,
    /// Path of the HTTP request, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub path: Option<String>,
    /// Headers of the request or message. Values of sensitive ones are redacted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::event_headers")]
    pub headers: BTreeMap<String, String>,
    /// Topic, queue or subject of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub topic: Option<String>,
    /// Kafka partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<i32>,
    /// Kafka offset, or sequence of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i64>,
    /// Key of the message, as keyEncoding says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub key: Option<String>,
    /// utf8 or base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub key_encoding: Option<String>,
    /// The instant that a schedule fired for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub scheduled_time: Option<Time>,
    /// Body of the request or message, as bodyEncoding says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 524288))]
    pub body: Option<String>,
    /// utf8 or base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_encoding: Option<BodyEncoding>,
    /// Always false: a body is stored whole or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_truncated: Option<bool>,
    /// Media type of the body, as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub content_type: Option<String>,
    /// ADDED, MODIFIED or DELETED.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub event_type: Option<String>,
    /// Name of the object that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resource_name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub resource_namespace: Option<String>,
    /// Its API version.
    #[serde(
        rename = "resourceAPIVersion",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 317))]
    pub resource_api_version: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resource_kind: Option<String>,
}

/// How a body is held in text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BodyEncoding {
    /// As it is.
    #[default]
    Utf8,
    /// As standard base64.
    Base64,
}

words!(BodyEncoding, ["utf8", "base64"]);
