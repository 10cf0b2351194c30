//! A structural schema, compiled once.

use std::collections::BTreeMap;

use kubezap_engine::expression::cel::Rule;
use regex::Regex;
use serde_json::{Map, Value};

use super::string_format::Format;

/// One node of a schema.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub(crate) types: Vec<Type>,
    pub(crate) nullable: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) properties: BTreeMap<String, Schema>,
    /// Schema of the values of a map.
    pub(crate) values: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) one_of: Vec<Value>,
    pub(crate) default: Option<Value>,
    pub(crate) format: Option<Format>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) unique_items: bool,
    pub(crate) list: List,
    pub(crate) rules: Vec<CheckedRule>,
    /// Whether there is a rule here or below.
    pub(crate) has_rules: bool,
    /// Whether there is a rule here or below that compares with the old value.
    pub(crate) has_transitions: bool,
    /// Whether there is a default below.
    pub(crate) has_defaults: bool,
    /// Whether there is a list with keys here or below.
    pub(crate) has_keyed_lists: bool,
}

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
}

impl Type {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [
            Self::Array,
            Self::Boolean,
            Self::Integer,
            Self::Number,
            Self::Object,
            Self::String,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    /// The type of a value; `None` for null.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        })
    }
}

/// A pattern with its text, for messages.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    /// `None` when it does not compile: nothing matches then.
    pub(crate) regex: Option<Regex>,
}

/// A bound of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    pub(crate) exclusive: bool,
}

/// How the items of a list are told apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum List {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// A rule of `x-kubernetes-validations`.
#[derive(Debug)]
pub(crate) struct CheckedRule {
    pub(crate) source: String,
    pub(crate) message: String,
    /// Where the error is reported, below the node.
    pub(crate) field: Option<String>,
    pub(crate) reason: Reason,
    /// What compiling it gave.
    pub(crate) rule: Result<Rule, String>,
}

/// How a failed rule is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// Keywords that change what is accepted and that this server does not implement. The kinds served do not use them;
/// [`Schema::compile`] refuses those that do.
const NOT_IMPLEMENTED: &[&str] = &[
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "$ref",
    "x-kubernetes-embedded-resource",
];

impl Schema {
    /// Compiles a schema of a CustomResourceDefinition.
    ///
    /// # Panics
    /// On a keyword that is not implemented here: better no server than one that accepts more than the real one.
    pub(crate) fn compile(document: &Value) -> Self {
        let mut schema = Self::node(document);
        schema.sum_up();
        schema
    }

    fn node(document: &Value) -> Self {
        for keyword in NOT_IMPLEMENTED {
            assert!(
                document.get(keyword).is_none(),
                "the local API does not implement the schema keyword {keyword}"
            );
        }
        let number = |key: &str| document.get(key).and_then(Value::as_u64);
        let flag = |key: &str| document.get(key).and_then(Value::as_bool).unwrap_or(false);
        let text = |key: &str| document.get(key).and_then(Value::as_str);
        let child = |key: &str| {
            document
                .get(key)
                .filter(|inner| inner.is_object())
                .map(|inner| Box::new(Self::node(inner)))
        };
        let bound = |key: &str, exclusive: &str| {
            document
                .get(key)
                .and_then(Value::as_f64)
                .map(|value| Bound {
                    value,
                    exclusive: flag(exclusive),
                })
        };
        let words = |key: &str| -> Vec<String> {
            let list = document.get(key).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect()
        };
        let types = if flag("x-kubernetes-int-or-string") {
            vec![Type::Integer, Type::String]
        } else {
            text("type").and_then(Type::parse).into_iter().collect()
        };
        Self {
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields")
                || flag("additionalProperties"),
            properties: document
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, inner)| (name.clone(), Self::node(inner)))
                .collect(),
            values: child("additionalProperties"),
            items: child("items"),
            required: words("required"),
            one_of: document
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            default: document.get("default").cloned(),
            format: text("format").and_then(Format::parse),
            pattern: text("pattern").map(|text| Pattern {
                text: text.to_owned(),
                regex: Regex::new(text).ok(),
            }),
            min_length: number("minLength"),
            max_length: number("maxLength"),
            min_items: number("minItems"),
            max_items: number("maxItems"),
            min_properties: number("minProperties"),
            max_properties: number("maxProperties"),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: document.get("multipleOf").and_then(Value::as_f64),
            unique_items: flag("uniqueItems"),
            list: match text("x-kubernetes-list-type") {
                Some("set") => List::Set,
                Some("map") => List::Map(words("x-kubernetes-list-map-keys")),
                _ => List::Atomic,
            },
            rules: document
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .map(CheckedRule::new)
                .collect(),
            types,
            ..Self::default()
        }
    }

    fn sum_up(&mut self) {
        self.has_rules = !self.rules.is_empty();
        self.has_transitions = self.rules.iter().any(CheckedRule::is_transition);
        self.has_keyed_lists = self.list != List::Atomic;
        let below = self
            .properties
            .values_mut()
            .chain(self.values.as_deref_mut())
            .chain(self.items.as_deref_mut());
        for inner in below {
            inner.sum_up();
            self.has_rules |= inner.has_rules;
            self.has_transitions |= inner.has_transitions;
            self.has_defaults |= inner.has_defaults || inner.default.is_some();
            self.has_keyed_lists |= inner.has_keyed_lists;
        }
    }

    /// The name of the node's type as messages of rules print it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.types.as_slice() {
            [one] => one.name(),
            _ => "",
        }
    }

    /// The old item that an item of a list with keys replaces.
    pub(crate) fn old_item<'v>(&self, item: &Value, old: Option<&'v Value>) -> Option<&'v Value> {
        let List::Map(keys) = &self.list else {
            return None;
        };
        old?.as_array()?
            .iter()
            .find(|candidate| keys.iter().all(|key| candidate.get(key) == item.get(key)))
    }
}

impl CheckedRule {
    fn new(document: &Map<String, Value>) -> Self {
        let text = |key: &str| document.get(key).and_then(Value::as_str);
        let source = text("rule").unwrap_or_default().trim().to_owned();
        Self {
            rule: Rule::compile(&source).map_err(|error| error.to_string()),
            message: text("message").unwrap_or_default().trim().to_owned(),
            field: text("fieldPath").map(|path| path.trim_start_matches('.').to_owned()),
            reason: match text("reason") {
                Some("FieldValueForbidden") => Reason::Forbidden,
                Some("FieldValueRequired") => Reason::Required,
                Some("FieldValueDuplicate") => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            source,
        }
    }

    pub(crate) fn is_transition(&self) -> bool {
        self.rule.as_ref().is_ok_and(Rule::is_transition)
    }
}
