//! The sources of events, a block each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::WebhookAuth;
use crate::reference::LocalRef;
use crate::schema::{self, words};

/// An HTTP request to the webhook gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSource {
    /// Path to post to. /hooks is put before it when it is missing. Unique in the namespace: the older Trigger keeps it.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[^?#\s]+$"))]
    pub path: String,
    /// HTTP method: POST or PUT.
    #[serde(default)]
    pub method: WebhookMethod,
    /// How a sender proves itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<WebhookAuth>,
    /// A limit on requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Headers whose values are redacted when an event is stored, beside those that always are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256)))]
    pub redact_headers: Vec<String>,
    /// Redacts the body when an event is stored.
    #[serde(default)]
    pub redact_body: bool,
}

/// Method of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum WebhookMethod {
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
}

words!(WebhookMethod, ["POST", "PUT"]);

impl WebhookMethod {
    /// The method as HTTP spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// A limit on requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// Requests allowed in the window.
    #[schemars(range(min = 1))]
    pub max_requests: i32,
    /// Length of the window, as a duration such as 60s.
    #[serde(default = "one_minute")]
    #[schemars(schema_with = "schema::duration")]
    pub window: String,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronSource {
    /// Five fields, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or @every with a duration.
    #[schemars(length(min = 1, max = 256))]
    pub schedule: String,
    /// IANA time zone of the schedule.
    #[serde(default = "utc")]
    #[schemars(length(max = 64))]
    pub timezone: String,
}

/// Records of a Kafka topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaSource {
    /// An Integration of type kafka.
    pub integration_ref: LocalRef,
    /// Topic to read.
    #[schemars(length(min = 1, max = 249))]
    pub topic: String,
    /// Consumer group; by default the Integration's prefix, a hyphen and the Trigger's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub consumer_group: Option<String>,
    /// Where a new consumer group starts: latest or earliest.
    #[serde(default)]
    pub offset_reset_policy: OffsetResetPolicy,
}

/// Where a new consumer group starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OffsetResetPolicy {
    /// With new records.
    #[default]
    Latest,
    /// With the oldest record kept.
    Earliest,
}

words!(OffsetResetPolicy, ["latest", "earliest"]);

/// Messages of an AMQP queue or exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmqpSource {
    /// An Integration of type amqp.
    pub integration_ref: LocalRef,
    /// Queue to read.
    #[schemars(length(min = 1, max = 255))]
    pub topic: String,
    /// With an exchange, the pattern that binds the queue to it; without one it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub routing_key: Option<String>,
    /// The exchange to bind the queue to (AMQP 0-9-1 only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<AmqpExchange>,
}

/// An exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmqpExchange {
    /// Its name.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// direct, topic, fanout or headers.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<ExchangeType>,
}

/// How an exchange routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeType {
    /// By the exact routing key.
    Direct,
    /// By a pattern of the routing key.
    Topic,
    /// To every queue.
    Fanout,
    /// By headers.
    Headers,
}

words!(ExchangeType, ["direct", "topic", "fanout", "headers"]);

/// Messages of a NATS subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatsSource {
    /// An Integration of type nats.
    pub integration_ref: LocalRef,
    /// Subject to read; the wildcards * and > are allowed.
    #[schemars(length(min = 1, max = 255))]
    pub subject: String,
}

/// Events that a plugin brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSource {
    /// An Integration of type plugin.
    pub integration_ref: LocalRef,
    /// Settings that the plugin reads; KubeZap passes them on unread.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::plugin_config")]
    pub config: BTreeMap<String, String>,
}

/// Changes of Kubernetes objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSource {
    /// API version of the objects, such as v1 or apps/v1.
    #[schemars(length(min = 1, max = 253))]
    pub api_version: String,
    /// Kind of the objects, such as Pod.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Namespace of the objects; by default the Trigger's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Labels that the objects carry; by default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    /// What fires: create, update, delete.
    #[serde(default = "only_create")]
    #[schemars(length(min = 1, max = 3))]
    pub events: Vec<ResourceEvent>,
    /// Paths such as .status.phase: an update fires only if one of them changed. Without it every update fires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    pub watch_fields: Vec<String>,
    /// The least time between two firings for the same object and event, as a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub cooldown: Option<String>,
}

/// A change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceEvent {
    /// It was made.
    Create,
    /// It changed.
    Update,
    /// It was deleted.
    Delete,
}

words!(ResourceEvent, ["create", "update", "delete"]);

/// Labels that objects carry, as in metav1.LabelSelector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Label to value; all hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::match_labels")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels; all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelectorRequirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    pub operator: SelectorOperator,
    /// Values for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SelectorOperator {
    /// The value is one of those listed.
    In,
    /// The value is none of those listed.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

words!(SelectorOperator, ["In", "NotIn", "Exists", "DoesNotExist"]);

fn one_minute() -> String {
    "60s".to_owned()
}

fn utc() -> String {
    "UTC".to_owned()
}

fn only_create() -> Vec<ResourceEvent> {
    vec![ResourceEvent::Create]
}
