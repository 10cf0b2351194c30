//! How a value is written where it lands: JSON, form, XML, header, URL.

mod url;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::de::IgnoredAny;
use serde_json::Value as Json;

pub(crate) use url::UrlWriter;

use super::EvalError;
use super::value::{Value, compact, escape_json};
use crate::secret::Buffer;

/// Everything but RFC 3986 unreserved characters is percent-encoded: form fields, query, fragment.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Writes text inside a JSON string literal.
pub(super) fn json_string(text: &str, out: &mut Buffer) {
    escape_json(text, |part| out.push_str(part));
}

/// Writes a value where a JSON value stands: text that is one JSON value as that, any other text as a string.
pub(super) fn json_value(value: &Value<'_>, text: &str, out: &mut Buffer) {
    match value {
        Value::Json(json) if !matches!(**json, Json::String(_)) => out.push_str(&compact(json)),
        _ if serde_json::from_str::<IgnoredAny>(text).is_ok() => out.push_str(text),
        _ => {
            out.push_str("\"");
            json_string(text, out);
            out.push_str("\"");
        }
    }
}

/// Writes a value of a form field.
pub(super) fn form(text: &str, out: &mut Buffer) {
    encode(text, STRICT, |part| out.push_str(part));
}

/// Writes text into XML: element content or an attribute's value.
pub(super) fn xml(text: &str, out: &mut Buffer) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&apos;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Checks a whole header value: control characters could end the header and begin another.
pub(super) fn check_header(value: &[u8]) -> Result<(), EvalError> {
    match value
        .iter()
        .find(|byte| (**byte < b' ' && **byte != b'\t') || **byte == 0x7f)
    {
        None => Ok(()),
        Some(byte) => {
            let name = match byte {
                b'\r' => "a carriage return".to_owned(),
                b'\n' => "a line feed".to_owned(),
                0 => "a NUL character".to_owned(),
                byte => format!("the control character {byte:#04x}"),
            };
            Err(EvalError::invalid_request(format!(
                "a header value contains {name}, which no header may hold"
            )))
        }
    }
}

fn encode<'t>(text: &'t str, set: &'static AsciiSet, mut push: impl FnMut(&'t str)) {
    for part in percent_encode(text.as_bytes(), set) {
        push(part);
    }
}
