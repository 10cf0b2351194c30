//! WebhookGatewayConfig: TLS and scaling of a namespace's webhook gateway.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::LocalRef;
use crate::schema;

/// The one name that a WebhookGatewayConfig may have.
pub const NAME: &str = "default";

/// TLS and scaling of the namespace's webhook gateway.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "automation.kubezap.io",
    version = "v1alpha1",
    kind = "WebhookGatewayConfig",
    namespaced,
    status = "WebhookGatewayConfigStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "wgc",
    category = "kubezap",
    doc = "A WebhookGatewayConfig sets TLS and scaling of its namespace's webhook gateway. Its name is default.",
    printcolumn(
        name = "READY",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "REASON",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(
        name = "MIN",
        type_ = "integer",
        json_path = ".spec.hpa.minReplicas",
        priority = 1
    ),
    printcolumn(
        name = "MAX",
        type_ = "integer",
        json_path = ".spec.hpa.maxReplicas",
        priority = 1
    ),
    printcolumn(
        name = "AGE",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WebhookGatewayConfigSpec {
    /// Transport security of the gateway's listener. Without it the gateway speaks plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<GatewayTls>,
    /// Bounds of the gateway's HorizontalPodAutoscaler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hpa: Option<GatewayHpa>,
    /// The gateway's PodDisruptionBudget. Without it there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<GatewayPodDisruptionBudget>,
}

/// Transport security of the gateway's listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayTls {
    /// Secret with tls.crt and tls.key. It is read again when it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_secret_ref: Option<LocalRef>,
    /// Secret with ca.crt: senders must present a certificate that it vouches for. Needs serverSecretRef.
    #[serde(
        rename = "clientCASecretRef",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub client_ca_secret_ref: Option<LocalRef>,
    /// ConfigMap with crl.der, a revocation list in DER. Once it is out of date no client certificate is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crl_config_map_ref: Option<LocalRef>,
}

/// Bounds of the gateway's HorizontalPodAutoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::forbidden(
    "minReplicas",
    "self.minReplicas <= self.maxReplicas",
    "it must not exceed maxReplicas, which is 10 unless set",
)]))]
pub struct GatewayHpa {
    /// The fewest replicas.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub min_replicas: i32,
    /// The most replicas.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_replicas: i32,
    /// Average CPU utilisation to aim at, in percent.
    #[serde(rename = "targetCPUUtilization", default = "seventy")]
    #[schemars(range(min = 1, max = 1000))]
    pub target_cpu_utilization: i32,
}

/// The gateway's PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayPodDisruptionBudget {
    /// Pods that stay up, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub min_available: Option<IntOrString>,
}

/// Whether the configuration is in effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookGatewayConfigStatus {
    /// Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

fn one() -> i32 {
    1
}

fn ten() -> i32 {
    10
}

fn seventy() -> i32 {
    70
}
