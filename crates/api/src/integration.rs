//! Integration: a connection to a broker, an HTTP API or a plugin, with its credentials by reference.

mod broker;
mod http;
mod plugin;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::broker::{
    AmqpIntegration, AmqpTls, AmqpVersion, KafkaIntegration, KafkaSasl, KafkaTls,
    NatsCredentialsRef, NatsIntegration, NatsTls, SaslMechanism,
};
pub use self::http::{
    HttpApiKeyAuth, HttpAuth, HttpAuthType, HttpBasicAuth, HttpBearerAuth, HttpIntegration,
    HttpSecretUrlAuth, HttpTls,
};
pub use self::plugin::{
    EnvVar, EnvVarSource, FieldSelector, PluginIntegration, PluginMtls, PluginSecretRef,
    ResourceSelector,
};
use crate::schema::{self, words};

/// What is connected to.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "automation.kubezap.io",
    version = "v1alpha1",
    kind = "Integration",
    namespaced,
    status = "IntegrationStatus",
    derive = "PartialEq",
    shortname = "itg",
    category = "kubezap",
    doc = "An Integration is a connection to a broker, an HTTP API or a plugin. Credentials are referred to, never written in it.",
    printcolumn(name = "TYPE", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "PHASE", type_ = "string", json_path = ".status.phase"),
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
    printcolumn(
        name = "AGE",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::union("kafka"),
    schema::union("amqp"),
    schema::union("nats"),
    schema::union("http"),
    schema::union("plugin"),
]))]
pub struct IntegrationSpec {
    /// kafka, amqp, nats, http or plugin. The block of that name is required; other blocks are ignored and reported.
    #[serde(rename = "type")]
    pub type_: IntegrationType,
    /// A Kafka cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kafka: Option<KafkaIntegration>,
    /// An AMQP broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amqp: Option<AmqpIntegration>,
    /// A NATS cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nats: Option<NatsIntegration>,
    /// An HTTP API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpIntegration>,
    /// A container of your own that brings events and takes messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginIntegration>,
}

/// What is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntegrationType {
    /// A Kafka cluster.
    Kafka,
    /// An AMQP broker.
    Amqp,
    /// A NATS cluster.
    Nats,
    /// An HTTP API.
    Http,
    /// A plugin.
    Plugin,
    /// A word this version does not know, stored under an earlier schema.
    #[serde(other)]
    Unknown,
}

words!(IntegrationType, ["kafka", "amqp", "nats", "http", "plugin"]);

impl IntegrationType {
    /// The word in a manifest, empty for [`IntegrationType::Unknown`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Amqp => "amqp",
            Self::Nats => "nats",
            Self::Http => "http",
            Self::Plugin => "plugin",
            Self::Unknown => "",
        }
    }
}

/// Whether an Integration can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationStatus {
    /// Ready and GatewayAvailable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Ready, Degraded or Pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<IntegrationPhase>,
    /// Deployment of its gateway, for brokers and plugins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub gateway_deployment_name: Option<String>,
    /// When it was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_reconciled_time: Option<Time>,
}

/// Whether an Integration can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IntegrationPhase {
    /// It can.
    Ready,
    /// In part.
    Degraded,
    /// Not yet.
    Pending,
    /// A word this version does not know.
    #[serde(other)]
    Unknown,
}

words!(IntegrationPhase, ["Ready", "Degraded", "Pending"]);
