//! A call, its scope and its credentials become a request, at the last moment.

use crate::effect::Call;
use crate::expression::EvalError;
use crate::secret::{Credentials, Secret};

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

/// Renders a call.
///
/// Adds `Idempotency-Key` unless the step sets it (an empty value turns it off).
///
/// # Errors
/// An expression that fails or exceeds its budget, or a value that may not stand where it lands.
pub fn render(_call: &Call, _credentials: &Credentials) -> Result<Request, EvalError> {
    unimplemented!()
}
