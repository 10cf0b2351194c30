//! Types, enumerations, patterns and bounds.

use serde_json::{Map, Number, Value};

use super::schema::{Bound, Schema, Type};
use super::string_format::Format;
use crate::field::{FieldError, Path};

/// Checks a value; of an update, only what changed.
pub(super) fn validate(
    schema: &Schema,
    path: &mut Path,
    value: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    if old == Some(value) {
        return;
    }
    check_type(schema, path, value, errors);
    match value {
        Value::String(text) => check_string(schema, path, text, errors),
        Value::Number(number) => check_number(schema, path, number, errors),
        Value::Array(items) => check_array(schema, path, items, old, errors),
        _ => {}
    }
    if !schema.one_of.is_empty() && !schema.one_of.contains(value) {
        errors.push(FieldError::not_supported(
            path.shown(),
            value.clone(),
            &schema.one_of,
        ));
    }
    if let Value::Object(map) = value {
        check_object(schema, path, map, old, errors);
    }
}

fn check_type(schema: &Schema, path: &Path, value: &Value, errors: &mut Vec<FieldError>) {
    if schema.types.is_empty() {
        return;
    }
    let actual = match Type::of(value) {
        None if schema.nullable => return,
        None => "null",
        Some(actual) => {
            let fits = schema.types.contains(&actual)
                || (actual == Type::Integer && schema.types.contains(&Type::Number));
            if fits {
                return;
            }
            actual.name()
        }
    };
    let wanted: Vec<&str> = schema.types.iter().map(|kind| kind.name()).collect();
    errors.push(FieldError::type_invalid(
        path.shown(),
        actual,
        format!(
            "{} in body must be of type {}: \"{actual}\"",
            path.as_str(),
            wanted.join(",")
        ),
    ));
}

fn check_string(schema: &Schema, path: &Path, text: &str, errors: &mut Vec<FieldError>) {
    let length = || text.chars().count() as u64;
    if let Some(most) = schema.max_length
        && text.len() as u64 > most
        && length() > most
    {
        errors.push(FieldError::too_long(path.shown(), most));
    } else if let Some(least) = schema.min_length
        && length() < least
    {
        errors.push(FieldError::invalid(
            path.shown(),
            text,
            format!(
                "{} in body should be at least {least} chars long",
                path.as_str()
            ),
        ));
    } else if let Some(pattern) = &schema.pattern
        && !pattern
            .regex
            .as_ref()
            .is_some_and(|regex| regex.is_match(text))
    {
        errors.push(FieldError::invalid(
            path.shown(),
            text,
            format!("{} in body should match '{}'", path.as_str(), pattern.text),
        ));
    }
    if let Some(format) = schema.format
        && !format.matches(text)
    {
        errors.push(FieldError::type_invalid(
            path.shown(),
            text,
            format!(
                "{} in body must be of type {}: {}",
                path.as_str(),
                format.name(),
                crate::field::quote(text)
            ),
        ));
    }
}

fn check_number(schema: &Schema, path: &Path, number: &Number, errors: &mut Vec<FieldError>) {
    let value = number.as_f64().unwrap_or(f64::NAN);
    let invalid =
        |detail: String| FieldError::invalid(path.shown(), Value::Number(number.clone()), detail);
    if schema.types == [Type::Integer]
        && schema.format == Some(Format::Int32)
        && number
            .as_i64()
            .is_none_or(|whole| i32::try_from(whole).is_err())
        && !number.is_f64()
    {
        errors.push(FieldError::invalid(
            "<nil>",
            "",
            format!(
                "Checked value must be of type integer with format int32 in {}",
                path.as_str()
            ),
        ));
    }
    if let Some(factor) = schema.multiple_of
        && (value / factor).fract() != 0.0
    {
        errors.push(invalid(format!(
            "{} in body should be a multiple of {factor}",
            path.as_str()
        )));
    }
    if let Some(Bound {
        value: least,
        exclusive,
    }) = schema.minimum
        && (value < least || (exclusive && value <= least))
    {
        let or_equal = if exclusive { "" } else { " or equal to" };
        errors.push(invalid(format!(
            "{} in body should be greater than{or_equal} {least}",
            path.as_str()
        )));
    }
    if let Some(Bound {
        value: most,
        exclusive,
    }) = schema.maximum
        && (value > most || (exclusive && value >= most))
    {
        let or_equal = if exclusive { "" } else { " or equal to" };
        errors.push(invalid(format!(
            "{} in body should be less than{or_equal} {most}",
            path.as_str()
        )));
    }
}

fn check_array(
    schema: &Schema,
    path: &mut Path,
    items: &[Value],
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(inner) = &schema.items {
        for (at, item) in items.iter().enumerate() {
            let old = schema.old_item(item, old);
            path.within_key(at, |path| validate(inner, path, item, old, errors));
        }
    }
    let size = items.len() as u64;
    if let Some(least) = schema.min_items
        && size < least
    {
        errors.push(FieldError::invalid(
            path.shown(),
            size,
            format!(
                "{} in body should have at least {least} items",
                path.as_str()
            ),
        ));
    }
    if let Some(most) = schema.max_items
        && size > most
    {
        errors.push(FieldError::too_many(path.shown(), size, most));
    }
    if schema.unique_items
        && items
            .iter()
            .enumerate()
            .any(|(at, item)| items[..at].contains(item))
    {
        errors.push(FieldError::invalid(
            path.shown(),
            "",
            format!("{} in body shouldn't contain duplicates", path.as_str()),
        ));
    }
}

fn check_object(
    schema: &Schema,
    path: &mut Path,
    map: &Map<String, Value>,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    let size = map.len() as u64;
    if let Some(least) = schema.min_properties
        && size < least
    {
        errors.push(FieldError::invalid(
            path.shown(),
            size,
            format!(
                "{} in body should have at least {least} properties",
                path.as_str()
            ),
        ));
    }
    if let Some(most) = schema.max_properties
        && size > most
    {
        errors.push(FieldError::too_many(path.shown(), size, most));
    }
    if let Some(inner) = &schema.values {
        for (key, value) in map {
            if !schema.properties.contains_key(key) {
                let old = old.and_then(|old| old.get(key));
                path.within(key, |path| validate(inner, path, value, old, errors));
            }
        }
    }
    for (name, inner) in &schema.properties {
        if let Some(value) = map.get(name) {
            let old = old.and_then(|old| old.get(name));
            path.within(name, |path| validate(inner, path, value, old, errors));
        }
    }
    for name in &schema.required {
        if !map.contains_key(name) {
            errors.push(FieldError::required(path.child(name), ""));
        }
    }
}
