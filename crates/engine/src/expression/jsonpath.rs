//! Result mappings by JSONPath (RFC 9535).

mod bounds;

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value as Json;
use serde_json_path::JsonPath;

use super::stack::with_stack;
use super::value::{compact, text_of};
use super::{EvalError, ParseError, quote};

/// What parsing and evaluating within these bounds needs.
const STACK: usize = 2 << 20;

/// A parsed result mapping.
#[derive(Clone, Debug)]
pub struct ResultMapping {
    source: Arc<str>,
    path: Arc<JsonPath>,
    shape: bounds::Shape,
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
        let shape = bounds::shape(source)?;
        match with_stack(STACK, || JsonPath::parse(source)) {
            Ok(path) => Ok(Self {
                source: source.into(),
                path: Arc::new(path),
                shape,
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
    /// The body is not JSON, or so large that the mapping would have to visit millions of nodes on it.
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
        if !with_stack(STACK, || self.shape.fits(json)) {
            return Err(EvalError::new(format!(
                "the response body is too large for the result mapping '{}': name the way to the value, without '..', match(), search() or '$' in a filter",
                self.source
            )));
        }
        Ok(match self.select(json).as_slice() {
            [] => String::new(),
            [node] => text_of(node).into_owned(),
            nodes => compact(&Json::Array(
                nodes.iter().map(|node| (*node).clone()).collect(),
            )),
        })
    }
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
        let error = ResultMapping::parse(r"$[?match(@, '(\\pL{100}){100}')]").unwrap_err();
        assert!(
            error.message.contains("regular expression is too large"),
            "{error}"
        );
    }

    #[test]
    fn mappings_that_would_visit_millions_of_nodes_end_in_an_error() {
        let ones = format!("[{}]", vec!["1"; 200_000].join(","));
        let texts = format!("[{}]", vec![r#""a""#; 50_000].join(","));
        let nested = format!("{}{}{}", "[".repeat(100), ones, "]".repeat(100));
        let started = std::time::Instant::now();
        for (mapping, body) in [
            ("$[?$..a]", &ones),
            ("$[?@ == $[0]]", &ones),
            ("$..[*]..[*]", &nested),
            ("$..[?@..a]", &nested),
            ("$[?match(@, 'a.*')]", &texts),
            ("$[?search(@, $[0])]", &texts),
        ] {
            let error = ResultMapping::parse(mapping)
                .unwrap()
                .extract(&ParsedBody::new(body.as_bytes()))
                .unwrap_err();
            assert!(
                error.message.contains("too large for the result mapping"),
                "{error}"
            );
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(10));
        assert_eq!(extract("$[?@ == 2]", &ones), "");
        assert_eq!(extract("$..[?@ == 2]", &ones), "");
    }
}
