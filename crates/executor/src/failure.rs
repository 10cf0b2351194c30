//! What went wrong, as a code and a sentence for people. A sentence names hosts and sizes, never a header's value, a
//! body, or a URL's path, query or user information: any of them may be a credential.

use std::error::Error;
use std::io;

use kubezap_step_protocol::{Code, ExecuteResponse};

use crate::connect::DialError;
use crate::egress::{Denied, Target};

/// A call that has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Which kind.
    pub code: Code,
    /// For people, starting with the host concerned where there is one.
    pub message: String,
    /// The guard's short reason, for the counter of refusals.
    pub denied: Option<&'static str>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            denied: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// Reads the cause of a call that failed before or while its head was read, or while its body arrived.
    pub(crate) fn of(target: &Target, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<DialError>() {
                return Self::dial(target, error);
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return Self::io(target, error);
            }
            if let Some(error) = error.downcast_ref::<hyper::Error>()
                && let Some(failure) = Self::http(target, error)
            {
                return failure;
            }
            next = error.source();
        }
        // The library's own text names protocol states, not content.
        Self::new(Code::Connect, format!("{target}: the connection broke"))
    }

    fn http(target: &Target, error: &hyper::Error) -> Option<Self> {
        if error.is_parse_too_large() {
            Some(Self::headers_too_large(target))
        } else if error.is_parse() {
            Some(Self::new(
                Code::Connect,
                format!("{target} answered with something that is not HTTP"),
            ))
        } else if error.is_incomplete_message() {
            Some(Self::incomplete(target))
        } else {
            None
        }
    }

    fn incomplete(target: &Target) -> Self {
        Self::new(
            Code::Connect,
            format!("{target} closed the connection before its answer was complete"),
        )
    }

    pub(crate) fn headers_too_large(target: &Target) -> Self {
        Self::new(
            Code::ResponseTooLarge,
            format!("{target} answered with more header bytes than the limit"),
        )
    }

    pub(crate) fn body_too_large(target: &Target, limit: u64) -> Self {
        Self::new(
            Code::ResponseTooLarge,
            format!("{target} answered with more than {limit} bytes"),
        )
    }

    fn dial(target: &Target, error: &DialError) -> Self {
        match error {
            DialError::Target(problem) => Self::invalid(format!("{target}: {problem}")),
            DialError::Denied(denied) => denied.clone().into(),
            DialError::Resolve(error) => Self::new(Code::Dns, format!("{target}: {error}")),
            DialError::Connect(error) => Self::io(target, error),
            DialError::Tls(error) => Self::tls(target, error),
        }
    }

    fn tls(target: &Target, error: &io::Error) -> Self {
        let problem = match tls_cause(error) {
            Some(cause) => cause.to_string(),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the connection was closed during the handshake".to_owned()
            }
            None => io_text(error),
        };
        Self::new(Code::Tls, format!("{target}: TLS failed: {problem}"))
    }

    fn io(target: &Target, error: &io::Error) -> Self {
        // A server that wants another client certificate says so only after a TLS 1.3 handshake. HTTP/2 keeps no more of
        // that than its text and kind, a kind that a socket of its own never gives.
        if tls_cause(error).is_some() || error.kind() == io::ErrorKind::InvalidData {
            return Self::tls(target, error);
        }
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Self::incomplete(target);
        }
        Self::new(Code::Connect, format!("{target}: {}", io_text(error)))
    }
}

fn tls_cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref::<rustls::Error>()
}

fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
        io::ErrorKind::ConnectionAborted => "connection aborted".to_owned(),
        io::ErrorKind::BrokenPipe => "connection closed while the request was sent".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        io::ErrorKind::HostUnreachable => "host unreachable".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".to_owned(),
        _ => error.to_string(),
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self {
            code: Code::EgressDenied,
            message: denied.to_string(),
            denied: Some(denied.reason.label()),
        }
    }
}

impl From<Failure> for ExecuteResponse {
    fn from(failure: Failure) -> Self {
        Self::Failed {
            code: failure.code,
            message: failure.message,
        }
    }
}
