//! References such as `trigger.body.items.0.sku` or `secrets.crm.token`.

use std::borrow::Cow;

use super::EvalError;
use super::ParseError;
use super::scope::View;
use super::value::Value;
use crate::effect::KeyRef;

/// The roots that templates know.
pub(crate) const ROOTS: [&str; 6] = ["trigger", "steps", "params", "run", "secrets", "configmaps"];

/// The scalars of `trigger`, beside `headers`, `body.<path>` and (in CEL) `bodyFields`.
pub(crate) const TRIGGER_SCALARS: [&str; 20] = [
    "body",
    "bodyEncoding",
    "contentType",
    "eventType",
    "key",
    "keyEncoding",
    "method",
    "name",
    "namespace",
    "offset",
    "partition",
    "path",
    "resourceAPIVersion",
    "resourceKind",
    "resourceName",
    "resourceNamespace",
    "scheduledTime",
    "source",
    "topic",
    "type",
];

/// The fields of `run`.
pub(crate) const RUN_FIELDS: [&str; 3] = ["name", "namespace", "uid"];

/// What a template or CEL expression refers to, for validation, inferred dependencies and reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reference {
    /// Something of the event; the path after `trigger.`.
    Trigger(String),
    /// Something of a step. The name is as written: hyphens may stand as underscores.
    Step {
        /// The step as written.
        step: String,
        /// `results.<result>`, `status`, `message` or `attempts`; `results` alone when CEL looks at all of them.
        field: String,
    },
    /// A parameter.
    Param(String),
    /// Something of the run itself.
    Run(String),
    /// A key of a Secret.
    Secret(KeyRef),
    /// A key of a ConfigMap.
    ConfigMap(KeyRef),
}

/// What the content of `$(...)` is when it has the form of a reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A reference.
    Reference(Reference),
    /// A known root, or a part of it, that only CEL gives a value.
    Cel,
    /// A root that nobody knows: stays text.
    UnknownRoot,
}

/// Reads `text` if its form is `root(.segment)+` or a single name; `None` when it is something else.
pub(super) fn parse(text: &str) -> Option<Result<Parsed, ParseError>> {
    let (root, rest) = match text.split_once('.') {
        Some((root, rest)) => (root, Some(rest)),
        None => (text, None),
    };
    if !is_name(root) || !rest.is_none_or(|rest| rest.split('.').all(is_segment)) {
        return None;
    }
    if !ROOTS.contains(&root) {
        return Some(Ok(match rest {
            None if matches!(text, "true" | "false" | "null") => Parsed::Cel,
            _ => Parsed::UnknownRoot,
        }));
    }
    Some(match rest {
        Some(rest) => parse_known(root, rest),
        None if root == "secrets" || root == "configmaps" => Err(ParseError::new(format!(
            "'{root}' needs a name and a key: write {root}.NAME.KEY"
        ))),
        None => Ok(Parsed::Cel),
    })
}

fn parse_known(root: &str, rest: &str) -> Result<Parsed, ParseError> {
    let (first, tail) = match rest.split_once('.') {
        Some((first, tail)) => (first, Some(tail)),
        None => (rest, None),
    };
    let reference = match root {
        "trigger" => return parse_trigger(rest, first, tail),
        "steps" => match tail {
            Some("results") => {
                return Err(ParseError::new(format!(
                    "'steps.{rest}' needs the name of a result: write steps.{first}.results.NAME"
                )));
            }
            Some(field) => {
                check_step_field(first, field)?;
                Reference::Step {
                    step: first.to_owned(),
                    field: field.to_owned(),
                }
            }
            None => return Err(step_without_field(first)),
        },
        "params" => Reference::Param(rest.to_owned()),
        "run" if RUN_FIELDS.contains(&rest) => Reference::Run(rest.to_owned()),
        "run" => {
            return Err(ParseError::new(format!(
                "'run.{}' does not exist: run has {}",
                super::quote(rest),
                RUN_FIELDS.join(", ")
            )));
        }
        // `parse` lets only the roots of `ROOTS` through.
        _ => {
            let Some(key) = tail else {
                return Err(ParseError::new(format!(
                    "'{root}.{first}' needs a key: write {root}.{first}.KEY"
                )));
            };
            let key = KeyRef {
                name: first.to_owned(),
                key: key.to_owned(),
            };
            if root == "secrets" {
                Reference::Secret(key)
            } else {
                Reference::ConfigMap(key)
            }
        }
    };
    Ok(Parsed::Reference(reference))
}

fn parse_trigger(rest: &str, first: &str, tail: Option<&str>) -> Result<Parsed, ParseError> {
    let bare = first.split('[').next().unwrap_or(first);
    match (bare, tail) {
        ("headers", None) => Ok(Parsed::Cel),
        ("headers", Some(_)) => Ok(Parsed::Reference(Reference::Trigger(rest.to_owned()))),
        ("bodyFields", None) if bare == first => Ok(Parsed::Cel),
        ("body" | "bodyFields", _) => {
            let path = rest
                .strip_prefix("bodyFields")
                .map(|path| format!("body{path}"));
            Ok(Parsed::Reference(Reference::Trigger(
                path.unwrap_or_else(|| rest.to_owned()),
            )))
        }
        _ => {
            check_trigger_field(first)?;
            if tail.is_some() {
                return Err(ParseError::new(format!(
                    "'trigger.{rest}' does not exist: trigger.{first} is text and has no fields"
                )));
            }
            Ok(Parsed::Reference(Reference::Trigger(rest.to_owned())))
        }
    }
}

/// Checks a field directly under `trigger`.
pub(super) fn check_trigger_field(field: &str) -> Result<(), ParseError> {
    if TRIGGER_SCALARS.contains(&field) || matches!(field, "headers" | "bodyFields") {
        return Ok(());
    }
    Err(ParseError::new(format!(
        "'trigger.{}' does not exist: trigger has headers, bodyFields, {}; fields of the body are trigger.body.NAME",
        super::quote(field),
        TRIGGER_SCALARS.join(", ")
    )))
}

/// Checks what comes after a step's name.
pub(super) fn check_step_field(step: &str, field: &str) -> Result<(), ParseError> {
    let first = field.split('.').next().unwrap_or(field);
    match first {
        "results" => Ok(()),
        "status" | "message" | "attempts" if field == first => Ok(()),
        "status" | "message" | "attempts" => Err(ParseError::new(format!(
            "'steps.{step}.{field}' does not exist: steps.{step}.{first} has no fields"
        ))),
        "outputs" => Err(ParseError::new(format!(
            "'steps.{step}.outputs' is not supported yet: use steps.{step}.results"
        ))),
        _ => Err(ParseError::new(format!(
            "'steps.{step}.{}' does not exist: a step has results.NAME, status, message and attempts",
            super::quote(field)
        ))),
    }
}

/// The error for `steps.<name>` alone.
pub(super) fn step_without_field(step: &str) -> ParseError {
    ParseError::new(format!(
        "'steps.{step}' needs a field: results.NAME, status, message or attempts"
    ))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn is_segment(text: &str) -> bool {
    let (name, mut indexes) = match text.find('[') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    if name.is_empty()
        || !name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'@'))
    {
        return false;
    }
    while let Some(rest) = indexes.strip_prefix('[') {
        match rest.split_once(']') {
            Some((digits, rest))
                if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
            {
                indexes = rest;
            }
            _ => return false,
        }
    }
    indexes.is_empty()
}

impl Reference {
    /// What it gives in a scope; a missing field is [`Value::Missing`], a missing Secret or ConfigMap an error.
    pub(super) fn resolve<'v>(&self, view: &'v View<'_>) -> Result<Value<'v>, EvalError> {
        Ok(match self {
            Self::Trigger(path) => trigger(path, view),
            Self::Step { step, field } => match view.scope.step(step) {
                None => Value::Missing,
                Some((_, view)) => match field.as_str() {
                    "status" => Value::Text(Cow::Borrowed(&view.status)),
                    "message" => Value::Text(Cow::Borrowed(&view.message)),
                    "attempts" => Value::Text(Cow::Owned(view.attempts.to_string())),
                    field => field
                        .strip_prefix("results.")
                        .and_then(|name| view.result(name))
                        .map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text))),
                },
            },
            Self::Param(name) => text(view.scope.params.get(name)),
            Self::Run(field) => match field.as_str() {
                "name" => Value::Text(Cow::Borrowed(&view.scope.run_name)),
                "namespace" => Value::Text(Cow::Borrowed(&view.scope.run_namespace)),
                "uid" => Value::Text(Cow::Borrowed(&view.scope.run_uid)),
                _ => Value::Missing,
            },
            Self::Secret(key) => Value::Secret(view.secret(key)?),
            Self::ConfigMap(key) => Value::ConfigMap(view.configmap(key)?),
        })
    }
}

fn trigger<'v>(path: &str, view: &'v View<'_>) -> Value<'v> {
    if let Some(name) = path.strip_prefix("headers.") {
        return view
            .scope
            .event
            .header(name)
            .map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text)));
    }
    if let Some(text) = view.scope.trigger_scalar(path) {
        return Value::Text(Cow::Borrowed(text));
    }
    let Some(path) = path.strip_prefix("body") else {
        return Value::Missing;
    };
    // `body.items` and, for a body that is an array, `body[0]`.
    let path = match path.strip_prefix('.') {
        Some(path) => path.to_owned(),
        None => path.replacen('[', "", 1).replacen(']', "", 1),
    };
    view.body()
        .get(&path)
        .map_or(Value::Missing, |json| Value::Json(Cow::Borrowed(json)))
}

fn text(text: Option<&String>) -> Value<'_> {
    text.map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text)))
}

#[cfg(test)]
mod tests;
