//! Plugins: containers of a user's own.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::KeyRef;
use crate::schema;

/// A container that brings events and takes messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginIntegration {
    /// Container image.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// SHA-256 digest of the image, 64 hexadecimal digits; wins over the image's tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[a-f0-9]{64}$"))]
    pub image_digest: Option<String>,
    /// Port on which the plugin takes messages.
    #[serde(default = "publisher_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub publisher_port: i32,
    /// Secrets whose keys become environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub secret_refs: Vec<PluginSecretRef>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub env: Vec<EnvVar>,
    /// Mutual TLS between the controller and the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<PluginMtls>,
}

/// Mutual TLS between the controller and the plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginMtls {
    /// Whether the plugin's port speaks mutual TLS. The plugin must support it.
    #[serde(default)]
    pub enabled: bool,
}

/// A Secret whose keys become environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSecretRef {
    /// Name of the Secret.
    #[schemars(schema_with = "schema::object_name")]
    pub secret_name: String,
    /// Key of the Secret to name of the variable.
    #[schemars(schema_with = "schema::env_var_mappings")]
    pub env_var_mappings: BTreeMap<String, String>,
}

/// An environment variable, as in the core EnvVar.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub value: Option<String>,
    /// Where its value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvVarSource>,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVarSource {
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// A field of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldSelector>,
    /// A resource of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_field_ref: Option<ResourceSelector>,
}

/// A field of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldSelector {
    /// Version of the schema that fieldPath is written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub api_version: Option<String>,
    /// Path of the field, such as metadata.name.
    #[schemars(length(min = 1, max = 512))]
    pub field_path: String,
}

/// A resource of the container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// Name of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub container_name: Option<String>,
    /// The resource, such as limits.memory.
    #[schemars(length(min = 1, max = 253))]
    pub resource: String,
    /// The unit that the value is given in, such as 1Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::int_or_string")]
    pub divisor: Option<IntOrString>,
}

fn publisher_port() -> i32 {
    8090
}
