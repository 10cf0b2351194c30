//! What a step does, a block for each type.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::LocalRef;
use crate::schema::{self, words};

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    schema::union("http"),
    schema::union("transform"),
    schema::union("publish"),
    schema::union("wait"),
]))]
pub struct Action {
    /// http, transform, publish or wait. The block of that name is required; other blocks are ignored and reported.
    #[serde(rename = "type")]
    pub type_: ActionType,
    /// An HTTP call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpAction>,
    /// Values computed from what the run already holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<TransformAction>,
    /// A message to a broker or plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<PublishAction>,
    /// A pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitAction>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionType {
    /// An HTTP call.
    Http,
    /// Computes values.
    Transform,
    /// Sends a message.
    Publish,
    /// Pauses.
    Wait,
    /// A word this version does not know, stored under an earlier schema.
    #[serde(other)]
    Unknown,
}

words!(ActionType, ["http", "transform", "publish", "wait"]);

/// An HTTP call. Its results status, statusCode and body need no mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [schema::required(
    "url",
    "size(self.url) > 0 || has(self.integrationRef)",
    "only a step with an integrationRef may leave it out",
)]))]
pub struct HttpAction {
    /// URL to call; a template. With an integrationRef it may be relative or empty.
    #[serde(default)]
    #[schemars(length(max = 8192))]
    pub url: String,
    /// HTTP method: GET, POST, PUT, PATCH or DELETE.
    #[serde(default)]
    pub method: HttpMethod,
    /// Headers to send; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::headers")]
    pub headers: BTreeMap<String, String>,
    /// Body to send; a template. In a JSON body, references are placed as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262144))]
    pub body: Option<String>,
    /// The most the call may take, in seconds.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 86400))]
    pub timeout_seconds: i32,
    /// Results to take from the response: name to JSONPath ($.id) or XPath (/order/id). Without a match the result is empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::result_mappings")]
    pub result_mappings: BTreeMap<String, String>,
    /// An Integration of type http that gives the base URL, credentials and default headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_ref: Option<LocalRef>,
}

/// Method of an HTTP call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// GET.
    Get,
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

words!(HttpMethod, ["GET", "POST", "PUT", "PATCH", "DELETE"]);

impl HttpMethod {
    /// The method as HTTP spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Values computed from what the run already holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransformAction {
    /// Result name to template. A mapping that is one $(...) of CEL keeps the type of its value.
    #[schemars(schema_with = "schema::mappings")]
    pub mappings: BTreeMap<String, String>,
}

/// A message to a broker or plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishAction {
    /// The Integration to send through.
    pub integration_ref: LocalRef,
    /// Topic, queue or subject; a template.
    #[schemars(length(min = 1, max = 2048))]
    pub topic: String,
    /// Body of the message; a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262144))]
    pub body: Option<String>,
    /// Headers of the message; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::headers")]
    pub headers: BTreeMap<String, String>,
}

/// A pause. Only steps that depend on it wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitAction {
    /// How long, as a duration such as 2m. Not longer than the Flow's timeout.
    #[schemars(schema_with = "schema::duration")]
    pub duration: String,
}

fn thirty() -> i32 {
    30
}
