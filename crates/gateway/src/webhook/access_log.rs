//! One line for each request, `webhook_request`: who asked for what, how the check went, what was answered, which FlowRun
//! came of it. Never a query, a body, a token or a signature.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Uri};
use kubezap_chassis::args::LogLevel;

use super::answer::Answer;
use super::authenticate;
use super::route::Route;
use super::trace::Trace;

/// The most characters of a sender's text that go into a line.
const MOST: usize = 256;

/// How access lines are written.
#[derive(Clone, Debug)]
pub struct AccessLog {
    /// Whether they are written at all.
    pub enabled: bool,
    /// The level they are written at.
    pub level: LogLevel,
    /// Headers whose values are shown as `[REDACTED]` where a line would show them: of `User-Agent`, `Content-Type`,
    /// `X-Forwarded-For` and `X-Request-Id`.
    pub redact_headers: Vec<String>,
}

impl Default for AccessLog {
    fn default() -> Self {
        Self {
            enabled: true,
            level: LogLevel::Info,
            redact_headers: Vec::new(),
        }
    }
}

/// What is seen of a request on its way.
pub(crate) struct Seen {
    method: String,
    path: String,
    peer: SocketAddr,
    source: std::net::IpAddr,
    trace: Trace,
    forwarded_for: String,
    user_agent: String,
    content_type: &'static str,
    request_id: String,
    pub(crate) route: Option<Arc<Route>>,
    pub(crate) body_bytes: usize,
    pub(crate) auth: Checked,
}

/// How the check of the sender went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// Not asked for, or not reached.
    Skipped,
    Success,
    Failure(&'static str),
    /// Could not be made.
    Impossible(super::secrets::SecretError),
}

impl Seen {
    pub(crate) fn new(
        head: &Parts,
        peer: SocketAddr,
        source: std::net::IpAddr,
        trace: Trace,
        log: &AccessLog,
    ) -> Self {
        let shown = |name: &str| {
            if log
                .redact_headers
                .iter()
                .any(|it| it.trim().eq_ignore_ascii_case(name))
                && head.headers.contains_key(name)
            {
                return kubezap_engine::trigger::REDACTED.to_owned();
            }
            text(&head.headers, name)
        };
        let content_type = shown("content-type");
        Self {
            method: cut(head.method.as_str()),
            path: path(&head.uri),
            peer,
            source,
            forwarded_for: shown("x-forwarded-for"),
            user_agent: shown("user-agent"),
            content_type: kind(&content_type),
            request_id: match shown("x-request-id") {
                id if id.is_empty() => trace.span_id.clone(),
                id => id,
            },
            trace,
            route: None,
            body_bytes: 0,
            auth: Checked::Skipped,
        }
    }

    pub(crate) fn write(&self, log: &AccessLog, answer: &Answer, took: Duration) {
        if !log.enabled {
            return;
        }
        match log.level {
            LogLevel::Error => self.line::<1>(answer, took),
            LogLevel::Warn => self.line::<2>(answer, took),
            LogLevel::Info => self.line::<3>(answer, took),
            LogLevel::Debug => self.line::<4>(answer, took),
            LogLevel::Trace => self.line::<5>(answer, took),
        }
    }

    /// A log statement has its level at compile time, so there is one of these for each.
    fn line<const LEVEL: u8>(&self, answer: &Answer, took: Duration) {
        let route = self.route.as_deref();
        let auth_type = route.map_or("", |route| authenticate::name(&route.auth));
        let (auth_result, auth_reason) = match self.auth {
            Checked::Skipped => ("skipped", String::new()),
            Checked::Success => ("success", String::new()),
            Checked::Failure(reason) => ("failure", reason.to_owned()),
            Checked::Impossible(error) => ("failure", error.to_string()),
        };
        let flow_run = match answer {
            Answer::Accepted { flow_run, .. } => flow_run.as_str(),
            _ => "",
        };
        macro_rules! write {
            ($level:expr) => {
                tracing::event!(
                    $level,
                    trace_id = self.trace.trace_id,
                    span_id = self.trace.span_id,
                    request.method = self.method,
                    request.path = self.path,
                    request.trigger = route.map_or("", Route::trigger),
                    request.namespace = route.map_or("", |route| route.namespace.as_str()),
                    request.source_ip = %self.source,
                    request.source_port = self.peer.port(),
                    request.forwarded_for = self.forwarded_for,
                    request.user_agent = self.user_agent,
                    request.content_type = self.content_type,
                    request.body_bytes = self.body_bytes,
                    request.request_id = self.request_id,
                    auth.type = auth_type,
                    auth.result = auth_result,
                    auth.reason = auth_reason,
                    response.status_code = answer.status().as_u16(),
                    response.duration_ms = took.as_secs_f64() * 1000.0,
                    flowrun.created = matches!(answer, Answer::Accepted { deduplicated: false, .. }),
                    flowrun.name = flow_run,
                    flowrun.flow = route.map_or("", Route::flow_name),
                    "webhook_request"
                )
            };
        }
        match LEVEL {
            1 => write!(tracing::Level::ERROR),
            2 => write!(tracing::Level::WARN),
            3 => write!(tracing::Level::INFO),
            4 => write!(tracing::Level::DEBUG),
            _ => write!(tracing::Level::TRACE),
        }
    }
}

/// The path alone: senders put tokens into queries.
fn path(uri: &Uri) -> String {
    cut(uri.path())
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let values: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    cut(&values.join(", "))
}

fn cut(text: &str) -> String {
    text.chars().take(MOST).collect()
}

/// json, xml, form, text or binary; empty without a content type.
fn kind(content_type: &str) -> &'static str {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "" => "",
        "application/x-www-form-urlencoded" | "multipart/form-data" => "form",
        it if it == "application/json" || it.ends_with("+json") || it == "text/json" => "json",
        it if it.ends_with("/xml") || it.ends_with("+xml") => "xml",
        it if it.starts_with("text/") => "text",
        _ => "binary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_logged_as_five_kinds() {
        for (content_type, expected) in [
            ("application/json; charset=utf-8", "json"),
            ("application/vnd.api+json", "json"),
            ("text/xml", "xml"),
            ("application/atom+xml", "xml"),
            ("application/x-www-form-urlencoded", "form"),
            ("multipart/form-data; boundary=x", "form"),
            ("text/plain", "text"),
            ("image/png", "binary"),
            ("", ""),
        ] {
            assert_eq!(kind(content_type), expected, "{content_type}");
        }
    }

    #[test]
    fn a_query_is_not_logged() {
        assert_eq!(path(&"/hooks/a?token=s3cret".parse().unwrap()), "/hooks/a");
    }
}
