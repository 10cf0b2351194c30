//! What an evaluation's error says to the author.

use ::cel::{ExecutionError, Value};

use crate::expression::quote;

/// One sentence about an error: types instead of values, since the crate would print whole maps in the order of their
/// hashes, and what an event holds does not belong into a status.
pub(super) fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => format!(
            "'{operator}' cannot be applied to {} and {}",
            type_of(left),
            type_of(right)
        ),
        ExecutionError::ValuesNotComparable(left, right) => {
            format!(
                "{} and {} cannot be compared",
                type_of(left),
                type_of(right)
            )
        }
        ExecutionError::UnsupportedIndex(index, value) => {
            format!(
                "{} cannot be indexed with {}",
                type_of(value),
                type_of(index)
            )
        }
        ExecutionError::UnsupportedKeyType(key) => {
            format!("{} cannot be a key of a map", type_of(key))
        }
        ExecutionError::DuplicateKey(_) => "a map has the same key twice".to_owned(),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => {
            format!("the index {index} is out of bounds")
        }
        ExecutionError::IndexOutOfBounds(_) => "an index is out of bounds".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "remainder by zero".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("the result of '{operator}' overflows"),
        ExecutionError::UnsupportedTargetType { target } => {
            format!("a value of type {} cannot be used here", type_of(target))
        }
        ExecutionError::NotSupportedAsMethod { method, target } => {
            format!("'{method}' cannot be called on {}", type_of(target))
        }
        ExecutionError::NoSuchKey(name) => {
            format!("no such key: {}; guard it with has() or .?", quote(name))
        }
        other => quote(&lower_first(&other.to_string())),
    }
}

fn type_of(value: &Value) -> String {
    value.type_of().to_string()
}

/// The crate's messages begin in upper case.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}
