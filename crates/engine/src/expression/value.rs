//! What a reference or an expression gave, and its text.

use std::borrow::Cow;

use serde_json::{Number, Value as Json};

use crate::secret::Secret;

/// A value on its way into a template.
#[derive(Debug)]
pub(crate) enum Value<'a> {
    /// There is none: a missing field or result. Its text is empty.
    Missing,
    /// Text, or a scalar that is not JSON's.
    Text(Cow<'a, str>),
    /// A typed value.
    Json(Cow<'a, Json>),
    /// Text of a ConfigMap, written by whoever runs the installation.
    ConfigMap(&'a str),
    /// Bytes of a credential.
    Secret(&'a Secret),
}

impl Value<'_> {
    /// The text of a value that is not a credential; a credential's is empty.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Missing | Self::Secret(_) => Cow::Borrowed(""),
            Self::Text(text) => Cow::Borrowed(text),
            Self::ConfigMap(text) => Cow::Borrowed(text),
            Self::Json(json) => text_of(json),
        }
    }
}

/// The text of a JSON value: a string's own text, nothing for null, compact JSON for objects and arrays.
pub(crate) fn text_of(json: &Json) -> Cow<'_, str> {
    match json {
        Json::Null => Cow::Borrowed(""),
        Json::Bool(true) => Cow::Borrowed("true"),
        Json::Bool(false) => Cow::Borrowed("false"),
        Json::String(text) => Cow::Borrowed(text),
        Json::Number(number) => Cow::Owned(number_text(number)),
        Json::Array(_) | Json::Object(_) => Cow::Owned(compact(json)),
    }
}

/// A number in its shortest decimal form, without an exponent: `4850.00` is `4850`.
pub(crate) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() => double_text(double),
        _ => number.to_string(),
    }
}

/// See [`number_text`].
pub(crate) fn double_text(double: f64) -> String {
    if double == 0.0 {
        "0".to_owned()
    } else {
        double.to_string()
    }
}

/// JSON without spaces, fields in their order, numbers as [`number_text`] writes them.
pub(crate) fn compact(json: &Json) -> String {
    let mut out = String::new();
    write_compact(json, &mut out);
    out
}

fn write_compact(json: &Json, out: &mut String) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&number_text(number)),
        Json::String(text) => write_json_string(text, out),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_compact(item, out);
            }
            out.push(']');
        }
        Json::Object(fields) => {
            out.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_string(name, out);
                out.push(':');
                write_compact(value, out);
            }
            out.push('}');
        }
    }
}

fn write_json_string(text: &str, out: &mut String) {
    out.push('"');
    escape_json(text, |part| out.push_str(part));
    out.push('"');
}

/// Gives the parts of `text` as they stand inside a JSON string (RFC 8259 section 7).
pub(crate) fn escape_json(text: &str, mut push: impl FnMut(&str)) {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        push(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => push("\\\""),
            b'\\' => push("\\\\"),
            b'\n' => push("\\n"),
            b'\r' => push("\\r"),
            b'\t' => push("\\t"),
            0x08 => push("\\b"),
            0x0c => push("\\f"),
            control => push(&format!("\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    push(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortest_decimal_without_exponent() {
        for (json, text) in [
            ("4850.00", "4850"),
            ("1e3", "1000"),
            ("0.1", "0.1"),
            ("-0.0", "0"),
            ("1e21", "1000000000000000000000"),
            ("1.5e-7", "0.00000015"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            let json: Json = serde_json::from_str(json).unwrap();
            assert_eq!(text_of(&json), text);
        }
    }

    #[test]
    fn objects_are_compact_json_in_their_own_order() {
        let json: Json =
            serde_json::from_str(r#"{"b": [1.0, null, "a\"\u0001"], "a": {}}"#).unwrap();
        assert_eq!(text_of(&json), r#"{"b":[1,null,"a\"\u0001"],"a":{}}"#);
    }
}
