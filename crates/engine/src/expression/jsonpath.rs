//! Result mappings by JSONPath (RFC 9535).

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value as Json;
use serde_json_path::JsonPath;

use super::stack::with_stack;
use super::value::{compact, text_of};
use super::{EvalError, ParseError, quote};

/// The most bytes a mapping may have.
const MAX_SOURCE: usize = 512;
/// The most filters inside each other.
const MAX_FILTERS: usize = 3;
/// The most parentheses inside each other.
const MAX_PARENTHESES: usize = 32;
/// The most descendant segments; each may visit the whole body once per node of the one before.
const MAX_DESCENDANTS: usize = 2;

/// What parsing and evaluating within these bounds needs.
const STACK: usize = 2 << 20;

/// A parsed result mapping.
#[derive(Clone, Debug)]
pub struct ResultMapping {
    source: Arc<str>,
    path: Arc<JsonPath>,
}

/// A response's body, read as JSON at most once.
#[derive(Debug)]
pub struct ParsedBody<'b> {
    bytes: &'b [u8],
    json: OnceCell<Option<Json>>,
}

impl<'b> ParsedBody<'b> {
    /// Nothing is read until a mapping needs it.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes,
            json: OnceCell::new(),
        }
    }

    fn json(&self) -> Option<&Json> {
        self.json
            .get_or_init(|| serde_json::from_slice(self.bytes).ok())
            .as_ref()
    }
}

impl ResultMapping {
    /// Reads a mapping: JSONPath, so its first character is `$`.
    ///
    /// # Errors
    /// Not JSONPath, or beyond its bounds: 512 bytes, 3 filters and 32 parentheses inside each other, 2 descendant
    /// segments (`..`).
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        if source.starts_with('/') {
            return Err(ParseError::new(
                "XPath result mappings are not supported yet: use JSONPath, such as $.id",
            ));
        }
        check_bounds(source)?;
        match with_stack(STACK, || JsonPath::parse(source)) {
            Ok(path) => Ok(Self {
                source: source.into(),
                path: Arc::new(path),
            }),
            Err(error) => Err(ParseError::new(format!(
                "'{}' is not JSONPath: {} at character {}; an example is $.items[0].id",
                quote(source),
                error.message(),
                error.position() + 1,
            ))),
        }
    }

    /// The mapping as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The nodes it selects, in order.
    pub fn select<'j>(&self, json: &'j Json) -> Vec<&'j Json> {
        with_stack(STACK, || self.path.query(json).all())
    }

    /// The text of what it selects in a response's body: of one node its value (a string's own text, numbers in shortest
    /// decimal form, objects and arrays as compact JSON), of several a JSON array of them, of none the empty text.
    ///
    /// An empty body has no nodes.
    ///
    /// # Errors
    /// The body is not JSON.
    pub fn extract(&self, body: &ParsedBody<'_>) -> Result<String, EvalError> {
        if body.bytes.trim_ascii().is_empty() {
            return Ok(String::new());
        }
        let Some(json) = body.json() else {
            return Err(EvalError::new(format!(
                "the response body is not JSON, so the result mapping '{}' cannot be applied",
                self.source
            )));
        };
        Ok(match self.select(json).as_slice() {
            [] => String::new(),
            [node] => text_of(node).into_owned(),
            nodes => compact(&Json::Array(
                nodes.iter().map(|node| (*node).clone()).collect(),
            )),
        })
    }
}

/// Bounds what the parser and the evaluation may cost, before either runs.
fn check_bounds(source: &str) -> Result<(), ParseError> {
    if source.len() > MAX_SOURCE {
        return Err(ParseError::new(format!(
            "the result mapping has {} bytes; at most {MAX_SOURCE} are allowed",
            source.len()
        )));
    }
    let mut brackets = Vec::new();
    let (mut parentheses, mut descendants) = (0_usize, 0);
    let mut quoted = None;
    let mut escaped = false;
    let bytes = source.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        if let Some(quote) = quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                byte if byte == quote => quoted = None,
                _ => {}
            }
            continue;
        }
        match byte {
            b'\'' | b'"' => quoted = Some(byte),
            b'[' => brackets.push(
                bytes[index + 1..]
                    .iter()
                    .find(|byte| !byte.is_ascii_whitespace())
                    == Some(&b'?'),
            ),
            b']' => {
                brackets.pop();
            }
            b'(' => parentheses += 1,
            b')' => parentheses = parentheses.saturating_sub(1),
            b'.' if bytes.get(index + 1) == Some(&b'.') => descendants += 1,
            // A filter that is not the first selector in its brackets.
            b'?' => {
                if let Some(filter) = brackets.last_mut() {
                    *filter = true;
                }
            }
            _ => {}
        }
        let filters = brackets.iter().filter(|filter| **filter).count();
        let exceeded = if filters > MAX_FILTERS {
            format!("{MAX_FILTERS} filters inside each other")
        } else if brackets.len() > MAX_PARENTHESES || parentheses > MAX_PARENTHESES {
            format!("{MAX_PARENTHESES} parentheses or brackets inside each other")
        } else if descendants > MAX_DESCENDANTS {
            format!("{MAX_DESCENDANTS} descendant segments ('..')")
        } else {
            continue;
        };
        return Err(ParseError::new(format!(
            "the result mapping is too complex: at most {exceeded} are allowed"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(mapping: &str, body: &str) -> String {
        ResultMapping::parse(mapping)
            .unwrap()
            .extract(&ParsedBody::new(body.as_bytes()))
            .unwrap()
    }

    #[test]
    fn one_node_gives_its_text() {
        let body = r#"{"id": "A1", "total": 4850.00, "none": null, "tags": ["a", {"b": 1.0}]}"#;
        for (mapping, text) in [
            ("$.id", "A1"),
            ("$['id']", "A1"),
            ("$.total", "4850"),
            ("$.none", ""),
            ("$.tags", r#"["a",{"b":1}]"#),
            ("$.tags[0]", "a"),
        ] {
            assert_eq!(extract(mapping, body), text, "{mapping}");
        }
    }

    #[test]
    fn several_nodes_give_a_json_array() {
        let body = r#"[{"id": "A1"}, {"id": 2}]"#;
        assert_eq!(extract("$[*].id", body), r#"["A1",2]"#);
        assert_eq!(extract("$[?@.id == 2].id", body), "2");
    }

    #[test]
    fn no_node_and_an_empty_body_give_the_empty_text() {
        assert_eq!(extract("$.missing.deeper", "{}"), "");
        assert_eq!(extract("$.id", ""), "");
    }

    #[test]
    fn a_body_that_is_not_json_is_an_error() {
        let mapping = ResultMapping::parse("$.id").unwrap();
        let deep = "[".repeat(10_000);
        for body in ["<html>", deep.as_str()] {
            let error = mapping
                .extract(&ParsedBody::new(body.as_bytes()))
                .unwrap_err();
            assert_eq!(error.reason, crate::run::reason::EVAL_ERROR);
            assert!(error.message.contains("'$.id'"), "{error}");
        }
    }

    #[test]
    fn what_is_not_jsonpath_is_refused() {
        let xpath = ResultMapping::parse("//order/id").unwrap_err();
        assert!(
            xpath
                .message
                .contains("XPath result mappings are not supported yet"),
            "{xpath}"
        );
        for source in ["", "id", "$.", "$.a.", "$[", "$[?@.a ==]", " $.a", "$.a "] {
            assert!(ResultMapping::parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn mappings_beyond_the_bounds_are_refused() {
        for source in [
            format!("$.{}", "a".repeat(511)),
            "$..a..b..c".to_owned(),
            "$[?@[?@[?@[?@]]]]".to_owned(),
            format!("$[?{}@.a{}]", "(".repeat(33), ")".repeat(33)),
        ] {
            let error = ResultMapping::parse(&source).unwrap_err();
            assert!(error.message.contains("at most"), "{source}: {error}");
        }
        assert!(ResultMapping::parse("$..a[?@.b[?@.c[?(@.d)]]]..e").is_ok());
    }
}
