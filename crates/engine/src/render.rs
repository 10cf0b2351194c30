//! A call, its scope and its credentials become a request, at the last moment.

use serde::de::IgnoredAny;

use crate::effect::Call;
use crate::expression::EvalError;
use crate::expression::scope::View;
use crate::secret::{Credentials, Redactor, Secret};

/// A request ready to hand to an executor. Every text may contain a credential.
#[derive(Debug)]
pub struct Request {
    /// Method, upper case.
    pub method: String,
    /// Absolute URL.
    pub url: Secret,
    /// Headers in order.
    pub headers: Vec<RequestHeader>,
    /// Body, `None` when the step has none.
    pub body: Option<Secret>,
}

/// One header of a request.
#[derive(Debug)]
pub struct RequestHeader {
    /// Its name as written.
    pub name: String,
    /// Its value.
    pub value: Secret,
    /// Whether a credential went into it; such headers are dropped on a cross-origin redirect.
    pub sensitive: bool,
}

impl Request {
    /// Finds the values that this request was made from in whatever comes back.
    pub fn redactor(&self, credentials: &Credentials) -> Redactor {
        credentials.redactor()
    }
}

/// Renders a call.
///
/// Adds `Idempotency-Key` unless the step sets it (an empty value turns it off), and `Content-Type: application/json`
/// when the step sets no Content-Type and the body as rendered is a JSON object or array: what services that people
/// post JSON to ask for, and what a plain text is not.
///
/// # Errors
/// An expression that fails or exceeds its budget, or a value that may not stand where it lands.
pub fn render(call: &Call, credentials: &Credentials) -> Result<Request, EvalError> {
    let action = &call.action;
    let view = View::new(&call.scope, Some(credentials));

    let url = in_field("url", action.url.render_url(&view))?.into_secret();
    in_field("url", check_url(url.expose()))?;

    let mut headers = Vec::with_capacity(action.headers.len() + 2);
    for (name, template) in &action.headers {
        let field = format!("header {name}");
        in_field(&field, check_header_name(name))?;
        let rendered = in_field(&field, template.render_header(&view))?;
        headers.push(RequestHeader {
            name: name.clone(),
            sensitive: rendered.sensitive,
            value: rendered.into_secret(),
        });
    }
    add_idempotency_key(&mut headers, &call.idempotency_key);

    let content_type = find(&headers, "content-type")
        .map(|header| String::from_utf8_lossy(header.value.expose()).into_owned());
    let body = match &action.body {
        None => None,
        Some(template) => {
            let body = in_field("body", template.render_body(&view, content_type.as_deref()))?;
            Some(body.into_secret())
        }
    };
    if let (None, Some(body)) = (&content_type, &body)
        && is_json(body.expose())
    {
        headers.push(RequestHeader {
            name: "Content-Type".to_owned(),
            value: Secret::new(b"application/json".to_vec()),
            sensitive: false,
        });
    }
    Ok(Request {
        method: action.method.to_ascii_uppercase(),
        url,
        headers,
        body,
    })
}

fn add_idempotency_key(headers: &mut Vec<RequestHeader>, key: &str) {
    const NAME: &str = "Idempotency-Key";
    match find(headers, NAME) {
        None => headers.push(RequestHeader {
            name: NAME.to_owned(),
            value: Secret::new(key.as_bytes().to_vec()),
            sensitive: false,
        }),
        Some(header) if header.value.expose().is_empty() => {
            headers.retain(|header| !header.name.eq_ignore_ascii_case(NAME));
        }
        Some(_) => {}
    }
}

fn find<'h>(headers: &'h [RequestHeader], name: &str) -> Option<&'h RequestHeader> {
    headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))
}

fn is_json(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
        && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

/// Says where an error happened.
fn in_field<T>(field: &str, result: Result<T, EvalError>) -> Result<T, EvalError> {
    result.map_err(|error| EvalError {
        message: format!("{field}: {}", error.message),
        ..error
    })
}

/// Checks that a URL is absolute, http or https, and has a host. What it holds may be a credential, so no message quotes it.
fn check_url(url: &[u8]) -> Result<(), EvalError> {
    let strip = |scheme: &str| {
        url.get(..scheme.len())
            .filter(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
            .map(|_| &url[scheme.len()..])
    };
    let Some(rest) = strip("http://").or_else(|| strip("https://")) else {
        return Err(EvalError::invalid_request(
            "must be an absolute url that begins with http:// or https://",
        ));
    };
    if matches!(rest.first(), None | Some(b'/' | b'?' | b'#' | b':' | b'\\')) {
        return Err(EvalError::invalid_request("has no host"));
    }
    if let Some(byte) = url.iter().find(|byte| **byte <= b' ' || **byte == 0x7f) {
        let what = match byte {
            b' ' => "a space",
            b'\n' | b'\r' => "a line break",
            _ => "a control character",
        };
        return Err(EvalError::invalid_request(format!(
            "contains {what}; write it percent-encoded"
        )));
    }
    Ok(())
}

/// RFC 9110 section 5.6.2.
fn check_header_name(name: &str) -> Result<(), EvalError> {
    let valid = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    if valid {
        Ok(())
    } else {
        Err(EvalError::invalid_request("is not a header's name"))
    }
}
