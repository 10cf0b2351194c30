//! Lists whose items must differ.

use serde_json::{Map, Value};

use super::schema::{List, Schema};
use crate::field::{FieldError, Path};

/// Checks lists of type `set` and `map`. An object that broke the rule before may go on doing so.
pub(super) fn check(
    schema: &Schema,
    object: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    if !schema.has_keyed_lists {
        return;
    }
    let mut before = Vec::new();
    if let Some(old) = old {
        walk(schema, &mut Path::default(), old, &mut before);
    }
    if before.is_empty() {
        walk(schema, &mut Path::default(), object, errors);
    }
}

fn walk(schema: &Schema, path: &mut Path, value: &Value, errors: &mut Vec<FieldError>) {
    if !schema.has_keyed_lists {
        return;
    }
    match value {
        Value::Array(items) => {
            match &schema.list {
                List::Atomic => {}
                List::Set => repeated(path, items.iter().cloned(), errors),
                List::Map(keys) => {
                    let keyed = items.iter().map(|item| {
                        let present = keys
                            .iter()
                            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                        Value::Object(present.collect::<Map<_, _>>())
                    });
                    repeated(path, keyed, errors);
                }
            }
            if let Some(inner) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    path.within_key(at, |path| walk(inner, path, item, errors));
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(inner) = schema.properties.get(key) {
                    path.within(key, |path| walk(inner, path, value, errors));
                } else if let Some(inner) = &schema.values {
                    path.within_key(key, |path| walk(inner, path, value, errors));
                }
            }
        }
        _ => {}
    }
}

/// Reports the second of each group of equal values.
fn repeated(path: &mut Path, values: impl Iterator<Item = Value>, errors: &mut Vec<FieldError>) {
    let mut seen: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for (at, value) in values.enumerate() {
        let times = seen.entry(crate::field::go_json(&value)).or_default();
        *times += 1;
        if *times == 2 {
            path.within_key(at, |path| {
                errors.push(FieldError::duplicate(path.as_str(), Some(value)));
            });
        }
    }
}
