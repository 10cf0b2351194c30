//! Templates, conditions and result mappings: parsed once, expanded once.
//!
//! The grammar follows what existing manifests rely on: `$(...)` holds a reference (`root(.segment)+`) or a CEL
//! expression; what a value contains is never expanded again.

pub mod cel;
pub mod jsonpath;
pub mod placement;
pub mod reference;
pub mod scope;
pub mod template;

pub use cel::Condition;
pub use jsonpath::ResultMapping;
pub use reference::Reference;
pub use scope::{Scope, StepView};
pub use template::{Target, Template};

/// A text that cannot be used as an expression, found when it is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// One sentence for the author: what is wrong and where in the text.
    pub message: String,
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
