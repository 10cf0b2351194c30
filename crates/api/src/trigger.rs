//! Trigger: where events come from and what they run.

mod auth;
mod source;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::auth::{
    ApiKeyAuth, AuthType, BasicAuth, BearerAuth, HeaderEqualsAuth, HmacAuth, HmacProvider,
    IpAllowlistAuth, OidcAuth, WebhookAuth,
};
pub use self::source::{
    AmqpExchange, AmqpSource, CronSource, ExchangeType, KafkaSource, LabelSelector,
    LabelSelectorRequirement, NatsSource, OffsetResetPolicy, PluginSource, RateLimit,
    ResourceEvent, ResourceSource, SelectorOperator, WebhookMethod, WebhookSource,
};
use crate::reference::FlowRef;
use crate::schema::{self, words};

/// What a Trigger listens to, and what an event runs.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "automation.kubezap.io",
    version = "v1alpha1",
    kind = "Trigger",
    namespaced,
    status = "TriggerStatus",
    derive = "PartialEq",
    shortname = "trg",
    category = "kubezap",
    doc = "A Trigger listens for events and makes a FlowRun of each.",
    printcolumn(name = "TYPE", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "FLOW", type_ = "string", json_path = ".spec.flowRef.name"),
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
    printcolumn(name = "LAST", type_ = "date", json_path = ".status.lastTriggeredTime"),
    printcolumn(name = "RESULT", type_ = "string", json_path = ".status.lastResult"),
    printcolumn(
        name = "AGE",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::union("webhook"),
    schema::union("cron"),
    schema::union("kafka"),
    schema::union("amqp"),
    schema::union("nats"),
    schema::union("resource"),
    schema::union("plugin"),
    schema::required("flowRef", "has(self.flowRef) || has(self.action)", "name the Flow to run, or give an action"),
    schema::forbidden("action", "!has(self.flowRef) || !has(self.action)", "a Trigger has a flowRef or an action, not both"),
    schema::forbidden(
        "pubsub",
        "!has(self.pubsub)",
        "this shape is retired; set type to kafka, amqp or nats and move the settings to the block of that name",
    ),
]))]
pub struct TriggerSpec {
    /// Where events come from: webhook, cron, kafka, amqp, nats, resource or plugin. The block of that name is required;
    /// other blocks are ignored and reported.
    #[serde(rename = "type")]
    pub type_: TriggerType,
    /// False pauses the source without deleting anything.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// An HTTP request to the webhook gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSource>,
    /// A schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<CronSource>,
    /// Records of a Kafka topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kafka: Option<KafkaSource>,
    /// Messages of an AMQP queue or exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amqp: Option<AmqpSource>,
    /// Messages of a NATS subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nats: Option<NatsSource>,
    /// Changes of Kubernetes objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceSource>,
    /// Events that a plugin brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginSource>,
    /// The Flow that an event runs. Exactly one of flowRef and action is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_ref: Option<FlowRef>,
    /// Shorthand for a Flow of one http step. Exactly one of flowRef and action is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<TriggerAction>,
    /// A limit on firings in a window of time. Excess firings are counted and recorded as RateLimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Cooldown>,
    /// How long finished FlowRuns of this Trigger are kept.
    #[serde(rename = "flowRunGC", default, skip_serializing_if = "Option::is_none")]
    pub flow_run_gc: Option<FlowRunGc>,
    /// Accepted for compatibility, without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub event: Option<String>,
    /// Retired and refused: use kafka, amqp or nats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::retired_block")]
    pub pubsub: Option<Value>,
}

/// Where events come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerType {
    /// The webhook gateway.
    Webhook,
    /// A schedule.
    Cron,
    /// A Kafka topic.
    Kafka,
    /// An AMQP queue.
    Amqp,
    /// A NATS subject.
    Nats,
    /// Changes of Kubernetes objects.
    Resource,
    /// A plugin.
    Plugin,
    /// A word this version does not know, stored under an earlier schema.
    #[serde(other)]
    Unknown,
}

words!(
    TriggerType,
    [
        "webhook", "cron", "kafka", "amqp", "nats", "resource", "plugin"
    ]
);

impl TriggerType {
    /// The word in a manifest, empty for [`TriggerType::Unknown`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Cron => "cron",
            Self::Kafka => "kafka",
            Self::Amqp => "amqp",
            Self::Nats => "nats",
            Self::Resource => "resource",
            Self::Plugin => "plugin",
            Self::Unknown => "",
        }
    }
}

/// Shorthand for a Flow of one http step; it too leaves a FlowRun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::union("webhook")]))]
pub struct TriggerAction {
    /// webhook: the block webhook is required.
    #[serde(rename = "type")]
    pub type_: TriggerActionType,
    /// The call to make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookAction>,
}

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerActionType {
    /// An HTTP call.
    Webhook,
    /// A word this version does not know, stored under an earlier schema.
    #[serde(other)]
    Unknown,
}

words!(TriggerActionType, ["webhook"]);

/// The HTTP call of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookAction {
    /// URL to call; a template.
    #[schemars(length(min = 1, max = 8192))]
    pub url: String,
    /// HTTP method: POST, PUT, PATCH or GET.
    #[serde(default)]
    pub method: ActionMethod,
    /// Headers to send; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::headers")]
    pub headers: BTreeMap<String, String>,
    /// Body to send; a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262144))]
    pub body: Option<String>,
}

/// Method of an action's call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ActionMethod {
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// GET.
    Get,
}

words!(ActionMethod, ["POST", "PUT", "PATCH", "GET"]);

impl ActionMethod {
    /// The method as HTTP spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Get => "GET",
        }
    }
}

/// A limit on firings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cooldown {
    /// Firings allowed in the window; 0 is no limit.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub max_invocations: i32,
    /// Length of the window, as a duration such as 60s.
    #[serde(default = "one_minute")]
    #[schemars(schema_with = "schema::duration")]
    pub window: String,
}

/// Retention of finished FlowRuns; whichever limit is reached first applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowRunGc {
    /// Succeeded runs to keep; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_succeeded: Option<i32>,
    /// Failed and cancelled runs to keep; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_failed: Option<i32>,
    /// How long a succeeded run is kept; 0s deletes it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub ttl_after_succeeded: Option<String>,
    /// How long a failed or cancelled run is kept; 0s deletes it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub ttl_after_failed: Option<String>,
}

/// What became of a Trigger and its events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerStatus {
    /// Ready, Accepted, Degraded and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// When it last fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_triggered_time: Option<Time>,
    /// What became of the last event: Succeeded, Failed, Skipped, RateLimited or AuthFailed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_result: Option<TriggerResult>,
    /// Why the last event that failed did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub last_error: Option<String>,
    /// Firings in the current cooldown window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_invocation_count: Option<i32>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TriggerResult {
    /// A FlowRun was made.
    Succeeded,
    /// No FlowRun could be made.
    Failed,
    /// There was nothing to do.
    Skipped,
    /// Over a limit.
    RateLimited,
    /// The sender could not be authenticated.
    AuthFailed,
    /// A word this version does not know.
    #[serde(other)]
    Unknown,
}

impl TriggerResult {
    /// As `status.lastResult` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Skipped => "Skipped",
            Self::RateLimited => "RateLimited",
            Self::AuthFailed => "AuthFailed",
            Self::Unknown => "Unknown",
        }
    }
}

words!(
    TriggerResult,
    [
        "Succeeded",
        "Failed",
        "Skipped",
        "RateLimited",
        "AuthFailed"
    ]
);

fn yes() -> bool {
    true
}

fn one_minute() -> String {
    "60s".to_owned()
}
