//! The single-pass template.

mod json_shape;
mod scan;

use std::borrow::Cow;
use std::sync::Arc;

use super::cel::Program;
use super::placement::{self, UrlWriter};
use super::reference::{self, Parsed};
use super::scope::View;
use super::value::Value;
use super::{EvalError, ParseError, Reference, Scope, quote};
use crate::event::{is_form, media_type};
use crate::secret::{Buffer, Credentials, Secret};

/// The most bytes a template may give; a value that stands in it many times could fill the memory.
const MAX_RENDERED: usize = 8 << 20;

/// Where a template's text lands, which decides how values are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Plain text: transform mappings, parameters of manual runs. Secrets are refused when it is read.
    Text,
    /// A request URL.
    Url,
    /// A header value: CR, LF and NUL fail.
    Header,
    /// A request body: JSON placement when its text is JSON, form placement when the Content-Type says so.
    Body,
}

/// A parsed template. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Template(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: Target,
    pieces: Vec<Piece>,
    references: Vec<Reference>,
    warnings: Vec<String>,
    /// For a body whose text is JSON: per hole, whether it stands inside a string.
    json: Option<Vec<bool>>,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Hole(Hole),
}

/// One `$(...)`.
#[derive(Debug)]
struct Hole {
    source: Source,
    /// `$(raw(...))`: inserted as it is.
    raw: bool,
    /// As written, for errors.
    written: String,
}

#[derive(Debug)]
enum Source {
    Reference(Reference),
    Cel(Program),
}

/// What a template gave.
#[derive(Debug)]
pub struct Rendered {
    bytes: Secret,
    /// Whether a credential went in.
    pub sensitive: bool,
}

impl Rendered {
    /// The bytes; UTF-8 unless the template is exactly one reference to a Secret that is not.
    pub fn expose(&self) -> &[u8] {
        self.bytes.expose()
    }

    /// The bytes, handed over.
    pub fn into_secret(self) -> Secret {
        self.bytes
    }
}

/// How a body's values are placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Json,
    Form,
    Xml,
    Plain,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// A `$(` without its `)`, a CEL expression that does not parse, a reference that cannot exist under a known root, or
    /// a Secret where none may go.
    pub fn parse(text: &str, target: Target) -> Result<Self, ParseError> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut references = Vec::new();
        let mut warnings = Vec::new();
        for part in scan::split(text)? {
            let content = match part {
                scan::Part::Text(text) => {
                    push_text(&mut pieces, text);
                    continue;
                }
                scan::Part::Hole(content) => content,
            };
            match parse_hole(content, target)? {
                Some(hole) => {
                    match &hole.source {
                        Source::Reference(reference) => references.push(reference.clone()),
                        Source::Cel(program) => references.extend_from_slice(program.references()),
                    }
                    pieces.push(Piece::Hole(hole));
                }
                None => {
                    warnings.push(format!(
                        "'$({})' stays as it is written: its root is none of {}",
                        quote(content),
                        reference::ROOTS.join(", ")
                    ));
                    push_text(&mut pieces, "$(");
                    push_text(&mut pieces, content);
                    push_text(&mut pieces, ")");
                }
            }
        }
        references.sort();
        references.dedup();
        let json = match target {
            Target::Body => json_shape::of(&pieces),
            _ => None,
        };
        let has_holes = pieces.iter().any(|piece| matches!(piece, Piece::Hole(_)));
        if target == Target::Body && json.is_none() && has_holes && begins_like_json(&pieces) {
            warnings.push(
                "the body begins like JSON and is not: values are inserted as they are, without JSON escapes"
                    .to_owned(),
            );
        }
        Ok(Self(Arc::new(Inner {
            target,
            pieces,
            references,
            warnings,
            json,
        })))
    }

    /// Everything it refers to, inside CEL too; sorted, each once.
    pub fn references(&self) -> &[Reference] {
        &self.0.references
    }

    /// What its author should know though it can be used.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The text, when no value goes in.
    pub fn literal(&self) -> Option<&str> {
        match self.0.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Renders for its target. A body is placed as if the request had no Content-Type; [`crate::render::render`] knows it.
    ///
    /// # Errors
    /// An expression that fails or exceeds its budget, a Secret or ConfigMap that is not among the credentials, a value
    /// that may not stand where it lands.
    pub fn render(&self, scope: &Scope, credentials: &Credentials) -> Result<Rendered, EvalError> {
        let view = View::new(scope, Some(credentials));
        match self.0.target {
            Target::Text => self.render_plain(&view),
            Target::Url => self.render_url(&view),
            Target::Header => self.render_header(&view),
            Target::Body => self.render_body(&view, None),
        }
    }

    /// Renders as plain text, without credentials: of a single expression its text.
    ///
    /// # Errors
    /// As [`Self::render`]; any Secret.
    pub fn render_text(&self, scope: &Scope) -> Result<String, EvalError> {
        let view = View::new(scope, None);
        let mut text = String::new();
        for piece in &self.0.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Hole(hole) => text.push_str(&hole.value(&view)?.text()),
            }
            check_length(text.len())?;
        }
        Ok(text)
    }

    fn render_plain(&self, view: &View<'_>) -> Result<Rendered, EvalError> {
        self.fill(view, |_, _, text, out| out.push_str(text))
    }

    pub(crate) fn render_header(&self, view: &View<'_>) -> Result<Rendered, EvalError> {
        let rendered = self.render_plain(view)?;
        placement::check_header(rendered.expose())?;
        Ok(rendered)
    }

    /// `content_type` is the request's, when the step sets one.
    pub(crate) fn render_body(
        &self,
        view: &View<'_>,
        content_type: Option<&str>,
    ) -> Result<Rendered, EvalError> {
        if let Some(hole) = self.only_hole() {
            if let Value::Secret(secret) = hole.value(view)? {
                return Ok(Rendered {
                    bytes: secret.clone(),
                    sensitive: true,
                });
            }
            return self.render_plain(view);
        }
        let kind = self.body_kind(content_type);
        let in_string = self.0.json.as_deref().unwrap_or_default();
        self.fill(view, |index, value, text, out| match kind {
            BodyKind::Json if in_string.get(index) == Some(&true) => {
                placement::json_string(text, out);
            }
            BodyKind::Json => placement::json_value(value, text, out),
            BodyKind::Form => placement::form(text, out),
            BodyKind::Xml => placement::xml(text, out),
            BodyKind::Plain => out.push_str(text),
        })
    }

    pub(crate) fn render_url(&self, view: &View<'_>) -> Result<Rendered, EvalError> {
        let mut url = UrlWriter::new();
        let mut sensitive = false;
        for piece in &self.0.pieces {
            let hole = match piece {
                Piece::Text(text) => {
                    url.as_written(text)?;
                    continue;
                }
                Piece::Hole(hole) => hole,
            };
            let value = hole.value(view)?;
            sensitive |= matches!(value, Value::Secret(_));
            let text = hole.text(&value)?;
            match value {
                Value::Secret(_) | Value::ConfigMap(_) => url.as_written(&text)?,
                _ if hole.raw => url.as_written(&text)?,
                _ => url.value(&text)?,
            }
            check_length(url.length())?;
        }
        Ok(Rendered {
            bytes: url.finish()?.into_secret(),
            sensitive,
        })
    }

    /// Renders piece by piece; `place` gets the number of the hole, its value and its text.
    fn fill(
        &self,
        view: &View<'_>,
        mut place: impl FnMut(usize, &Value<'_>, &str, &mut Buffer),
    ) -> Result<Rendered, EvalError> {
        let mut out = Buffer::default();
        let mut sensitive = false;
        let mut index = 0;
        for piece in &self.0.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole(hole) => {
                    let value = hole.value(view)?;
                    sensitive |= matches!(value, Value::Secret(_));
                    let text = hole.text(&value)?;
                    if hole.raw {
                        out.push_str(&text);
                    } else {
                        place(index, &value, &text, &mut out);
                    }
                    index += 1;
                }
            }
            check_length(out.bytes().len())?;
        }
        Ok(Rendered {
            bytes: out.into_secret(),
            sensitive,
        })
    }

    /// The hole of a template that is one reference or expression and, around it, nothing but white space.
    fn only_hole(&self) -> Option<&Hole> {
        let mut holes = self.0.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(hole),
            Piece::Text(_) => None,
        });
        let hole = holes.next()?;
        let blank = self.0.pieces.iter().all(|piece| match piece {
            Piece::Text(text) => text.trim().is_empty(),
            Piece::Hole(_) => true,
        });
        (holes.next().is_none() && blank).then_some(hole)
    }

    fn body_kind(&self, content_type: Option<&str>) -> BodyKind {
        let content_type = content_type.unwrap_or_default();
        let subtype = media_type(content_type)
            .rsplit(['/', '+'])
            .next()
            .unwrap_or_default();
        if is_form(content_type) {
            BodyKind::Form
        } else if self.0.json.is_some() {
            BodyKind::Json
        } else if subtype.eq_ignore_ascii_case("xml")
            || (content_type.is_empty() && self.begins_like_xml())
        {
            BodyKind::Xml
        } else {
            BodyKind::Plain
        }
    }

    fn begins_like_xml(&self) -> bool {
        match self.0.pieces.first() {
            Some(Piece::Text(text)) => text
                .trim_start()
                .strip_prefix('<')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '?')),
            _ => false,
        }
    }
}

impl Hole {
    fn value<'v>(&'v self, view: &'v View<'_>) -> Result<Value<'v>, EvalError> {
        match &self.source {
            Source::Reference(reference) => reference.resolve(view),
            Source::Cel(program) => program.value(view),
        }
        .map_err(|error| EvalError {
            message: format!("$({}): {}", quote(&self.written), error.message),
            ..error
        })
    }

    fn text<'v>(&self, value: &'v Value<'_>) -> Result<Cow<'v, str>, EvalError> {
        match value {
            Value::Secret(secret) => std::str::from_utf8(secret.expose())
                .map(Cow::Borrowed)
                .map_err(|_| {
                    EvalError::new(format!(
                        "$({}): the secret's value is not UTF-8 text",
                        quote(&self.written)
                    ))
                }),
            value => Ok(value.text()),
        }
    }
}

/// `None` when it stays text.
fn parse_hole(content: &str, target: Target) -> Result<Option<Hole>, ParseError> {
    let trimmed = content.trim();
    let (inner, raw) = match scan::raw(trimmed) {
        Some(inner) => (inner.trim(), true),
        None => (trimmed, false),
    };
    let located =
        |error: ParseError| ParseError::new(format!("$({}): {}", quote(content), error.message));
    let source = match reference::parse(inner).transpose().map_err(located)? {
        Some(Parsed::Reference(reference)) => Source::Reference(reference),
        Some(Parsed::UnknownRoot) => return Ok(None),
        Some(Parsed::Cel) | None => Source::Cel(Program::for_flow(inner).map_err(located)?),
    };
    if let (Target::Text, Source::Reference(Reference::Secret(key))) = (target, &source) {
        return Err(ParseError::new(format!(
            "$({}): the secret {} cannot be used here: its value would be stored; use it in an http step's url, headers or body",
            quote(content),
            key.name
        )));
    }
    Ok(Some(Hole {
        source,
        raw,
        written: content.to_owned(),
    }))
}

fn check_length(length: usize) -> Result<(), EvalError> {
    if length <= MAX_RENDERED {
        return Ok(());
    }
    Err(EvalError::new(format!(
        "the text becomes larger than {MAX_RENDERED} bytes"
    )))
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

fn begins_like_json(pieces: &[Piece]) -> bool {
    match pieces.first() {
        Some(Piece::Text(text)) => text.trim_start().starts_with(['{', '[']),
        _ => false,
    }
}
