//! What happens to an object between the request and the store: unknown fields, defaults, schema, rules, metadata.
//!
//! The order is the real server's: nulls and unknown fields go, defaults come, then metadata, schema, list keys and last
//! the validation rules, which are not run when the shape is wrong. An update does not complain about what it leaves
//! unchanged.

mod builtin;
mod default;
mod lists;
pub(crate) mod metadata;
mod prune;
mod rules;
pub(crate) mod schema;
mod string_format;
mod validate;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::field::{FieldError, Path, Problem};
use crate::kinds::Kind;

/// What to do about fields that a kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Brings a decoded body into the kind's shape; gives the paths of fields it does not have.
///
/// # Errors
/// A field cannot be decoded at all: metadata of a wrong type, or any wrong type in a built-in kind.
pub(crate) fn decode(kind: &Kind, object: &mut Value) -> Result<Vec<String>, String> {
    normalise_numbers(object);
    let mut unknown = metadata::decode(object)?;
    unknown.extend(prune::prune(&kind.schema, object));
    default::drop_nulls(&kind.schema, object);
    if kind.builtin {
        builtin::decode(kind, object)?;
    }
    default::fill(&kind.schema, object);
    Ok(unknown)
}

/// Checks an object that is to be stored.
///
/// # Errors
/// With everything that is wrong with it.
pub(crate) fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Result<()> {
    let mut errors = Vec::new();
    metadata::check(kind, object, old, &mut errors);
    validate::validate(&kind.schema, &mut Path::default(), object, old, &mut errors);
    lists::check(&kind.schema, object, old, &mut errors);
    if kind.builtin {
        builtin::check(kind, object, old, &mut errors);
    } else if kind.schema.has_rules {
        if errors.iter().any(blocks_rules) {
            errors.push(FieldError::invalid(
                "<nil>",
                Value::Null,
                "some validation rules were not checked because the object was invalid; \
                 correct the existing errors to complete validation",
            ));
        } else {
            rules::check(&kind.schema, &mut Path::default(), object, old, &mut errors);
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Failure::invalid(kind, name, &errors))
    }
}

fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.problem,
        Problem::NotSupported
            | Problem::Required
            | Problem::TooLong
            | Problem::TooMany
            | Problem::TypeInvalid
    )
}

/// Writes whole floating numbers as integers, as the real server stores them.
fn normalise_numbers(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() < EXACT {
                #[allow(clippy::cast_possible_truncation)]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise_numbers),
        Value::Object(map) => map.values_mut().for_each(normalise_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
