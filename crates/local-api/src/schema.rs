//! The schema of a custom kind: defaults, pruning, unknown fields, and validation with the real server's texts.

use std::collections::BTreeMap;

use kubezap_engine::expression::cel::Rule;
use serde_json::{Map, Value};

use crate::errors::Cause;

/// A compiled OpenAPI v3 schema.
#[derive(Debug)]
pub(crate) struct Schema {
    json: Value,
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    type_: String,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
    required: Vec<String>,
    default: Option<Value>,
    nullable: bool,
    int_or_string: bool,
    preserve: bool,
    choices: Vec<Value>,
    pattern: Option<(String, regex::Regex)>,
    length: (Option<usize>, Option<usize>),
    count: (Option<usize>, Option<usize>),
    entries: (Option<usize>, Option<usize>),
    range: (Option<f64>, Option<f64>),
    exclusive: (bool, bool),
    map_keys: Vec<String>,
    is_map_list: bool,
    is_set: bool,
    format: String,
    rules: Vec<CelRule>,
}

#[derive(Debug)]
struct CelRule {
    source: String,
    compiled: Result<Rule, String>,
    message: String,
    path: String,
    reason: &'static str,
}

impl Schema {
    pub(crate) fn new(json: Value) -> Self {
        Self {
            root: Node::read(&json),
            json,
        }
    }

    pub(crate) fn json(&self) -> &Value {
        &self.json
    }

    /// Fills in defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        self.root.fill(object);
    }

    /// Removes what the schema does not know, and names it.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        if let Some(fields) = object.as_object_mut() {
            for (name, value) in fields.iter_mut() {
                if let (false, Some(node)) = (is_envelope(name), self.root.properties.get(name)) {
                    node.prune(name, value, &mut unknown);
                }
            }
            fields.retain(|name, _| {
                let known = is_envelope(name)
                    || self.root.properties.contains_key(name)
                    || self.root.preserve;
                if !known {
                    unknown.push(name.clone());
                }
                known
            });
        }
        unknown
    }

    /// Everything that is wrong with an object; `old` is what it replaces.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.root.validate("", object, &mut causes);
        // The real server evaluates rules only on objects whose structure is sound.
        if causes.is_empty() {
            self.root.check_rules("", object, old, &mut causes);
        }
        causes
    }
}

fn is_envelope(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

impl Node {
    fn read(json: &Value) -> Self {
        let number = |key: &str| json[key].as_f64();
        let size = |key: &str| json[key].as_u64().map(|size| size as usize);
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
        let names = |key: &str| {
            list(key)
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Self {
            type_: text("type"),
            properties: json["properties"]
                .as_object()
                .map(|properties| {
                    properties
                        .iter()
                        .map(|(name, schema)| (name.clone(), Self::read(schema)))
                        .collect()
                })
                .unwrap_or_default(),
            additional: json["additionalProperties"]
                .is_object()
                .then(|| Box::new(Self::read(&json["additionalProperties"]))),
            items: json["items"]
                .is_object()
                .then(|| Box::new(Self::read(&json["items"]))),
            required: names("required"),
            default: json.get("default").cloned(),
            nullable: json["nullable"] == true,
            int_or_string: json["x-kubernetes-int-or-string"] == true,
            preserve: json["x-kubernetes-preserve-unknown-fields"] == true,
            choices: list("enum"),
            pattern: json["pattern"]
                .as_str()
                .and_then(|source| Some((source.to_owned(), regex::Regex::new(source).ok()?))),
            length: (size("minLength"), size("maxLength")),
            count: (size("minItems"), size("maxItems")),
            entries: (size("minProperties"), size("maxProperties")),
            range: (number("minimum"), number("maximum")),
            exclusive: (
                json["exclusiveMinimum"] == true,
                json["exclusiveMaximum"] == true,
            ),
            map_keys: names("x-kubernetes-list-map-keys"),
            is_map_list: json["x-kubernetes-list-type"] == "map",
            is_set: json["x-kubernetes-list-type"] == "set",
            format: text("format"),
            rules: list("x-kubernetes-validations")
                .iter()
                .map(CelRule::read)
                .collect(),
        }
    }

    fn fill(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, node) in &self.properties {
                    if let (Some(default), None) = (&node.default, fields.get(name)) {
                        fields.insert(name.clone(), default.clone());
                    }
                    // A null where none is allowed is dropped, and a default takes its place.
                    if fields.get(name).is_some_and(Value::is_null) && !node.nullable {
                        match &node.default {
                            Some(default) => fields.insert(name.clone(), default.clone()),
                            None => fields.shift_remove(name),
                        };
                    }
                    if let Some(child) = fields.get_mut(name) {
                        node.fill(child);
                    }
                }
                if let Some(node) = &self.additional {
                    fields
                        .iter_mut()
                        .filter(|(name, _)| !self.properties.contains_key(*name))
                        .for_each(|(_, child)| node.fill(child));
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    items.iter_mut().for_each(|item| node.fill(item));
                }
            }
            _ => {}
        }
    }

    fn prune(&self, path: &str, value: &mut Value, unknown: &mut Vec<String>) {
        match value {
            Value::Object(fields) if self.type_ == "object" => {
                for (name, child) in fields.iter_mut() {
                    let node = self.properties.get(name).or(self.additional.as_deref());
                    if let Some(node) = node {
                        node.prune(&format!("{path}.{name}"), child, unknown);
                    }
                }
                if self.additional.is_none() && !self.preserve {
                    fields.retain(|name, _| {
                        let known = self.properties.contains_key(name);
                        if !known {
                            unknown.push(format!("{path}.{name}"));
                        }
                        known
                    });
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    for (index, item) in items.iter_mut().enumerate() {
                        node.prune(&format!("{path}[{index}]"), item, unknown);
                    }
                }
            }
            _ => {}
        }
    }

    fn validate(&self, path: &str, value: &Value, causes: &mut Vec<Cause>) {
        let mut wrong = |reason: &'static str, message: String| {
            causes.push(Cause {
                field: path.to_owned(),
                reason,
                message,
            });
        };
        if value.is_null() && self.nullable {
            return;
        }
        if let Some(actual) = self.wrong_type(value) {
            return wrong(
                "FieldValueTypeInvalid",
                format!(
                    "Invalid value: \"{actual}\": {} in body must be of type {}: \"{actual}\"",
                    shown_path(path),
                    self.type_
                ),
            );
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let supported: Vec<_> = self.choices.iter().map(ToString::to_string).collect();
            wrong(
                "FieldValueNotSupported",
                format!(
                    "Unsupported value: {value}: supported values: {}",
                    supported.join(", ")
                ),
            );
        }
        let shown = shown_path(path);
        match value {
            Value::String(text) => {
                let length = text.chars().count();
                if let Some(max) = self.length.1.filter(|max| length > *max) {
                    wrong(
                        "FieldValueTooLong",
                        format!("Too long: may not be more than {max} bytes"),
                    );
                }
                if let Some(min) = self.length.0.filter(|min| length < *min) {
                    wrong(
                        "FieldValueInvalid",
                        format!(
                            "Invalid value: {value}: {shown} in body should be at least {min} chars long"
                        ),
                    );
                }
                if let Some((source, _)) = self
                    .pattern
                    .as_ref()
                    .filter(|(_, pattern)| !pattern.is_match(text))
                {
                    wrong(
                        "FieldValueInvalid",
                        format!("Invalid value: {value}: {shown} in body should match '{source}'"),
                    );
                }
                if self.format == "date-time" && text.parse::<jiff::Timestamp>().is_err() {
                    wrong(
                        "FieldValueInvalid",
                        format!(
                            "Invalid value: {value}: {shown} in body must be of type date-time: {value}"
                        ),
                    );
                }
            }
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                if let Some(min) = self
                    .range
                    .0
                    .filter(|min| number < *min || (self.exclusive.0 && number <= *min))
                {
                    let or_equal = if self.exclusive.0 {
                        "greater than"
                    } else {
                        "greater than or equal to"
                    };
                    wrong(
                        "FieldValueInvalid",
                        format!(
                            "Invalid value: {value}: {shown} in body should be {or_equal} {min}"
                        ),
                    );
                }
                if let Some(max) = self
                    .range
                    .1
                    .filter(|max| number > *max || (self.exclusive.1 && number >= *max))
                {
                    let or_equal = if self.exclusive.1 {
                        "less than"
                    } else {
                        "less than or equal to"
                    };
                    wrong(
                        "FieldValueInvalid",
                        format!(
                            "Invalid value: {value}: {shown} in body should be {or_equal} {max}"
                        ),
                    );
                }
            }
            Value::Array(items) => {
                if let Some(max) = self.count.1.filter(|max| items.len() > *max) {
                    wrong(
                        "FieldValueTooMany",
                        format!("Too many: {}: must have at most {max} items", items.len()),
                    );
                }
                if let Some(min) = self.count.0.filter(|min| items.len() < *min) {
                    wrong(
                        "FieldValueInvalid",
                        format!(
                            "Invalid value: {}: {shown} in body should have at least {min} items",
                            items.len()
                        ),
                    );
                }
                self.duplicates(path, items, causes);
                if let Some(node) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        node.validate(&format!("{path}[{index}]"), item, causes);
                    }
                }
            }
            Value::Object(fields) => {
                if let Some(max) = self.entries.1.filter(|max| fields.len() > *max) {
                    wrong(
                        "FieldValueTooMany",
                        format!("Too many: {}: must have at most {max} items", fields.len()),
                    );
                }
                if let Some(min) = self.entries.0.filter(|min| fields.len() < *min) {
                    wrong(
                        "FieldValueInvalid",
                        format!(
                            "Invalid value: {}: {shown} in body should have at least {min} properties",
                            fields.len()
                        ),
                    );
                }
                self.fields(path, fields, causes);
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn fields(&self, path: &str, fields: &Map<String, Value>, causes: &mut Vec<Cause>) {
        for name in self
            .required
            .iter()
            .filter(|name| !fields.contains_key(*name))
        {
            causes.push(Cause {
                field: join(path, name),
                reason: "FieldValueRequired",
                message: "Required value".to_owned(),
            });
        }
        for (name, value) in fields {
            if path.is_empty() && is_envelope(name) {
                continue;
            }
            if let Some(node) = self.properties.get(name) {
                node.validate(&join(path, name), value, causes);
            } else if let Some(node) = &self.additional {
                node.validate(&join(path, name), value, causes);
            }
        }
    }

    fn duplicates(&self, path: &str, items: &[Value], causes: &mut Vec<Cause>) {
        if !self.is_map_list && !self.is_set {
            return;
        }
        let mut seen: Vec<Value> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let key = if self.is_set {
                item.clone()
            } else {
                Value::Object(
                    self.map_keys
                        .iter()
                        .map(|key| (key.clone(), item[key].clone()))
                        .collect(),
                )
            };
            if seen.contains(&key) {
                causes.push(Cause {
                    field: format!("{path}[{index}]"),
                    reason: "FieldValueDuplicate",
                    message: format!("Duplicate value: {key}"),
                });
            }
            seen.push(key);
        }
    }

    /// The name of the value's type when it is not the schema's.
    fn wrong_type(&self, value: &Value) -> Option<&'static str> {
        let actual = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let fits = self.type_.is_empty()
            || self.type_ == actual
            || (self.type_ == "number" && actual == "integer")
            || (self.int_or_string && matches!(actual, "integer" | "string"));
        (!fits).then_some(actual)
    }

    fn check_rules(&self, path: &str, value: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
        for rule in &self.rules {
            rule.check(path, value, old, causes);
        }
        match value {
            Value::Object(fields) => {
                for (name, child) in fields {
                    let node = self.properties.get(name).or(self.additional.as_deref());
                    if let (Some(node), false) = (node, path.is_empty() && is_envelope(name)) {
                        node.check_rules(
                            &join(path, name),
                            child,
                            old.and_then(|old| old.get(name)),
                            causes,
                        );
                    }
                }
            }
            Value::Array(items) => {
                if let Some(node) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        // Only items of a list-map have a counterpart in the old list.
                        let before = old
                            .filter(|_| self.is_map_list)
                            .and_then(Value::as_array)
                            .and_then(|before| {
                                before.iter().find(|before| {
                                    self.map_keys.iter().all(|key| before[key] == item[key])
                                })
                            });
                        node.check_rules(&format!("{path}[{index}]"), item, before, causes);
                    }
                }
            }
            _ => {}
        }
    }
}

impl CelRule {
    fn read(json: &Value) -> Self {
        let source = json["rule"].as_str().unwrap_or_default().to_owned();
        Self {
            compiled: Rule::compile(&source).map_err(|error| error.to_string()),
            message: json["message"]
                .as_str()
                .map_or_else(|| format!("failed rule: {source}"), str::to_owned),
            path: json["fieldPath"].as_str().unwrap_or_default().to_owned(),
            reason: match json["reason"].as_str() {
                Some("FieldValueForbidden") => "FieldValueForbidden",
                Some("FieldValueRequired") => "FieldValueRequired",
                Some("FieldValueDuplicate") => "FieldValueDuplicate",
                _ => "FieldValueInvalid",
            },
            source,
        }
    }

    fn check(&self, path: &str, value: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
        let rule = match &self.compiled {
            Ok(rule) => rule,
            Err(error) => {
                return causes.push(Cause {
                    field: path.to_owned(),
                    reason: "InternalError",
                    message: format!(
                        "Internal error: the rule {} does not compile: {error}",
                        self.source
                    ),
                });
            }
        };
        if rule.is_transition() && old.is_none() {
            return;
        }
        let message = match rule.check(value, old) {
            Ok(true) => return,
            Ok(false) => self.message.clone(),
            Err(error) => format!("rule evaluation error: {error}: {}", self.source),
        };
        let field = if self.path.is_empty() {
            path.to_owned()
        } else {
            format!("{path}{}", self.path)
        };
        let message = match self.reason {
            "FieldValueForbidden" => format!("Forbidden: {message}"),
            "FieldValueRequired" => format!("Required value: {message}"),
            "FieldValueDuplicate" => format!("Duplicate value: {}: {message}", shown(value)),
            _ => format!("Invalid value: {}: {message}", shown(value)),
        };
        causes.push(Cause {
            field: if field.is_empty() {
                "<nil>".to_owned()
            } else {
                field
            },
            reason: self.reason,
            message,
        });
    }
}

/// A value as the real server quotes it: scalars as they are, the rest by its type.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        scalar => scalar.to_string(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn shown_path(path: &str) -> &str {
    path
}
