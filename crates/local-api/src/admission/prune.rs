//! Removing what a kind does not have.

use serde_json::Value;

use super::schema::Schema;

/// Removes every field that the schema does not name; gives their paths, sorted.
pub(super) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let Value::Object(map) = object else {
        return unknown;
    };
    map.retain(|key, value| {
        if matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            return true;
        }
        match schema.properties.get(key) {
            Some(inner) => {
                walk(inner, value, &mut key.clone(), &mut unknown);
                true
            }
            None if schema.preserve_unknown => true,
            None => {
                unknown.push(key.clone());
                false
            }
        }
    });
    unknown.sort();
    unknown
}

fn walk(schema: &Schema, value: &mut Value, path: &mut String, unknown: &mut Vec<String>) {
    let length = path.len();
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let inner = schema.properties.get(key).or(schema.values.as_deref());
            path.push('.');
            path.push_str(key);
            let keep = match inner {
                Some(inner) => {
                    walk(inner, value, path, unknown);
                    true
                }
                None if schema.preserve_unknown => true,
                None => {
                    unknown.push(path.clone());
                    false
                }
            };
            path.truncate(length);
            keep
        }),
        Value::Array(items) => {
            let Some(inner) = &schema.items else {
                return;
            };
            for (at, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{at}]"));
                walk(inner, item, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
