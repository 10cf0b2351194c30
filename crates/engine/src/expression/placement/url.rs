//! Values in a URL: percent-encoded for where they stand.

use percent_encoding::AsciiSet;

use super::{STRICT, encode};
use crate::expression::EvalError;
use crate::secret::Buffer;

/// In a path `/ : @` and the sub-delimiters of RFC 3986 stay.
const PATH: &AsciiSet = &STRICT
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// In a host and port the colon and the brackets of an IPv6 address stay; a value cannot end the authority.
const AUTHORITY: &AsciiSet = &STRICT.remove(b':').remove(b'[').remove(b']');

/// Where the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Nothing tells yet whether a scheme or a path begins.
    Start,
    Authority,
    Path,
    /// Query or fragment: nothing that follows changes how values are written.
    Rest,
}

/// Builds a URL from literal text and values.
pub(crate) struct UrlWriter {
    out: Buffer,
    part: Part,
    /// Where the current path segment begins.
    segment: usize,
    /// A value went into the current path segment.
    from_value: bool,
}

impl UrlWriter {
    pub(crate) fn new() -> Self {
        Self {
            out: Buffer::default(),
            part: Part::Start,
            segment: 0,
            from_value: false,
        }
    }

    /// Text of the author, or of a Secret or ConfigMap: as written; it may bring host, port and query.
    pub(crate) fn as_written(&mut self, text: &str) -> Result<(), EvalError> {
        text.bytes().try_for_each(|byte| self.byte(byte, false))
    }

    /// A value: encoded.
    pub(crate) fn value(&mut self, text: &str) -> Result<(), EvalError> {
        let set = match self.part {
            Part::Start | Part::Path => PATH,
            Part::Authority => AUTHORITY,
            Part::Rest => STRICT,
        };
        let mut result = Ok(());
        encode(text, set, |part| {
            for byte in part.bytes() {
                if result.is_ok() {
                    result = self.byte(byte, true);
                }
            }
        });
        result
    }

    pub(crate) fn length(&self) -> usize {
        self.out.bytes().len()
    }

    pub(crate) fn finish(self) -> Result<Buffer, EvalError> {
        self.check_segment()?;
        Ok(self.out)
    }

    fn byte(&mut self, byte: u8, from_value: bool) -> Result<(), EvalError> {
        match (self.part, byte) {
            (Part::Rest, _) => {}
            (_, b'?' | b'#') => {
                self.check_segment()?;
                self.part = Part::Rest;
            }
            (Part::Start, b'/') if self.out.bytes().ends_with(b":/") => {
                self.part = Part::Authority;
            }
            (Part::Start, b'/') if self.out.bytes().ends_with(b":") => {}
            (_, b'/' | b'\\') => {
                self.check_segment()?;
                self.part = Part::Path;
                self.out.push(&[byte]);
                self.segment = self.out.bytes().len();
                self.from_value = false;
                return Ok(());
            }
            (Part::Path, _) => self.from_value |= from_value,
            _ => {}
        }
        self.out.push(&[byte]);
        Ok(())
    }

    fn check_segment(&self) -> Result<(), EvalError> {
        if self.part != Part::Path || !self.from_value {
            return Ok(());
        }
        let mut rest = &self.out.bytes()[self.segment..];
        let mut dots = 0;
        while !rest.is_empty() {
            rest = match rest {
                [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
                _ => return Ok(()),
            };
            dots += 1;
        }
        if dots == 1 || dots == 2 {
            return Err(EvalError::invalid_request(
                "a value makes a '.' or '..' segment in the path of the url, which would leave the path that is written there",
            ));
        }
        Ok(())
    }
}
