//! What a request is refused with: a `metav1.Status` with the reasons and texts of the real server.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::field::FieldError;
use crate::kinds::Kind;

/// A refusal, as a client sees it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Value>>,
    /// For a list that expired: a token that goes on without the snapshot.
    pub(crate) continue_token: Option<String>,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    pub(crate) fn set_details(&mut self, details: Value) {
        self.details = Some(Box::new(details));
    }

    fn on(
        code: StatusCode,
        reason: &'static str,
        kind: &Kind,
        name: &str,
        message: String,
    ) -> Self {
        let mut failure = Self::new(code, reason, message);
        failure.set_details(details(&kind.group, &kind.plural, name));
        failure
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified_resource());
        Self::on(StatusCode::NOT_FOUND, "NotFound", kind, name, message)
    }

    pub(crate) fn unknown_path() -> Self {
        let mut failure = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        );
        failure.set_details(json!({}));
        failure
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified_resource());
        Self::on(StatusCode::CONFLICT, "AlreadyExists", kind, name, message)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            kind.qualified_resource()
        );
        Self::on(StatusCode::CONFLICT, "Conflict", kind, name, message)
    }

    /// The resourceVersion of an update is not the stored one.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        Self::conflict(
            kind,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "{} \"{name}\" is forbidden: {why}",
            kind.qualified_resource()
        );
        Self::on(StatusCode::FORBIDDEN, "Forbidden", kind, name, message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let mut failure = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        failure.set_details(json!({}));
        failure
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn internal(message: &str) -> Self {
        let mut failure = Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        failure.set_details(json!({"causes": [{"message": message}]}));
        failure
    }

    /// A list or watch from a version that is no longer kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// A version that this server has not reached.
    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let mut failure = Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        );
        failure.set_details(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }));
        failure
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid_named(&kind.group, &kind.kind, name, errors)
    }

    /// As [`Failure::invalid`] for something that is no served kind, such as list options.
    pub(crate) fn invalid_named(
        group: &str,
        kind: &str,
        name: &str,
        errors: &[FieldError],
    ) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match texts.as_slice() {
            [one] => one.clone(),
            more => format!("[{}]", more.join(", ")),
        };
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let mut failure = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{qualified} \"{name}\" is invalid: {all}"),
        );
        let mut details = details(group, kind, name);
        details["causes"] = errors.iter().map(FieldError::cause).collect();
        failure.set_details(details);
        failure
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// Seconds that a client should wait, for the `Retry-After` header.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// The refusal as a `metav1.Status`.
    pub(crate) fn status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), token.clone().into());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = Value::clone(details);
        }
        status["code"] = self.code.as_u16().into();
        status
    }
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            details.insert(key.to_owned(), value.into());
        }
    }
    Value::Object(details)
}
