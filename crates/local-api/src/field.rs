//! Errors of single fields, printed as the real server prints them.

use std::fmt;

use serde_json::{Value, json};

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Required,
    Duplicate,
    Invalid,
    /// The value's type is not the schema's.
    TypeInvalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
}

impl Problem {
    fn text(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }
}

/// One refused field.
#[derive(Clone, Debug)]
pub(crate) struct FieldError {
    pub(crate) problem: Problem,
    pub(crate) field: String,
    /// The refused value, where it is shown.
    value: Option<Value>,
    detail: String,
}

impl FieldError {
    fn new(
        problem: Problem,
        field: impl Into<String>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            problem,
            field: field.into(),
            value,
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(Problem::Invalid, field, Some(value.into()), detail)
    }

    /// As [`FieldError::invalid`], for an object or array, which is not printed.
    pub(crate) fn invalid_whole(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Invalid, field, None, detail)
    }

    pub(crate) fn type_invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(Problem::TypeInvalid, field, Some(value.into()), detail)
    }

    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Required, field, None, detail)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Problem::Forbidden, field, None, detail)
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: Option<Value>) -> Self {
        Self::new(Problem::Duplicate, field, value, "")
    }

    pub(crate) fn too_long(field: impl Into<String>, most: u64) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {unit}");
        Self::new(Problem::TooLong, field, None, detail)
    }

    pub(crate) fn too_many(field: impl Into<String>, actual: u64, most: u64) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        Self::new(Problem::TooMany, field, Some(actual.into()), detail)
    }

    pub(crate) fn not_supported(
        field: impl Into<String>,
        value: Value,
        supported: &[Value],
    ) -> Self {
        let words: Vec<String> = supported
            .iter()
            .map(|value| match value {
                Value::String(text) => quote(text),
                other => quote(&go_json(other)),
            })
            .collect();
        let detail = format!("supported values: {}", words.join(", "));
        Self::new(Problem::NotSupported, field, Some(value), detail)
    }

    /// The error without its field.
    pub(crate) fn body(&self) -> String {
        let mut body = self.problem.text().to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            match value {
                Value::String(text) => body.push_str(&quote(text)),
                other => body.push_str(&go_json(other)),
            }
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    /// The error as a cause in a Status' details.
    pub(crate) fn cause(&self) -> Value {
        json!({"reason": self.problem.cause(), "message": self.body(), "field": self.field})
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A path into an object, grown and cut while walking.
///
/// The schema's own messages write map keys with a dot (`spec.headers.X-A`), those of validation rules in brackets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as it stands before a message; the root prints as Go's nil.
    pub(crate) fn shown(&self) -> &str {
        if self.0.is_empty() { "<nil>" } else { &self.0 }
    }

    pub(crate) fn child(&self, name: &str) -> String {
        if self.0.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.0)
        }
    }

    pub(crate) fn within<R>(&mut self, name: &str, walk: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        let result = walk(self);
        self.0.truncate(length);
        result
    }

    pub(crate) fn within_key<R>(
        &mut self,
        key: impl fmt::Display,
        walk: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let length = self.0.len();
        self.0.push_str(&format!("[{key}]"));
        let result = walk(self);
        self.0.truncate(length);
        result
    }
}

/// Quotes as Go's `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            control if (control as u32) < 0x20 || control as u32 == 0x7f => {
                quoted.push_str(&format!("\\x{:02x}", control as u32));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// JSON as Go writes it: keys sorted, `<`, `>` and `&` escaped.
pub(crate) fn go_json(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                keys.into_iter()
                    .map(|key| (key.clone(), sorted(&map[key])))
                    .collect()
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    sorted(value)
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_the_real_servers() {
        let error = FieldError::not_supported(
            "spec.type",
            "foo".into(),
            &["webhook".into(), "cron".into()],
        );
        assert_eq!(
            error.to_string(),
            r#"spec.type: Unsupported value: "foo": supported values: "webhook", "cron""#
        );
        assert_eq!(
            FieldError::duplicate("spec.steps[1]", Some(json!({"name": "a<b"}))).to_string(),
            r#"spec.steps[1]: Duplicate value: {"name":"a\u003cb"}"#
        );
        assert_eq!(
            FieldError::too_many("spec.steps", 129, 128).to_string(),
            "spec.steps: Too many: 129: must have at most 128 items"
        );
        assert_eq!(
            FieldError::required("spec.flowRef", "").to_string(),
            "spec.flowRef: Required value"
        );
    }
}
