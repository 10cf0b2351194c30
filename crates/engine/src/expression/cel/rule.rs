//! Validation rules of a resource's schema.

use serde_json::Value as Json;

use super::check::Vocabulary;
use super::compile::compile;
use super::convert::{self, Integers};
use super::fuel::Fuel;
use super::{Program, to_bool};
use crate::expression::{EvalError, ParseError};

/// What one rule may cost. Rules are the schema author's, and run over lists that a user fills.
const BUDGET: i64 = 1_000_000;

/// A rule of `x-kubernetes-validations`, in `self` and `oldSelf`. Cheap to clone; may be shared between threads.
///
/// JSON integers are int. Field names may be escaped as Kubernetes does (`__namespace__`, `a__dash__b`).
#[derive(Clone, Debug)]
pub struct Rule(Program);

impl Rule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// It does not parse, or names a function or variable that does not exist.
    pub fn compile(source: &str) -> Result<Self, ParseError> {
        compile(source, Vocabulary::Rule).map(Self)
    }

    /// Whether it compares with `oldSelf`: such a rule is checked on updates only.
    pub fn is_transition(&self) -> bool {
        self.0.0.uses.old_self
    }

    /// Whether a value satisfies the rule. A rule that compares with `oldSelf` holds when there is none.
    ///
    /// # Errors
    /// It fails (a field that is absent and not guarded by `has()`), exceeds its budget, or gives no boolean.
    pub fn check(&self, value: &Json, old: Option<&Json>) -> Result<bool, EvalError> {
        if self.is_transition() && old.is_none() {
            return Ok(true);
        }
        self.0.run(
            &Fuel::new(BUDGET, self.0.0.patterns.clone()),
            |context| {
                context.add_variable_as_val("self", convert::borrowed(value, Integers::Int));
                if let Some(old) = old.filter(|_| self.is_transition()) {
                    context.add_variable_as_val("oldSelf", convert::borrowed(old, Integers::Int));
                }
                Ok(())
            },
            to_bool,
        )?
    }
}
