//! Whether a body's text is JSON, and which of its holes stand inside strings.

use serde::de::IgnoredAny;

use super::Piece;

/// Per hole, whether it stands inside a JSON string; `None` when the text is not JSON.
///
/// The text is JSON when it parses with something in each hole's place: text inside a string, a value outside. A
/// `$(raw(...))` outside a string may also bring a part of an object, so nothing in its place counts too.
pub(super) fn of(pieces: &[Piece]) -> Option<Vec<bool>> {
    let mut in_string = Vec::new();
    let mut lexer = Lexer::default();
    let mut with_values = String::new();
    let mut without_raw = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                lexer.feed(text);
                with_values.push_str(text);
                without_raw.push_str(text);
            }
            Piece::Hole(hole) => {
                in_string.push(lexer.in_string);
                let placeholder = if lexer.in_string { "x" } else { "null" };
                with_values.push_str(placeholder);
                if lexer.in_string || !hole.raw {
                    without_raw.push_str(placeholder);
                }
            }
        }
    }
    [with_values, without_raw]
        .iter()
        .any(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
        .then_some(in_string)
}

#[derive(Default)]
struct Lexer {
    in_string: bool,
    escaped: bool,
}

impl Lexer {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }
}
