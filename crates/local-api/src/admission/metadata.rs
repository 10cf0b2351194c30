//! `metadata`: decoding and checking what every kind has.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::field::FieldError;
use crate::kinds::Kind;

const FIELDS: &[(&str, Shape)] = &[
    ("annotations", Shape::Strings),
    ("creationTimestamp", Shape::Text),
    ("deletionGracePeriodSeconds", Shape::Number),
    ("deletionTimestamp", Shape::Text),
    ("finalizers", Shape::List),
    ("generateName", Shape::Text),
    ("generation", Shape::Number),
    ("labels", Shape::Strings),
    ("managedFields", Shape::List),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("ownerReferences", Shape::List),
    ("resourceVersion", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
];

const OWNER_FIELDS: &[&str] = &[
    "apiVersion",
    "blockOwnerDeletion",
    "controller",
    "kind",
    "name",
    "uid",
];

/// Bytes that all annotations of an object may hold together.
const ANNOTATIONS_LIMIT: u64 = 256 * 1024;

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Text,
    Number,
    Strings,
    List,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_i64(),
            Self::Strings => value
                .as_object()
                .is_some_and(|map| map.values().all(Value::is_string)),
            Self::List => value.is_array(),
        }
    }

    fn go_type(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "int64",
            Self::Strings => "map[string]string",
            Self::List => "[]",
        }
    }
}

/// Brings metadata into shape; gives the paths of unknown fields. `managedFields` are not kept.
///
/// # Errors
/// A field has a wrong type.
pub(super) fn decode(object: &mut Value) -> Result<Vec<String>, String> {
    let Some(root) = object.as_object_mut() else {
        return Err("the object is no JSON object".to_owned());
    };
    let metadata = root
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(wrong_type("metadata", "ObjectMeta"));
    };
    let mut unknown = Vec::new();
    let mut wrong = None;
    metadata.retain(|key, value| {
        let Some((_, shape)) = FIELDS.iter().find(|(name, _)| name == key) else {
            unknown.push(format!("metadata.{key}"));
            return false;
        };
        if value.is_null() || key == "managedFields" || key == "selfLink" {
            return false;
        }
        if *shape == Shape::Strings
            && let Some(map) = value.as_object_mut()
        {
            // Go decodes a null into the empty string.
            for value in map.values_mut().filter(|value| value.is_null()) {
                *value = "".into();
            }
        }
        if !shape.fits(value) {
            wrong.get_or_insert_with(|| wrong_type(&format!("metadata.{key}"), shape.go_type()));
        }
        !is_empty(value)
    });
    for owner in list_mut(metadata, "ownerReferences") {
        let Some(owner) = owner.as_object_mut() else {
            return Err(wrong_type("metadata.ownerReferences", "OwnerReference"));
        };
        owner.retain(|key, value| {
            let known = OWNER_FIELDS.contains(&key.as_str());
            if !known {
                unknown.push(format!("metadata.ownerReferences.{key}"));
            }
            known && !value.is_null()
        });
    }
    if !list_mut(metadata, "finalizers")
        .iter()
        .all(Value::is_string)
    {
        return Err(wrong_type("metadata.finalizers", "string"));
    }
    unknown.sort();
    wrong.map_or(Ok(unknown), Err)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn list_mut<'m>(metadata: &'m mut Map<String, Value>, key: &str) -> &'m mut [Value] {
    metadata
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

pub(super) fn wrong_type(field: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal value into Go struct field .{field} of type {wanted}")
}

/// Checks the metadata of an object that is to be stored.
pub(super) fn check(
    kind: &Kind,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let metadata = &object["metadata"];
    if let Some(old) = old {
        check_change(metadata, &old["metadata"], errors);
    } else {
        check_names(kind, metadata, errors);
    }
    if old.is_some_and(|old| old["metadata"] == *metadata) {
        return;
    }
    check_labels(metadata, errors);
    check_annotations(metadata, errors);
    check_owners(metadata, errors);
    for finalizer in strings(metadata, "finalizers") {
        for message in label_key_problems(finalizer) {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                finalizer,
                message,
            ));
        }
    }
}

fn check_names(kind: &Kind, metadata: &Value, errors: &mut Vec<FieldError>) {
    let label_only = kind.builtin && kind.plural == "namespaces";
    if let Some(prefix) = metadata["generateName"].as_str() {
        // What is appended ends with a letter or digit, so the prefix may end with a hyphen.
        let masked = prefix
            .strip_suffix('-')
            .map_or_else(|| prefix.to_owned(), |cut| format!("{cut}a"));
        for message in name_problems(&masked, label_only) {
            errors.push(FieldError::invalid(
                "metadata.generateName",
                prefix,
                message,
            ));
        }
    }
    match metadata["name"].as_str() {
        None | Some("") => errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        )),
        Some(name) => {
            for message in name_problems(name, label_only) {
                errors.push(FieldError::invalid("metadata.name", name, message));
            }
        }
    }
}

fn check_change(metadata: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if !old["deletionTimestamp"].is_null() {
        let before: Vec<&str> = strings(old, "finalizers").collect();
        let added: Vec<String> = strings(metadata, "finalizers")
            .filter(|name| !before.contains(name))
            .map(crate::field::quote)
            .collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        if metadata[field] != old[field] {
            errors.push(FieldError::invalid(
                format!("metadata.{field}"),
                metadata[field].clone(),
                "field is immutable",
            ));
        }
    }
}

fn check_labels(metadata: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        for message in label_key_problems(key) {
            errors.push(FieldError::invalid(
                "metadata.labels",
                key.as_str(),
                message,
            ));
        }
        let value = value.as_str().unwrap_or_default();
        for message in label_value_problems(value) {
            errors.push(FieldError::invalid("metadata.labels", value, message));
        }
    }
}

fn check_annotations(metadata: &Value, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        for message in label_key_problems(&key.to_lowercase()) {
            errors.push(FieldError::invalid(
                "metadata.annotations",
                key.as_str(),
                message,
            ));
        }
        size += key.len() as u64 + value.as_str().map_or(0, |text| text.len() as u64);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            ANNOTATIONS_LIMIT,
        ));
    }
}

fn check_owners(metadata: &Value, errors: &mut Vec<FieldError>) {
    let owners = metadata["ownerReferences"].as_array();
    let mut controller: Option<String> = None;
    for (at, owner) in owners.into_iter().flatten().enumerate() {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        if text("apiVersion").is_empty() {
            errors.push(FieldError::invalid(
                "metadata.ownerReferences.apiVersion",
                "",
                "version must not be empty",
            ));
        }
        for key in ["kind", "name", "uid"] {
            if text(key).is_empty() {
                errors.push(FieldError::invalid(
                    format!("metadata.ownerReferences.{key}"),
                    "",
                    "must not be empty",
                ));
            }
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => errors.push(FieldError::invalid(
                    "metadata.ownerReferences",
                    owners.map_or(Value::Null, |list| list[..=at].to_vec().into()),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    ),
                )),
            }
        }
    }
}

pub(crate) fn strings<'v>(
    metadata: &'v Value,
    key: &str,
) -> impl Iterator<Item = &'v str> + use<'v> {
    metadata
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

static LABEL_REGEX: LazyLock<Regex> = LazyLock::new(|| whole(LABEL));
static SUBDOMAIN_REGEX: LazyLock<Regex> = LazyLock::new(|| whole(SUBDOMAIN));
static QUALIFIED_REGEX: LazyLock<Regex> = LazyLock::new(|| whole(QUALIFIED));

fn whole(pattern: &str) -> Regex {
    Regex::new(&format!("^(?:{pattern})$")).expect("a constant pattern")
}

fn name_problems(text: &str, label_only: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let most = if label_only { 63 } else { 253 };
    if text.len() > most {
        problems.push(format!("must be no more than {most} bytes"));
    }
    if label_only && !LABEL_REGEX.is_match(text) {
        problems.push(if SUBDOMAIN_REGEX.is_match(text) {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
            )
        });
    } else if !label_only && !SUBDOMAIN_REGEX.is_match(text) {
        problems.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
        ));
    }
    problems
}

/// What is wrong with the key of a label.
pub(crate) fn label_key_problems(key: &str) -> Vec<String> {
    const EXAMPLES: &str = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let found = name_problems(prefix, false);
                problems.extend(found.into_iter().map(|text| format!("prefix part {text}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {RULE} {EXAMPLES} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !QUALIFIED_REGEX.is_match(name) {
        problems.push(format!("name part {RULE} {EXAMPLES}"));
    }
    problems
}

/// What is wrong with the value of a label.
pub(crate) fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !QUALIFIED_REGEX.is_match(value) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}
