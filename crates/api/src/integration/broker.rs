//! Connections to brokers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{KeyRef, LocalRef};
use crate::schema::{self, words};

/// A Kafka cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::required(
        "bootstrapServers",
        "has(self.bootstrapServers) || has(self.brokers)",
        "list at least one server as host:port",
    ),
]))]
pub struct KafkaIntegration {
    /// Servers to connect to first, as host:port. Required.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 512)))]
    pub bootstrap_servers: Vec<String>,
    /// Retired and refused: use bootstrapServers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(max = 512)),
        extend("x-kubernetes-validations" = [schema::forbidden_here(
            "size(self) == 0",
            "this field is retired; use bootstrapServers",
        )])
    )]
    pub brokers: Vec<String>,
    /// Transport security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<KafkaTls>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sasl: Option<KafkaSasl>,
    /// Start of the names of consumer groups.
    #[serde(default = "kubezap")]
    #[schemars(length(max = 128))]
    pub consumer_group_prefix: String,
}

/// Transport security of Kafka; on unless enabled is false.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KafkaTls {
    /// Whether TLS is used.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Accepts any server certificate. Unsafe.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Certificates to trust instead of the system's, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<KeyRef>,
    /// Secret with tls.crt and tls.key to present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_secret_ref: Option<LocalRef>,
}

/// Credentials for Kafka.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::required(
    "usernameSecretRef",
    "has(self.username) || has(self.usernameSecretRef)",
    "give usernameSecretRef or username",
)]))]
pub struct KafkaSasl {
    /// PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
    pub mechanism: SaslMechanism,
    /// User name, when it is no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub username: Option<String>,
    /// User name from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_secret_ref: Option<KeyRef>,
    /// Password from a Secret.
    pub password_secret_ref: KeyRef,
}

/// How Kafka checks credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SaslMechanism {
    /// PLAIN.
    #[serde(rename = "PLAIN")]
    Plain,
    /// SCRAM-SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// SCRAM-SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

words!(SaslMechanism, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]);

/// An AMQP broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmqpIntegration {
    /// URL of the broker, amqp:// or amqps://, with the virtual host as its path.
    #[schemars(length(min = 1, max = 2048), regex(pattern = r"^amqps?://"))]
    pub url: String,
    /// Protocol version: 0-9-1 or 1.0.
    #[serde(default)]
    pub version: AmqpVersion,
    /// Transport security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<AmqpTls>,
    /// User name from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_secret_ref: Option<KeyRef>,
    /// Password from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<KeyRef>,
}

/// Version of AMQP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AmqpVersion {
    /// AMQP 0-9-1.
    #[default]
    #[serde(rename = "0-9-1")]
    V091,
    /// AMQP 1.0.
    #[serde(rename = "1.0")]
    V10,
}

words!(AmqpVersion, ["0-9-1", "1.0"]);

/// Transport security of AMQP; off unless enabled is true or the URL is amqps://.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmqpTls {
    /// Whether TLS is used.
    #[serde(default)]
    pub enabled: bool,
    /// Accepts any server certificate. Unsafe.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Certificates to trust instead of the system's, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<KeyRef>,
    /// Secret with tls.crt and tls.key to present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_secret_ref: Option<LocalRef>,
}

/// A NATS cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatsIntegration {
    /// Servers to connect to, such as nats://nats:4222.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 512)))]
    pub servers: Vec<String>,
    /// Transport security; its presence turns TLS on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<NatsTls>,
    /// Secret with a credentials file, by default under the key nats.creds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<NatsCredentialsRef>,
    /// User name from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_secret_ref: Option<KeyRef>,
    /// Password from a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<KeyRef>,
    /// Reads through JetStream, which keeps messages until they are acknowledged. The stream must exist.
    #[serde(default)]
    pub jet_stream: bool,
}

/// A credentials file in a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatsCredentialsRef {
    /// Name of the Secret.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// Key in its data.
    #[serde(default = "nats_creds")]
    #[schemars(schema_with = "schema::data_key")]
    pub key: String,
    /// Accepted for compatibility; a missing Secret or key is reported all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Transport security of NATS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NatsTls {
    /// Accepts any server certificate. Unsafe.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Certificates to trust instead of the system's, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<KeyRef>,
    /// Secret with tls.crt and tls.key to present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_secret_ref: Option<LocalRef>,
}

fn yes() -> bool {
    true
}

fn nats_creds() -> String {
    "nats.creds".to_owned()
}

fn kubezap() -> String {
    "kubezap".to_owned()
}
