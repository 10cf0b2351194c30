//! The body of an event, read as what it is.

use serde_json::{Map, Value as Json};

use super::{Encoding, Event};

/// Typed access to an event's body.
///
/// A body whose content type is `application/x-www-form-urlencoded` is a form; JSON is tried on every other one, whatever
/// its content type, since brokers have none.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// JSON (RFC 8259), nested at most 128 deep.
    Json(Json),
    /// Fields of a form: a field given once is a string, one given several times an array of strings.
    Form(Json),
    /// Neither, or binary.
    Opaque,
}

impl Body {
    /// Reads an event's body.
    pub fn of(event: &Event) -> Self {
        if event.body.is_empty() || event.body_encoding == Encoding::Base64 {
            return Self::Opaque;
        }
        if is_form(&event.content_type) {
            return Self::Form(parse_form(&event.body));
        }
        match serde_json::from_str(&event.body) {
            Ok(json) => Self::Json(json),
            Err(_) => Self::Opaque,
        }
    }

    /// The fields: an object or array, or `None` when there is nothing to select from.
    pub fn fields(&self) -> Option<&Json> {
        match self {
            Self::Json(json) | Self::Form(json) if json.is_object() || json.is_array() => {
                Some(json)
            }
            _ => None,
        }
    }

    /// The value at a path such as `items.0.sku` or `items[0].sku`; `None` when there is none.
    pub fn get(&self, path: &str) -> Option<&Json> {
        let mut current = self.fields()?;
        for segment in segments(path) {
            current = match current {
                Json::Object(fields) => fields.get(segment)?,
                Json::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(current)
    }
}

/// The segments of `a.b[0].c`: `a`, `b`, `0`, `c`.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').flat_map(|dotted| {
        dotted
            .split('[')
            .enumerate()
            .filter(|(index, part)| *index == 0 || !part.is_empty())
            .map(|(index, part)| {
                if index == 0 {
                    part
                } else {
                    part.strip_suffix(']').unwrap_or(part)
                }
            })
    })
}

/// Whether a content type is a form's, whatever its case and parameters.
pub(crate) fn is_form(content_type: &str) -> bool {
    media_type(content_type).eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The media type without parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Parses `application/x-www-form-urlencoded` as the URL standard does: `+` is a space, broken escapes stay as they are.
fn parse_form(text: &str) -> Json {
    let mut fields: Map<String, Json> = Map::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = Json::String(decode(value));
        match fields.entry(decode(name)) {
            serde_json::map::Entry::Vacant(entry) => {
                entry.insert(value);
            }
            serde_json::map::Entry::Occupied(mut entry) => match entry.get_mut() {
                Json::Array(values) => values.push(value),
                first => *first = Json::Array(vec![first.take(), value]),
            },
        }
    }
    Json::Object(fields)
}

fn decode(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(content_type: &str, text: &str) -> Body {
        Body::of(&Event {
            content_type: content_type.to_owned(),
            body: text.to_owned(),
            ..Event::default()
        })
    }

    #[test]
    fn json_is_tried_on_every_body_that_is_not_a_form() {
        for content_type in ["", "text/plain", "application/json", "application/xml"] {
            let body = body(content_type, r#"{"items": [{"sku": "A1"}]}"#);
            assert_eq!(body.get("items.0.sku"), Some(&Json::from("A1")));
            assert_eq!(body.get("items[0].sku"), Some(&Json::from("A1")));
            assert_eq!(body.get("items.1.sku"), None);
            assert_eq!(body.get("items.x"), None);
        }
        assert_eq!(body("application/json", "not json"), Body::Opaque);
    }

    #[test]
    fn form_fields_are_decoded_and_repeated_ones_become_an_array() {
        let body = body(
            "Application/X-WWW-Form-Urlencoded; charset=utf-8",
            "name=J%C3%BCrgen+M&tag=a&tag=b&empty&=x",
        );
        assert_eq!(body.get("name"), Some(&Json::from("J\u{fc}rgen M")));
        assert_eq!(body.get("tag"), Some(&serde_json::json!(["a", "b"])));
        assert_eq!(body.get("tag.1"), Some(&Json::from("b")));
        assert_eq!(body.get("empty"), Some(&Json::from("")));
    }

    #[test]
    fn json_nested_too_deep_is_opaque() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(body("", &deep), Body::Opaque);
    }
}
