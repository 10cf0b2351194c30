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

impl Graph {
    /// Orders the steps.
    ///
    /// # Errors
    /// A cycle, as the steps on it in the order of the arrows, the first one repeated at the end.
    pub fn new(run_after: Vec<StepSet>, inferred: &[StepSet]) -> Result<Self, Vec<StepIndex>> {
        let dependencies: Vec<StepSet> = run_after
            .iter()
            .zip(inferred)
            .map(|(after, inferred)| after | inferred)
            .collect();
        let mut ancestors = vec![0; dependencies.len()];
        let mut done: StepSet = 0;
        let all = all(dependencies.len());
        while done != all {
            let ready: Vec<_> = members(all & !done)
                .filter(|step| dependencies[*step] & !done == 0)
                .collect();
            if ready.is_empty() {
                return Err(cycle(&dependencies, all & !done));
            }
            for step in ready {
                ancestors[step] = members(dependencies[step])
                    .fold(dependencies[step], |set, before| set | ancestors[before]);
                done |= single(step);
            }
        }
        Ok(Self {
            run_after,
            dependencies,
            ancestors,
        })
    }
}

/// The set of the first `count` steps.
pub fn all(count: usize) -> StepSet {
    match count {
        0 => 0,
        _ => StepSet::MAX >> (128 - count.min(128)),
    }
}

/// The set of one step.
pub fn single(step: StepIndex) -> StepSet {
    1 << step
}

/// Lists the members of a set in order.
pub fn members(set: StepSet) -> impl Iterator<Item = StepIndex> {
    let mut rest = set;
    std::iter::from_fn(move || {
        let step = rest.trailing_zeros();
        (rest != 0).then(|| {
            rest &= rest - 1;
            step as StepIndex
        })
    })
}

/// Follows arrows among steps that all wait for each other until one comes again.
fn cycle(dependencies: &[StepSet], stuck: StepSet) -> Vec<StepIndex> {
    let mut path: Vec<StepIndex> = Vec::new();
    let mut step = stuck.trailing_zeros() as StepIndex;
    loop {
        if let Some(begin) = path.iter().position(|seen| *seen == step) {
            path.drain(..begin);
            path.push(step);
            // Dependencies point backwards; people read forwards.
            path.reverse();
            return path;
        }
        path.push(step);
        step = (dependencies[step] & stuck).trailing_zeros() as StepIndex;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_reach_over_any_number_of_arrows() {
        let graph = Graph::new(vec![0, 0b1, 0b10], &[0, 0, 0]).unwrap();
        assert_eq!(graph.ancestors, [0, 0b1, 0b11]);
    }

    #[test]
    fn inferred_dependencies_count_as_dependencies_and_not_as_run_after() {
        let graph = Graph::new(vec![0, 0], &[0, 0b1]).unwrap();
        assert_eq!((graph.dependencies[1], graph.run_after[1]), (0b1, 0));
    }

    #[test]
    fn a_cycle_is_named_in_the_order_of_its_arrows() {
        assert_eq!(
            Graph::new(vec![0b100, 0b1, 0b10], &[0, 0, 0]),
            Err(vec![0, 1, 2, 0])
        );
        assert_eq!(Graph::new(vec![0b1], &[0]), Err(vec![0, 0]));
    }

    #[test]
    fn a_full_flow_has_128_members() {
        assert_eq!(members(all(128)).count(), 128);
        assert_eq!(all(0), 0);
    }
}
