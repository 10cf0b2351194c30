//! Who may fire a webhook.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{KeyRef, LocalRef};
use crate::schema::{self, words};

/// How a sender proves itself. Without it, anyone who reaches the gateway can fire the Trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::union("hmac"),
    schema::union("bearer"),
    schema::union("oidc"),
    schema::union("basic"),
    schema::union("apiKey"),
    schema::union("ipAllowlist"),
    schema::union_block("header-equals", "headerEquals"),
]))]
pub struct WebhookAuth {
    /// hmac, bearer, oidc, basic, apiKey, ipAllowlist or header-equals. The block of that name (headerEquals for the last)
    /// is required; other blocks are ignored and reported.
    #[serde(rename = "type")]
    pub type_: AuthType,
    /// A signature over the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hmac: Option<HmacAuth>,
    /// A token in the Authorization header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<BearerAuth>,
    /// A JSON Web Token of an OpenID Connect issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcAuth>,
    /// User name and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicAuth>,
    /// A key in a header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<ApiKeyAuth>,
    /// The sender's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_allowlist: Option<IpAllowlistAuth>,
    /// A header with a secret value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_equals: Option<HeaderEqualsAuth>,
}

/// How a sender proves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthType {
    /// A signature over the body.
    #[serde(rename = "hmac")]
    Hmac,
    /// A token in the Authorization header.
    #[serde(rename = "bearer")]
    Bearer,
    /// A JSON Web Token.
    #[serde(rename = "oidc")]
    Oidc,
    /// User name and password.
    #[serde(rename = "basic")]
    Basic,
    /// A key in a header.
    #[serde(rename = "apiKey")]
    ApiKey,
    /// The sender's address.
    #[serde(rename = "ipAllowlist")]
    IpAllowlist,
    /// A header with a secret value.
    #[serde(rename = "header-equals")]
    HeaderEquals,
    /// A word this version does not know, stored under an earlier schema.
    #[serde(other)]
    Unknown,
}

words!(
    AuthType,
    [
        "hmac",
        "bearer",
        "oidc",
        "basic",
        "apiKey",
        "ipAllowlist",
        "header-equals"
    ]
);

impl AuthType {
    /// The word in a manifest, empty for [`AuthType::Unknown`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hmac => "hmac",
            Self::Bearer => "bearer",
            Self::Oidc => "oidc",
            Self::Basic => "basic",
            Self::ApiKey => "apiKey",
            Self::IpAllowlist => "ipAllowlist",
            Self::HeaderEquals => "header-equals",
            Self::Unknown => "",
        }
    }
}

/// A signature over the body, made with a shared secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HmacAuth {
    /// The shared secret.
    pub secret_ref: KeyRef,
    /// Whose scheme the signature follows: github or slack.
    #[serde(default)]
    pub provider: HmacProvider,
    /// How old a signed time stamp may be, in seconds; for schemes that have one.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 86400))]
    pub timestamp_tolerance_seconds: i32,
    /// The header that carries the signature. Only the provider's own is supported; it need not be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub header: Option<String>,
    /// The hash algorithm. Only the provider's own is supported; it need not be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub algorithm: Option<String>,
    /// What stands before the signature. Only the provider's own is supported; it need not be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub prefix: Option<String>,
}

/// Whose signature scheme is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HmacProvider {
    /// `X-Hub-Signature-256`.
    #[default]
    Github,
    /// `X-Slack-Signature` with a time stamp.
    Slack,
}

words!(HmacProvider, ["github", "slack"]);

/// A token in the Authorization header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BearerAuth {
    /// The token that is expected.
    pub token_secret_ref: KeyRef,
}

/// A JSON Web Token of an OpenID Connect issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcAuth {
    /// URL of the issuer.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://"))]
    pub issuer: String,
    /// The audience that a token must be for; checked when set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub audience: Option<String>,
}

/// User name and password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuth {
    /// The Secret that holds both.
    pub secret_ref: LocalRef,
    /// Key of the user name.
    #[serde(default = "username")]
    #[schemars(schema_with = "schema::data_key")]
    pub username_key: String,
    /// Key of the password.
    #[serde(default = "password")]
    #[schemars(schema_with = "schema::data_key")]
    pub password_key: String,
}

/// A key in a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyAuth {
    /// The key that is expected.
    pub secret_ref: KeyRef,
    /// The header that carries it.
    #[serde(default = "x_api_key")]
    #[schemars(length(min = 1, max = 256))]
    pub header: String,
}

/// The sender's address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IpAllowlistAuth {
    /// Networks that may send, such as 192.0.2.0/24.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 64)))]
    pub cidrs: Vec<String>,
}

/// A header with a secret value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderEqualsAuth {
    /// The header.
    #[schemars(length(min = 1, max = 256))]
    pub header: String,
    /// The value that is expected.
    pub secret_ref: KeyRef,
}

fn five_minutes() -> i32 {
    300
}

fn username() -> String {
    "username".to_owned()
}

fn password() -> String {
    "password".to_owned()
}

fn x_api_key() -> String {
    "X-Api-Key".to_owned()
}
