//! Answers that refuse: `metav1.Status` with the reasons and texts of the real server.

use http::StatusCode;
use serde_json::{Value, json};

use crate::kinds::Kind;

/// A refusal.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
}

/// One thing wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: json!({}),
        }
    }

    fn about(mut self, kind: &Kind, name: &str) -> Self {
        self.details = json!({"name": name, "group": kind.group, "kind": kind.plural});
        self
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("{} \"{name}\" not found", kind.qualified()),
        )
        .about(kind, name)
    }

    pub(crate) fn no_such_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", kind.qualified()),
        )
        .about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": the object has been modified; please apply your changes to the latest version and try again",
            kind.qualified()
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name)
    }

    pub(crate) fn precondition(
        kind: &Kind,
        name: &str,
        what: &str,
        given: &str,
        actual: &str,
    ) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": Precondition failed: {what} in precondition: {given}, {what} in object meta: {actual}",
            kind.qualified()
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(kind, name)
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<_> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let full = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut refusal = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{full} \"{name}\" is invalid: {list}"),
        );
        let causes: Vec<_> =
            causes.iter().map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field})).collect();
        refusal.details =
            json!({"name": name, "group": kind.group, "kind": kind.kind, "causes": causes});
        refusal
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "Forbidden",
            format!("{} \"{name}\" is forbidden: {why}", kind.qualified()),
        )
        .about(kind, name)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    pub(crate) fn unsupported_media_type(given: &str, supported: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {} (got {given})",
            supported.join(", ")
        );
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    /// What a test asked for.
    pub(crate) fn fault(code: u16) -> Self {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let reason = match code.as_u16() {
            409 => "Conflict",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            _ => "InternalError",
        };
        Self::new(code, reason, format!("fault on demand: {code}"))
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "details": self.details, "code": self.code.as_u16(),
        })
    }
}
