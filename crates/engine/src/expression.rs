//! Templates, conditions and result mappings: parsed once, expanded once.
//!
//! The grammar follows what existing manifests rely on: `$(...)` holds a reference (`root(.segment)+`) or a CEL
//! expression; what a value contains is never expanded again. [`template`] reads the text, [`mod@reference`] and [`cel`]
//! give a value, [`placement`] writes it where it lands.

pub mod cel;
pub mod jsonpath;
pub mod placement;
pub mod reference;
pub mod scope;
mod stack;
pub mod template;
pub(crate) mod value;

pub use cel::Condition;
pub use jsonpath::{ParsedBody, ResultMapping};
pub use reference::Reference;
pub use scope::{Scope, StepView};
pub use template::{Rendered, Target, Template};

use crate::run::reason;

/// A text that cannot be used as an expression, found when it is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// One sentence for the author: what is wrong and where in the text.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// An expression that failed, exceeded its budget, or gave a value that may not stand where it lands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// A constant of [`crate::run::reason`].
    pub reason: &'static str,
    /// One sentence for the author; never contains a credential.
    pub message: String,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            reason: reason::EVAL_ERROR,
            message: message.into(),
        }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self {
            reason: reason::REFERENCE_NOT_FOUND,
            message: message.into(),
        }
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self {
            reason: reason::INVALID_REQUEST,
            message: message.into(),
        }
    }
}

/// Shortens what an error message quotes.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}
