//! Connections to HTTP APIs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{KeyRef, LocalRef};
use crate::schema::{self, words};

/// An HTTP API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpIntegration {
    /// Put before relative URLs of steps, with exactly one slash between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^(https?://.*)?$"))]
    pub base_url: Option<String>,
    /// Credentials. They win over headers of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
    /// Headers to send. Headers of the step win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::headers")]
    pub default_headers: BTreeMap<String, String>,
    /// Transport security.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<HttpTls>,
}

/// Credentials for an HTTP API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::union("bearer"),
    schema::union("basic"),
    schema::union("apiKey"),
    schema::union("secretUrl"),
]))]
pub struct HttpAuth {
    /// bearer, basic, apiKey or secretUrl. The block of that name is required; other blocks are ignored and reported.
    #[serde(rename = "type")]
    pub type_: HttpAuthType,
    /// A token in the Authorization header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<HttpBearerAuth>,
    /// User name and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<HttpBasicAuth>,
    /// A key in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<HttpApiKeyAuth>,
    /// A URL that is itself the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_url: Option<HttpSecretUrlAuth>,
}

/// Kind of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpAuthType {
    /// A token.
    #[serde(rename = "bearer")]
    Bearer,
    /// User name and password.
    #[serde(rename = "basic")]
    Basic,
    /// A key in a header.
    #[serde(rename = "apiKey")]
    ApiKey,
    /// A secret URL.
    #[serde(rename = "secretUrl")]
    SecretUrl,
    /// A word this version does not know, stored under an earlier schema.
    #[serde(other)]
    Unknown,
}

words!(HttpAuthType, ["bearer", "basic", "apiKey", "secretUrl"]);

/// A token in the Authorization header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpBearerAuth {
    /// The token.
    pub token_secret_ref: KeyRef,
}

/// User name and password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpBasicAuth {
    /// User name.
    pub username_secret_ref: KeyRef,
    /// Password.
    pub password_secret_ref: KeyRef,
}

/// A key in a header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpApiKeyAuth {
    /// The header.
    #[schemars(length(min = 1, max = 256))]
    pub header_name: String,
    /// The key.
    pub value_secret_ref: KeyRef,
}

/// A URL that is itself the secret; it replaces the step's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSecretUrlAuth {
    /// The URL.
    pub url_secret_ref: KeyRef,
}

/// Transport security of an HTTP API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpTls {
    /// Certificates to trust instead of the system's, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_config_map_ref: Option<KeyRef>,
    /// Secret with tls.crt and tls.key to present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_secret_ref: Option<LocalRef>,
}
