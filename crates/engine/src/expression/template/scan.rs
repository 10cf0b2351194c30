//! Finds `$(...)` in a text.

use crate::expression::ParseError;

/// The most bytes between `$(` and `)`: what a CEL expression may have, and some room for `raw()`.
const MAX_CONTENT: usize = 4096 + 16;

/// A part of a template's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    /// What stands between `$(` and its `)`.
    Hole(&'t str),
}

/// Splits a text into literals and holes.
pub(super) fn split(text: &str) -> Result<Vec<Part<'_>>, ParseError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("$(") {
        if at > 0 {
            parts.push(Part::Text(&rest[..at]));
        }
        let content = &rest[at + 2..];
        let Some(end) = end_of_hole(content) else {
            let offset = text.len() - content.len() - 2;
            return Err(ParseError::new(format!(
                "the '$(' at character {} has no matching ')' within {MAX_CONTENT} bytes; write $(\"$(\") for the two characters themselves",
                text[..offset].chars().count() + 1
            )));
        };
        parts.push(Part::Hole(&content[..end]));
        rest = &content[end + 1..];
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// The content of `raw(...)`, when that is all there is.
pub(super) fn raw(content: &str) -> Option<&str> {
    let inner = content.strip_prefix("raw(")?;
    (end_of_hole(inner)? == inner.len() - 1).then(|| &inner[..inner.len() - 1])
}

/// Where the `)` stands that ends a hole: parentheses nest, CEL's string literals are skipped.
fn end_of_hole(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let limit = bytes.len().min(MAX_CONTENT + 1);
    let mut depth = 1;
    let mut at = 0;
    while at < limit {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'"' | b'\'' => {
                at = end_of_string(bytes, at, is_raw(bytes, at))?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether the string that begins at `at` has the prefix of a raw one: `r`, `rb`, `br` in any case.
fn is_raw(bytes: &[u8], at: usize) -> bool {
    let start = bytes[..at]
        .iter()
        .rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .map_or(0, |before| before + 1);
    let prefix = &bytes[start..at];
    prefix.len() <= 2
        && prefix.iter().any(|byte| byte.eq_ignore_ascii_case(&b'r'))
        && prefix
            .iter()
            .all(|byte| matches!(byte.to_ascii_lowercase(), b'r' | b'b'))
}

/// The first byte after the string literal that begins at `at`; `None` when it does not end.
fn end_of_string(bytes: &[u8], at: usize, raw: bool) -> Option<usize> {
    let quote = bytes[at];
    let triple = bytes[at..].starts_with(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    let mut at = at + width;
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(&[quote; 3][..width]) {
            return Some(at + width);
        } else {
            at += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_end_at_their_own_parenthesis() {
        for (text, contents) in [
            ("a$(b)c", vec!["b"]),
            ("$(f(1, (2)))$(x)", vec!["f(1, (2))", "x"]),
            (r#"$("$(")"#, vec![r#""$(""#]),
            (r#"$(')' + "\")" + r'\')"#, vec![r#"')' + "\")" + r'\'"#]),
            ("$('''it's )''')", vec!["'''it's )'''"]),
            ("$ (x) $x $", vec![]),
            ("$$(x)", vec!["x"]),
        ] {
            let holes: Vec<&str> = split(text)
                .unwrap()
                .into_iter()
                .filter_map(|part| match part {
                    Part::Hole(content) => Some(content),
                    Part::Text(_) => None,
                })
                .collect();
            assert_eq!(holes, contents, "{text}");
        }
    }

    #[test]
    fn an_open_hole_is_refused_with_its_place() {
        for text in ["ab$(c", "ab$(c(d)", "ab$('c)", "ab$(\"\\\")"] {
            let error = split(text).unwrap_err();
            assert!(error.message.contains("at character 3"), "{text}: {error}");
        }
    }

    #[test]
    fn raw_is_recognised_only_as_the_whole_content() {
        assert_eq!(raw("raw(trigger.body)"), Some("trigger.body"));
        assert_eq!(raw("raw(f(x))"), Some("f(x)"));
        assert_eq!(raw("raw(a) + raw(b)"), None);
        assert_eq!(raw("rawx(a)"), None);
    }
}
