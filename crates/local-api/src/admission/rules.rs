//! Validation rules of the schema.

use serde_json::Value;

use super::schema::{CheckedRule, Reason, Schema};
use crate::field::{FieldError, Path};

/// Evaluates every rule; of an update, for values that did not change only those that compare with the old value.
pub(super) fn check(
    schema: &Schema,
    path: &mut Path,
    value: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    if !schema.has_rules || value.is_null() {
        return;
    }
    let unchanged = old == Some(value);
    if unchanged && !schema.has_transitions {
        return;
    }
    for rule in &schema.rules {
        if !unchanged || rule.is_transition() {
            check_one(schema, rule, path, value, old, errors);
        }
    }
    match value {
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    let old = schema.old_item(item, old);
                    path.within_key(at, |path| check(inner, path, item, old, errors));
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let old = old.and_then(|old| old.get(key));
                if let Some(inner) = schema.properties.get(key) {
                    path.within(key, |path| check(inner, path, value, old, errors));
                } else if let Some(inner) = &schema.values {
                    path.within_key(key, |path| check(inner, path, value, old, errors));
                }
            }
        }
        _ => {}
    }
}

fn check_one(
    schema: &Schema,
    rule: &CheckedRule,
    path: &Path,
    value: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let shown = if rule.message.is_empty() {
        &rule.source
    } else {
        &rule.message
    };
    let compiled = match &rule.rule {
        Ok(compiled) => compiled,
        Err(error) => {
            errors.push(FieldError::invalid(
                path.shown(),
                schema.type_name(),
                format!("rule compile error: {error}"),
            ));
            return;
        }
    };
    match compiled.check(value, old) {
        Ok(true) => {}
        Ok(false) => {
            let field = match &rule.field {
                Some(field) => path.child(field),
                None => path.shown().to_owned(),
            };
            let message = if rule.message.is_empty() {
                format!("failed rule: {}", rule.source)
            } else {
                rule.message.clone()
            };
            errors.push(match rule.reason {
                Reason::Forbidden => FieldError::forbidden(field, message),
                Reason::Required => FieldError::required(field, message),
                Reason::Duplicate => {
                    let scalar = !value.is_object() && !value.is_array();
                    FieldError::duplicate(field, scalar.then(|| value.clone()))
                }
                Reason::Invalid if value.is_object() || value.is_array() => {
                    FieldError::invalid_whole(field, message)
                }
                Reason::Invalid => FieldError::invalid(field, value.clone(), message),
            });
        }
        Err(error) => errors.push(FieldError::invalid(
            path.shown(),
            schema.type_name(),
            format!("{error} evaluating rule: {shown}"),
        )),
    }
}
