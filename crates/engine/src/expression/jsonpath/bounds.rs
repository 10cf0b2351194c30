//! What a mapping may cost: bounds on its text before it is parsed, and an estimate of the work on a body before it runs.

use serde_json::Value as Json;

use crate::expression::ParseError;

/// The most bytes a mapping may have.
const MAX_SOURCE: usize = 512;
/// The most filters inside each other.
const MAX_FILTERS: usize = 3;
/// The most parentheses or brackets inside each other.
const MAX_NESTING: usize = 32;
/// The most descendant segments; each may visit the whole body once per node of the one before.
const MAX_DESCENDANTS: usize = 2;

/// The most nodes that an evaluation may visit.
const MAX_VISITS: usize = 4_000_000;
/// The most nodes of a body on which a small regular expression is matched: it is compiled for each.
const MAX_MATCHES: usize = 10_000;
/// The same for a large one, or one that the body brings.
const MAX_LARGE_MATCHES: usize = 300;

/// The compiled size up to which a regular expression is small.
const SMALL_PATTERN: usize = 16 << 10;
/// The most a regular expression that stands in a mapping may take.
const MAX_PATTERN: usize = 256 << 10;

/// What decides how much work a mapping is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    descendants: usize,
    filters: usize,
    /// A filter that looks at the whole body again.
    absolute: bool,
    /// How many nodes may be matched against a regular expression; `None` without one.
    matches: Option<usize>,
}

/// Measures a mapping's text.
pub(super) fn shape(source: &str) -> Result<Shape, ParseError> {
    if source.len() > MAX_SOURCE {
        return Err(ParseError::new(format!(
            "the result mapping has {} bytes; at most {MAX_SOURCE} are allowed",
            source.len()
        )));
    }
    let mut shape = Shape::default();
    let mut brackets: Vec<bool> = Vec::new();
    let mut parentheses = 0_usize;
    let bytes = source.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\'' | b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'[' => brackets.push(false),
            b']' => {
                brackets.pop();
            }
            b'?' => {
                if let Some(filter) = brackets.last_mut() {
                    *filter = true;
                }
            }
            b'(' => {
                parentheses += 1;
                let function = &source[..at];
                if function.ends_with("match") || function.ends_with("search") {
                    let most = pattern_matches(&source[at + 1..])?;
                    shape.matches = Some(shape.matches.map_or(most, |other| other.min(most)));
                }
            }
            b')' => parentheses = parentheses.saturating_sub(1),
            b'.' if bytes.get(at + 1) == Some(&b'.') => shape.descendants += 1,
            b'$' if at > 0 => shape.absolute = true,
            _ => {}
        }
        let filters = brackets.iter().filter(|filter| **filter).count();
        shape.filters = shape.filters.max(filters);
        let exceeded = if filters > MAX_FILTERS {
            format!("{MAX_FILTERS} filters inside each other")
        } else if brackets.len() > MAX_NESTING || parentheses > MAX_NESTING {
            format!("{MAX_NESTING} parentheses or brackets inside each other")
        } else if shape.descendants > MAX_DESCENDANTS {
            format!("{MAX_DESCENDANTS} descendant segments ('..')")
        } else {
            at += 1;
            continue;
        };
        return Err(ParseError::new(format!(
            "the result mapping is too complex: at most {exceeded} are allowed"
        )));
    }
    Ok(shape)
}

/// Where the string literal ends that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// On how many nodes the regular expression may be matched that is the second of some arguments.
fn pattern_matches(arguments: &str) -> Result<usize, ParseError> {
    let literal = arguments
        .find(',')
        .map(|comma| arguments[comma + 1..].trim_start());
    let Some(literal) = literal.filter(|rest| rest.starts_with(['\'', '"'])) else {
        return Ok(MAX_LARGE_MATCHES);
    };
    let end = end_of_string(literal.as_bytes(), 0);
    let pattern = literal.get(1..end.saturating_sub(1)).unwrap_or_default();
    // The escapes of the literal may still stand in it: what counts is its size.
    let compiles = |size| {
        regex::RegexBuilder::new(pattern)
            .size_limit(size)
            .build()
            .map_or_else(
                |error| !matches!(error, regex::Error::CompiledTooBig(_)),
                |_| true,
            )
    };
    if compiles(SMALL_PATTERN) {
        Ok(MAX_MATCHES)
    } else if compiles(MAX_PATTERN) {
        Ok(MAX_LARGE_MATCHES)
    } else {
        Err(ParseError::new(
            "the result mapping is too complex: its regular expression is too large",
        ))
    }
}

impl Shape {
    /// Whether evaluating on this body stays within bounds.
    pub(super) fn fits(self, json: &Json) -> bool {
        let mut size = Size::default();
        size.add(json, 1);
        let visits = if self.descendants > 0 {
            size.depths.saturating_mul(self.descendants)
        } else {
            size.nodes.saturating_mul(self.filters + 1)
        };
        let visits = if self.absolute {
            visits.saturating_mul(size.nodes)
        } else {
            visits
        };
        visits <= MAX_VISITS && self.matches.is_none_or(|most| size.nodes <= most)
    }
}

/// Of a value: its nodes, and their depths added up, which is what all its parts have in nodes together.
#[derive(Default)]
struct Size {
    nodes: usize,
    depths: usize,
}

impl Size {
    fn add(&mut self, json: &Json, depth: usize) {
        self.nodes += 1;
        self.depths = self.depths.saturating_add(depth);
        match json {
            Json::Array(items) => items.iter().for_each(|item| self.add(item, depth + 1)),
            Json::Object(fields) => fields.values().for_each(|value| self.add(value, depth + 1)),
            _ => {}
        }
    }
}
