//! What a sender is told. One variant for each answer; nothing else makes a response.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::json;

/// The outcome of a request, as its sender sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 202: the FlowRun is stored.
    Accepted {
        namespace: String,
        flow_run: String,
        deduplicated: bool,
    },
    /// 400: the body broke off.
    BrokenBody,
    /// 401, without a body: any failed check.
    Unauthorized {
        /// The check was a bearer token, which RFC 9110 wants to be named.
        bearer: bool,
    },
    /// 404: no Trigger listens on this path.
    NotFound,
    /// 405: a Trigger listens on this path, for another method.
    MethodNotAllowed { allow: Method },
    /// 408: the body did not arrive in time.
    TooSlow,
    /// 413: the body is over the limit, as it would be stored.
    TooLarge { limit: usize },
    /// 422: the API server refuses to store the event.
    Invalid,
    /// 429: too many requests from this source.
    TooMany { retry_after: Duration },
    /// 431: the headers are over the limit.
    HeadersTooLarge { limit: usize },
    /// 503: nothing was accepted; the sender should try again.
    Unavailable {
        why: &'static str,
        retry_after: Duration,
    },
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Accepted { .. } => StatusCode::ACCEPTED,
            Self::BrokenBody => StatusCode::BAD_REQUEST,
            Self::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::HeadersTooLarge { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::default());
        *response.status_mut() = self.status();
        match self {
            Self::Accepted {
                namespace,
                flow_run,
                deduplicated,
            } => {
                let location = format!(
                    "/apis/automation.kubezap.io/v1alpha1/namespaces/{namespace}/flowruns/{flow_run}"
                );
                put(&mut response, header::LOCATION, &location);
                let body = json!({
                    "namespace": namespace,
                    "flowRun": flow_run,
                    "deduplicated": deduplicated,
                });
                put_json(&mut response, &body);
            }
            Self::Unauthorized { bearer } => {
                if *bearer {
                    put(&mut response, header::WWW_AUTHENTICATE, "Bearer");
                }
            }
            Self::MethodNotAllowed { allow } => {
                put(&mut response, header::ALLOW, allow.as_str());
                put_error(&mut response, &format!("use {allow}"));
            }
            Self::TooLarge { limit } => put_error(
                &mut response,
                &format!("the body is over {limit} bytes, base64 counted if it is binary"),
            ),
            Self::HeadersTooLarge { limit } => {
                put_error(
                    &mut response,
                    &format!("the headers are over {limit} bytes"),
                );
            }
            Self::TooMany { retry_after } => {
                put_retry_after(&mut response, *retry_after);
                put_error(&mut response, "too many requests from this address");
            }
            Self::Unavailable { why, retry_after } => {
                put_retry_after(&mut response, *retry_after);
                put_error(&mut response, why);
            }
            Self::NotFound => put_error(&mut response, "nothing listens on this path"),
            Self::BrokenBody => put_error(&mut response, "the body broke off"),
            Self::TooSlow => put_error(&mut response, "the body did not arrive in time"),
            Self::Invalid => put_error(&mut response, "the event cannot be stored"),
        }
        response
    }
}

fn put(response: &mut Response<Full<Bytes>>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn put_retry_after(response: &mut Response<Full<Bytes>>, wait: Duration) {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    put(response, header::RETRY_AFTER, &seconds.to_string());
}

fn put_error(response: &mut Response<Full<Bytes>>, error: &str) {
    put_json(response, &json!({ "error": error }));
}

fn put_json(response: &mut Response<Full<Bytes>>, body: &serde_json::Value) {
    put(response, header::CONTENT_TYPE, "application/json");
    let mut text = body.to_string();
    text.push('\n');
    *response.body_mut() = Full::new(text.into());
}
