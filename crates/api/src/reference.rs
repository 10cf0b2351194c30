//! How a kind names another object of its namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// Another object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalRef {
    /// Name of the object, in the same namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

/// One key of a Secret or ConfigMap of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the object, in the same namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// Key in its data.
    #[schemars(schema_with = "schema::data_key")]
    pub key: String,
    /// Accepted for compatibility; a missing object or key is reported all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// The Flow that a Trigger runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowRef {
    /// Name of a Flow in the same namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// Refused: a Flow lives in its Trigger's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        extend("x-kubernetes-validations" = [schema::forbidden_here(
            "size(self) == 0",
            "a Flow lives in its Trigger's namespace; remove this field",
        )])
    )]
    pub namespace: Option<String>,
}
