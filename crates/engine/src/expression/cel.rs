//! The facade over the CEL crate: compile with bounds, evaluate with a budget.
//!
//! Nothing else in KubeZap names the crate. `compile` parses within bounds; `check` refuses what cannot work and finds
//! the references; `meter` rewrites the expression so that everything that loops, grows or reads a lot is paid for
//! from a `fuel` tank; `variables` shows a scope to it, and `convert` turns values into JSON and back.

mod check;
mod compile;
mod convert;
mod failure;
mod folded;
mod fuel;
mod functions;
mod library;
mod meter;
mod rule;
mod variables;

use std::sync::Arc;

use ::cel::common::types::CelBool;
use ::cel::common::value::Val;
use ::cel::{Context, Value as CelValue};

pub use rule::Rule;

use check::Uses;
use fuel::Fuel;

use super::scope::View;
use super::stack::with_stack;
use super::value::Value;
use super::{EvalError, ParseError, Reference, Scope, quote};

/// What one evaluation may cost: a loop step, a call, or 10 bytes or elements produced cost one unit; reading or copying
/// 1,000 bytes costs one.
const BUDGET: i64 = 10_000;

/// A compiled expression. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Program(Arc<Compiled>);

struct Compiled {
    expression: ::cel::IdedExpr,
    references: Vec<Reference>,
    uses: Uses,
    patterns: fuel::Patterns,
    /// Bytes of stack that evaluating it needs.
    stack: usize,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("references", &self.0.references)
            .finish_non_exhaustive()
    }
}

impl Program {
    /// Compiles an expression that sees a run: `trigger`, `steps`, `params`, `run`, `configmaps`.
    pub(crate) fn for_flow(source: &str) -> Result<Self, ParseError> {
        compile::compile(source, check::Vocabulary::Flow)
    }

    pub(crate) fn references(&self) -> &[Reference] {
        &self.0.references
    }

    /// Evaluates to a value for a template.
    pub(crate) fn value(&self, view: &View<'_>) -> Result<Value<'static>, EvalError> {
        self.for_view(view, convert::to_template)
    }

    fn for_view<R>(
        &self,
        view: &View<'_>,
        take: impl FnOnce(&dyn Val) -> R,
    ) -> Result<R, EvalError> {
        let fuel = Fuel::new(BUDGET.min(view.budget.get()), self.0.patterns.clone());
        let result = self.run(
            &fuel,
            |context| variables::bind(context, &self.0.uses, view),
            take,
        );
        view.budget.set(view.budget.get() - fuel.used());
        result
    }

    /// Evaluates on enough stack and on the fuel given. `bind` provides the variables, `take` reads the result.
    fn run<'v, R>(
        &self,
        fuel: &Fuel,
        bind: impl FnOnce(&mut Context<'_, 'v>) -> Result<(), EvalError>,
        take: impl FnOnce(&dyn Val) -> R,
    ) -> Result<R, EvalError> {
        with_stack(self.0.stack, || {
            let mut context = Context::with_env(library::environment());
            context.add_variable_as_val(fuel::VARIABLE, Box::new(fuel.clone()));
            bind(&mut context)?;
            let result = CelValue::resolve_val(&self.0.expression, &context);
            // An exhausted tank counts whatever the result: `expensive || true` absorbs the error.
            if fuel.is_exhausted() {
                return Err(EvalError::new(format!(
                    "the expression exceeds its budget of {} units; shorten what it loops over or produces",
                    fuel.budget()
                )));
            }
            match result {
                Ok(value) => Ok(take(value.as_ref())),
                Err(error) => Err(EvalError::new(failure::describe(&error))),
            }
        })
    }
}

/// A `when` expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Condition {
    source: Arc<str>,
    program: Program,
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// It does not parse, exceeds 4 KiB or a depth of 64, reads a Secret, or names a function, variable or field that
    /// does not exist, or calls a function with a wrong number of arguments.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        Ok(Self {
            source: source.into(),
            program: Program::for_flow(source)?,
        })
    }

    /// The expression as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Everything it refers to; sorted, each once.
    pub fn references(&self) -> &[Reference] {
        self.program.references()
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// It fails, exceeds its budget of 10,000 units, or gives something that is neither true nor false.
    pub fn evaluate(&self, scope: &Scope) -> Result<bool, EvalError> {
        self.program
            .for_view(&View::new(scope, None), to_bool)
            .and_then(|result| result)
            .map_err(|error| EvalError {
                message: format!("'{}': {}", quote(&self.source), error.message),
                ..error
            })
    }
}

fn to_bool(value: &dyn Val) -> Result<bool, EvalError> {
    match value.downcast_ref::<CelBool>() {
        Some(bool) => Ok(*bool.inner()),
        None => Err(EvalError::new(format!(
            "gives a value of type {}; a condition gives true or false",
            value.get_type().name()
        ))),
    }
}

#[cfg(test)]
mod tests;
