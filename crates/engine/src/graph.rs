//! Dependencies between steps: `runAfter` and those inferred from expressions.

use crate::flow::StepIndex;

/// A set of steps of one Flow: bit *i* is step *i* (at most 128 steps).
pub type StepSet = u128;

/// Who waits for whom. Acyclic by construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Per step, its `runAfter`.
    pub run_after: Vec<StepSet>,
    /// Per step, every direct dependency: `runAfter` and steps its expressions refer to.
    pub dependencies: Vec<StepSet>,
    /// Per step, every step that comes before it, over any number of arrows.
    pub ancestors: Vec<StepSet>,
}

/// Lists the members of a set in order.
pub fn members(set: StepSet) -> impl Iterator<Item = StepIndex> {
    (0..128).filter(move |index| set >> index & 1 == 1)
}
