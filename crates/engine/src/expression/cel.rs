//! The facade over the CEL crate: compile with bounds, evaluate with a budget.

/// A `when` expression.
#[derive(Clone, Debug)]
pub struct Condition {}
