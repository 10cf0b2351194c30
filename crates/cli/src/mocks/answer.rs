//! What a mock answers.

use std::time::Duration;

use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse};
use serde::Deserialize;
use serde_json::Value;

use super::Shown;

/// One answer of a route.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) content: Content,
    pub(super) delay: Duration,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Nothing,
    Text(String),
    Json(Value),
    /// The request's body and content type.
    Echo,
    Fault(Fault),
}

/// How an answer can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fault {
    /// The connection breaks.
    Reset,
    /// Nothing comes until the step's time is up.
    Timeout,
    /// What comes is not HTTP.
    Malformed,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// This.
    Answer(ExecuteResponse),
    /// Nothing, ever; the text says so.
    Silence(String),
}

impl Outcome {
    pub(super) fn shown(&self) -> Shown {
        match self {
            Self::Silence(text) => Shown::Failure(text.clone()),
            Self::Answer(ExecuteResponse::Failed { code, message }) => {
                Shown::Failure(format!("{code}: {message}"))
            }
            Self::Answer(ExecuteResponse::Response {
                status,
                headers,
                body,
            }) => Shown::Response {
                status: *status,
                headers: headers.clone(),
                body: body.clone(),
            },
        }
    }
}

impl Answer {
    /// Answers `request` in the place of `host`.
    pub(super) fn outcome(&self, host: &str, request: &ExecuteRequest) -> Outcome {
        let fail = |text: &str| {
            Outcome::Answer(ExecuteResponse::Failed {
                code: Code::Connect,
                message: format!("{host}{text} (mock)"),
            })
        };
        let (content_type, body) = match &self.content {
            Content::Fault(Fault::Reset) => return fail(": connection reset"),
            Content::Fault(Fault::Malformed) => {
                return fail(" answered with something that is not HTTP");
            }
            Content::Fault(Fault::Timeout) => {
                return Outcome::Silence("no answer until the step's time is up".to_owned());
            }
            Content::Nothing => (None, Vec::new()),
            Content::Text(text) => (None, text.clone().into_bytes()),
            Content::Json(value) => (
                Some("application/json".to_owned()),
                value.to_string().into_bytes(),
            ),
            Content::Echo => (
                request
                    .headers
                    .iter()
                    .find(|header| header.name.eq_ignore_ascii_case("content-type"))
                    .map(|header| header.value.clone()),
                request.body.clone().unwrap_or_default(),
            ),
        };
        let mut headers = self.headers.clone();
        if let Some(content_type) = content_type
            && !headers.iter().any(|(name, _)| name == "content-type")
        {
            headers.push(("content-type".to_owned(), content_type));
        }
        // RFC 9110: neither an answer to HEAD nor these two have a body.
        let bodiless = request.method == "HEAD" || [204, 304].contains(&self.status);
        Outcome::Answer(ExecuteResponse::Response {
            status: self.status,
            headers,
            body: if bodiless { Vec::new() } else { body },
        })
    }
}
