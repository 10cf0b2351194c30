//! Defaults, and nulls that stand for an absent value.

use serde_json::Value;

use super::schema::Schema;

/// Drops nulls from maps where the schema neither allows null nor has a default to put in their place.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let Some(inner) = schema.properties.get(key).or(schema.values.as_deref()) else {
                return true;
            };
            if value.is_null() && !inner.nullable && inner.default.is_none() {
                return false;
            }
            drop_nulls(inner, value);
            true
        }),
        Value::Array(list) => {
            if let Some(inner) = &schema.items {
                list.iter_mut().for_each(|item| drop_nulls(inner, item));
            }
        }
        _ => {}
    }
}

/// Fills in defaults, also inside of what a default brought.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    if !schema.has_defaults {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, inner) in &schema.properties {
                let Some(default) = &inner.default else {
                    continue;
                };
                match map.get(name) {
                    None => {
                        map.insert(name.clone(), default.clone());
                    }
                    Some(Value::Null) if !inner.nullable => {
                        map.insert(name.clone(), default.clone());
                    }
                    Some(_) => {}
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(inner) = schema.properties.get(key) {
                    fill(inner, value);
                } else if let Some(inner) = &schema.values {
                    replace_null(inner, value);
                    fill(inner, value);
                }
            }
        }
        Value::Array(list) => {
            if let Some(inner) = &schema.items {
                for item in list {
                    replace_null(inner, item);
                    fill(inner, item);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}
