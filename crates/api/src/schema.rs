//! Building blocks of the kinds' schemas: bounded strings and maps, and validation rules with their messages.
//!
//! Bounds are generous for people and tight enough for the API server's cost estimate of validation rules.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Go's duration grammar without a minus, and `d` for 24 hours. [`crate::duration::parse`] accepts the same texts.
pub(crate) const DURATION: &str =
    r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+)$";

const OBJECT_NAME: &str = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$";
const DATA_KEY: &str = r"^[-._a-zA-Z0-9]+$";

pub(crate) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 64, "pattern": DURATION})
}

pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 253, "pattern": OBJECT_NAME})
}

/// A key of a Secret or ConfigMap.
pub(crate) fn data_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 253, "pattern": DATA_KEY})
}

pub(crate) fn step_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 63, "pattern": "^[a-z][a-z0-9-]*$"})
}

/// Names that a reference such as `params.order-id` can hold.
pub(crate) fn param_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 63, "pattern": "^[a-zA-Z0-9_@-]+$"})
}

pub(crate) fn result_name(generator: &mut SchemaGenerator) -> Schema {
    param_name(generator)
}

pub(crate) fn step_names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 128, "items": step_name(generator)})
}

/// RFC 3339 with a bound; the API server checks the format.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time", "maxLength": 64})
}

/// Header name to template.
pub(crate) fn headers(_: &mut SchemaGenerator) -> Schema {
    string_map(64, 8192)
}

/// Headers of an event: one writer, so the map is replaced as a whole.
pub(crate) fn event_headers(_: &mut SchemaGenerator) -> Schema {
    let mut schema = string_map(512, 32768);
    schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    schema
}

/// Result name to a template.
pub(crate) fn mappings(_: &mut SchemaGenerator) -> Schema {
    let mut schema = string_map(64, 65536);
    schema.insert("minProperties".into(), 1.into());
    schema
}

/// Result name to JSONPath or XPath.
pub(crate) fn result_mappings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": {
            "type": "string",
            "maxLength": 512,
            "x-kubernetes-validations": [rule(
                "self.startsWith('$') || self.startsWith('/')",
                "a result mapping is a JSONPath such as $.order.id, or an XPath such as /order/id",
            )],
        },
    })
}

/// Settings that a plugin reads.
pub(crate) fn plugin_config(_: &mut SchemaGenerator) -> Schema {
    string_map(64, 8192)
}

/// Key of a Secret to the name of an environment variable.
pub(crate) fn env_var_mappings(_: &mut SchemaGenerator) -> Schema {
    let mut schema = string_map(64, 256);
    schema.insert("minProperties".into(), 1.into());
    schema
}

pub(crate) fn match_labels(_: &mut SchemaGenerator) -> Schema {
    string_map(32, 63)
}

pub(crate) fn string_map(max_properties: u32, max_length: u32) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": max_properties,
        "additionalProperties": {"type": "string", "maxLength": max_length},
    })
}

pub(crate) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-int-or-string": true, "maxLength": 32})
}

/// A block of an earlier shape, taken in so that a rule can say where its content goes now.
pub(crate) fn retired_block(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// metav1.Condition, keyed by type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "What is judged.",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "type": "string",
                    "description": "True, False or Unknown.",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The metadata.generation that was judged.",
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "maxLength": 64,
                    "description": "When status changed last.",
                },
                "reason": {
                    "type": "string",
                    "description": "One word in CamelCase, for programs.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "type": "string",
                    "description": "For people.",
                    "maxLength": 32768,
                },
            },
        },
    })
}

/// A rule whose failure is reported on the value it stands on.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

/// A rule whose failure is reported as `<field>: Required value: <message>`.
pub(crate) fn required(field: &str, rule: &str, message: &str) -> Value {
    json!({
        "rule": rule,
        "message": message,
        "fieldPath": format!(".{field}"),
        "reason": "FieldValueRequired",
    })
}

/// A rule whose failure is reported as `<field>: Forbidden: <message>`.
pub(crate) fn forbidden(field: &str, rule: &str, message: &str) -> Value {
    json!({
        "rule": rule,
        "message": message,
        "fieldPath": format!(".{field}"),
        "reason": "FieldValueForbidden",
    })
}

/// As [`forbidden`], for a rule that stands on the field itself.
pub(crate) fn forbidden_here(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message, "reason": "FieldValueForbidden"})
}

/// The union rule: `type: <value>` needs the block of that name.
pub(crate) fn union(value: &str) -> Value {
    union_block(value, value)
}

/// As [`union`], for a block whose name is not the type's.
pub(crate) fn union_block(value: &str, block: &str) -> Value {
    required(
        block,
        &format!("self.type != '{value}' || has(self.{block})"),
        &format!("type {value} needs this block"),
    )
}

/// Implements [`schemars::JsonSchema`] for an enumeration of plain words as `type: string` with `enum`.
///
/// The words are listed by hand so that a variant kept only for reading can stay out of the schema.
macro_rules! words {
    ($type:ty, [$($word:literal),+ $(,)?]) => {
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::schema::one_of_words(&[$($word),+])
            }
        }
    };
}
pub(crate) use words;

pub(crate) fn one_of_words(words: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": words})
}
