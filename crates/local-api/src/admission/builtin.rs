//! The few rules of Kubernetes' own kinds that KubeZap can run into.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Map, Value};

use super::metadata::wrong_type;
use super::validate;
use crate::field::{FieldError, Path, Problem};
use crate::kinds::Kind;

static CONFIG_KEY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^[-._a-zA-Z0-9]+$").expect("a constant pattern"));

/// Decodes into the kind's Go type: wrong types are refused; a Secret's `stringData` moves into `data`.
pub(super) fn decode(kind: &Kind, object: &mut Value) -> Result<(), String> {
    let mut errors = Vec::new();
    validate::validate(
        &kind.schema,
        &mut Path::default(),
        object,
        None,
        &mut errors,
    );
    let wrong = errors
        .iter()
        .find(|error| error.problem == Problem::TypeInvalid);
    if let Some(error) = wrong {
        return Err(wrong_type(
            &format!("{}.{}", kind.kind, error.field),
            "another type",
        ));
    }
    match kind.plural.as_str() {
        "secrets" => {
            if let Some(plain) = object
                .as_object_mut()
                .and_then(|map| map.shift_remove("stringData"))
            {
                let data = entry(object, "data");
                for (key, value) in plain.as_object().into_iter().flatten() {
                    let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
                    data.insert(key.clone(), encoded.into());
                }
            }
            if object["type"].as_str().unwrap_or_default().is_empty() {
                object["type"] = "Opaque".into();
            }
        }
        "namespaces" => {
            if object["spec"]["finalizers"].is_null() {
                entry(object, "spec").insert(
                    "finalizers".to_owned(),
                    vec![Value::from("kubernetes")].into(),
                );
            }
            if let Some(name) = object["metadata"]["name"].as_str().map(str::to_owned) {
                let metadata = entry(object, "metadata");
                let labels = metadata
                    .entry("labels")
                    .or_insert_with(|| Value::Object(Map::new()));
                labels["kubernetes.io/metadata.name"] = name.into();
            }
        }
        _ => {}
    }
    Ok(())
}

fn entry<'v>(object: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    if !object[key].is_object() {
        object[key] = Value::Object(Map::new());
    }
    match &mut object[key] {
        Value::Object(map) => map,
        _ => unreachable!("it was just made an object"),
    }
}

/// Checks an object that is to be stored.
pub(super) fn check(
    kind: &Kind,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    match kind.plural.as_str() {
        "secrets" | "configmaps" => check_data(object, old, errors),
        "controllerrevisions" => {
            if let Some(old) = old
                && old["data"] != object["data"]
            {
                errors.push(FieldError::invalid(
                    "data",
                    object["data"].clone(),
                    "field is immutable",
                ));
            }
            if object["revision"]
                .as_i64()
                .is_some_and(|revision| revision < 0)
            {
                errors.push(FieldError::invalid(
                    "revision",
                    object["revision"].clone(),
                    "must be greater than or equal to 0",
                ));
            }
        }
        "leases" => check_lease(object, errors),
        _ => {}
    }
}

fn check_data(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    for field in ["data", "binaryData"] {
        for key in object[field]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key)
        {
            if !CONFIG_KEY.is_match(key) || key.len() > 253 {
                errors.push(FieldError::invalid(
                    format!("{field}[{key}]"),
                    key.as_str(),
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
                ));
            }
        }
    }
    let Some(old) = old else {
        return;
    };
    if object["type"] != old["type"] {
        errors.push(FieldError::invalid(
            "type",
            object["type"].clone(),
            "field is immutable",
        ));
    }
    if old["immutable"] == true {
        if object["immutable"] != true {
            errors.push(FieldError::forbidden(
                "immutable",
                "field is immutable when `immutable` is set",
            ));
        }
        for field in ["data", "binaryData"] {
            if object[field] != old[field] {
                errors.push(FieldError::forbidden(
                    field,
                    "field is immutable when `immutable` is set",
                ));
            }
        }
    }
}

fn check_lease(object: &Value, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64()
        && seconds <= 0
    {
        errors.push(FieldError::invalid(
            "spec.leaseDurationSeconds",
            seconds,
            "must be greater than 0",
        ));
    }
    if let Some(count) = spec["leaseTransitions"].as_i64()
        && count < 0
    {
        errors.push(FieldError::invalid(
            "spec.leaseTransitions",
            count,
            "must be greater than or equal to 0",
        ));
    }
    if spec["holderIdentity"] == "" {
        errors.push(FieldError::invalid(
            "spec.holderIdentity",
            "",
            "must not be empty",
        ));
    }
}
