//! Masks credentials in what comes back.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::Secret;
use crate::expression::value::escape_json;

/// What stands in a credential's place.
const MASK: &str = "***";

/// Shorter values are not searched: they would mask half of any text.
const SHORTEST: usize = 6;

/// The searcher holds this much of a form; the rest is compared where it was found.
const SEARCHED: usize = 128;

/// RFC 3986 unreserved characters stay.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What JavaScript's `encodeURIComponent` leaves.
const COMPONENT: &AsciiSet = &STRICT
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// What may stand in a path.
const PATH: &AsciiSet = &COMPONENT
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Finds the values that were used: raw, in base64 (both alphabets, padded or not, at any alignment inside a longer
/// text), URL-, JSON- and hex-encoded. Values under 6 bytes are not searched.
///
/// A text that is cut inside a long value is masked from the value's first byte on.
pub struct Redactor {
    /// `None` when there is nothing to search.
    search: Option<AhoCorasick>,
    forms: Vec<Secret>,
}

impl Redactor {
    /// Prepares the search for some values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut forms = BTreeSet::new();
        for value in values {
            let value = value.expose();
            add_forms(value, &mut forms);
            let trimmed = value.trim_ascii();
            if trimmed.len() < value.len() {
                add_forms(trimmed, &mut forms);
            }
        }
        let forms: Vec<Secret> = forms.into_iter().map(Secret::new).collect();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(
                forms
                    .iter()
                    .map(|form| &form.expose()[..form.expose().len().min(SEARCHED)]),
            )
            .ok()
            .filter(|_| !forms.is_empty());
        Self { search, forms }
    }

    /// The text with `***` in the place of every value.
    pub fn mask(&self, text: &str) -> String {
        match self.masked(text.as_bytes()) {
            Some(masked) => String::from_utf8(masked)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            None => text.to_owned(),
        }
    }

    /// The bytes with `***` in the place of every value.
    pub fn mask_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.masked(bytes).unwrap_or_else(|| bytes.to_vec())
    }

    /// `None` when nothing was found.
    fn masked(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let search = self.search.as_ref()?;
        let mut masked = Vec::new();
        let mut copied = 0;
        let mut from = 0;
        while let Some(found) = search.find(aho_corasick::Input::new(bytes).range(from..)) {
            masked.extend_from_slice(&bytes[copied..found.start()]);
            masked.extend_from_slice(MASK.as_bytes());
            from = found.start() + self.longest(&bytes[found.start()..], found.len());
            copied = from;
        }
        if copied == 0 {
            return None;
        }
        masked.extend_from_slice(&bytes[copied..]);
        Some(masked)
    }

    /// How many bytes at the start of `text` belong to a form, of which `found` are known to.
    fn longest(&self, text: &[u8], found: usize) -> usize {
        if found < SEARCHED {
            return found;
        }
        self.forms
            .iter()
            .map(|form| {
                text.iter()
                    .zip(form.expose())
                    .take_while(|(left, right)| left == right)
                    .count()
            })
            .fold(found, usize::max)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("forms", &self.forms.len())
            .finish()
    }
}

fn add_forms(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    if value.len() < SHORTEST {
        return;
    }
    forms.insert(value.to_vec());
    for encoded in [
        STANDARD.encode(value),
        STANDARD_NO_PAD.encode(value),
        URL_SAFE.encode(value),
        URL_SAFE_NO_PAD.encode(value),
        hex::encode(value),
        hex::encode_upper(value),
    ] {
        forms.insert(encoded.into_bytes());
    }
    for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
        for lead in 0..3 {
            forms.insert(inside_base64(value, lead, engine));
        }
    }
    for set in [STRICT, COMPONENT, PATH] {
        let upper = percent_encode(value, set).to_string();
        forms.insert(lower_escapes(&upper).into_bytes());
        forms.insert(upper.replace("%20", "+").into_bytes());
        forms.insert(upper.into_bytes());
    }
    if let Ok(text) = std::str::from_utf8(value) {
        let mut json = String::new();
        escape_json(text, |part| json.push_str(part));
        forms.insert(json.replace('/', "\\/").into_bytes());
        let html_safe = json
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026");
        forms.insert(html_safe.into_bytes());
        forms.insert(ascii_only(&json).into_bytes());
        forms.insert(json.into_bytes());
    }
}

/// The characters of base64 that depend on nothing but `value` when `lead` bytes (modulo 3) and more come before it, and
/// anything after it.
fn inside_base64(
    value: &[u8],
    lead: usize,
    engine: &base64::engine::general_purpose::GeneralPurpose,
) -> Vec<u8> {
    let mut padded = vec![0; lead];
    padded.extend_from_slice(value);
    let whole = padded.len() / 3 * 3;
    let encoded = engine.encode(&padded[..whole]);
    let skipped = if lead == 0 { 0 } else { lead + 1 };
    encoded.as_bytes()[skipped.min(encoded.len())..].to_vec()
}

/// `%2F` as `%2f`.
fn lower_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut escape = 0;
    for c in text.chars() {
        if c == '%' {
            escape = 3;
        }
        out.push(if escape > 0 {
            c.to_ascii_lowercase()
        } else {
            c
        });
        escape = usize::saturating_sub(escape, 1);
    }
    out
}

/// JSON's text with everything beyond ASCII as `\u` escapes.
fn ascii_only(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(values: &[&str]) -> Redactor {
        let values: Vec<Secret> = values
            .iter()
            .map(|value| Secret::new(value.as_bytes().to_vec()))
            .collect();
        Redactor::new(&values)
    }

    #[test]
    fn a_value_is_masked_in_every_form() {
        for value in ["p\u{e4}ss/w\"rd&<1>?", "two words??>>~~1"] {
            let redactor = redactor(&[value]);
            let form_encoded = percent_encode(value.as_bytes(), STRICT).to_string();
            for form in [
                value.to_owned(),
                STANDARD.encode(value),
                STANDARD_NO_PAD.encode(value),
                URL_SAFE.encode(value),
                URL_SAFE_NO_PAD.encode(value),
                hex::encode(value),
                hex::encode_upper(value),
                form_encoded.clone(),
                form_encoded.replace("%20", "+"),
                lower_escapes(&form_encoded),
                percent_encode(value.as_bytes(), PATH).to_string(),
                percent_encode(value.as_bytes(), COMPONENT).to_string(),
                serde_json::to_string(value)
                    .unwrap()
                    .trim_matches('"')
                    .to_owned(),
                value.replace('"', "\\\"").replace('\u{e4}', "\\u00e4"),
                value
                    .replace('"', "\\\"")
                    .replace('<', "\\u003c")
                    .replace('>', "\\u003e")
                    .replace('&', "\\u0026"),
            ] {
                let text = format!("before {form} after");
                assert_eq!(redactor.mask(&text), "before *** after", "{form}");
            }
        }
    }

    #[test]
    fn a_value_inside_a_longer_base64_text_is_masked() {
        let redactor = redactor(&["correct-horse"]);
        for user in ["u", "us", "usr", "user"] {
            let header = STANDARD.encode(format!("{user}:correct-horse"));
            let masked = redactor.mask(&header);
            assert!(masked.contains("***"), "{user}: {masked}");
            assert!(masked.len() < 15, "{user}: {masked}");
        }
    }

    #[test]
    fn values_under_six_bytes_are_not_searched() {
        assert_eq!(redactor(&["12345"]).mask("12345"), "12345");
        assert_eq!(redactor(&["123456"]).mask("a123456b"), "a***b");
    }

    #[test]
    fn the_longest_of_overlapping_values_is_masked_whole() {
        let redactor = redactor(&["token-1", "token-1-extended"]);
        assert_eq!(redactor.mask("token-1-extended token-1"), "*** ***");
    }

    #[test]
    fn long_values_are_masked_to_their_end_and_when_cut() {
        let long: String = (0..300).map(|n| format!("{n:04}")).collect();
        let redactor = redactor(&[&long]);
        assert_eq!(redactor.mask(&format!("<{long}>")), "<***>");
        assert_eq!(redactor.mask(&format!("<{}", &long[..700])), "<***");
    }

    #[test]
    fn a_trailing_line_feed_of_a_secret_does_not_hide_it() {
        assert_eq!(redactor(&["token-1\n"]).mask("got token-1!"), "got ***!");
    }

    #[test]
    fn bytes_that_are_not_text_are_masked() {
        let value = Secret::new(vec![0xff, 0xfe, 1, 2, 3, 4]);
        let redactor = Redactor::new([&value]);
        assert_eq!(
            redactor.mask_bytes(&[b'<', 0xff, 0xfe, 1, 2, 3, 4, b'>']),
            b"<***>"
        );
        assert_eq!(redactor.mask("fffe01020304"), "***");
    }

    #[test]
    fn nothing_to_search_leaves_the_text() {
        assert_eq!(redactor(&[]).mask("text"), "text");
    }
}
