//! Dependencies between steps: `runAfter` and those inferred from expressions.

use crate::flow::StepIndex;

/// A set of steps of one Flow: bit *i* is step *i* (at most 128 steps).
pub type StepSet = u128;

/// Steps that wait for each other, in the order of the arrows, the first one repeated at the end.
pub type Cycle = Vec<StepIndex>;

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
    /// Cycles that have no step in common: at least one, and one of each group of steps that wait for each other.
    pub fn new(run_after: Vec<StepSet>, inferred: &[StepSet]) -> Result<Self, Vec<Cycle>> {
        let dependencies: Vec<StepSet> = run_after
            .iter()
            .zip(inferred)
            .map(|(after, inferred)| after | inferred)
            .collect();
        let mut ancestors = vec![0; dependencies.len()];
        let mut cycles = Vec::new();
        let mut done: StepSet = 0;
        let all = all(dependencies.len());
        while done != all {
            let ready: StepSet = members(all & !done)
                .filter(|step| dependencies[*step] & !done == 0)
                .map(single)
                .fold(0, |set, step| set | step);
            for step in members(ready) {
                ancestors[step] = members(dependencies[step])
                    .fold(dependencies[step], |set, before| set | ancestors[before]);
            }
            done |= ready;
            if ready == 0 {
                // Taking the cycle for done finds the others.
                let cycle = cycle(&dependencies, all & !done);
                done |= cycle.iter().fold(0, |set, step| set | single(*step));
                cycles.push(cycle);
            }
        }
        if cycles.is_empty() {
            Ok(Self {
                run_after,
                dependencies,
                ancestors,
            })
        } else {
            Err(cycles)
        }
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

/// Follows arrows among steps that are all stuck until one comes again.
fn cycle(dependencies: &[StepSet], stuck: StepSet) -> Cycle {
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
            Err(vec![vec![0, 1, 2, 0]])
        );
        assert_eq!(Graph::new(vec![0b1], &[0]), Err(vec![vec![0, 0]]));
    }

    #[test]
    fn every_separate_cycle_is_found_and_what_only_waits_for_one_is_not_in_it() {
        // 0 <-> 1, 2 waits for 1, 3 <-> 4.
        assert_eq!(
            Graph::new(vec![0b10, 0b1, 0b10, 0b1_0000, 0b1000], &[0; 5]),
            Err(vec![vec![0, 1, 0], vec![3, 4, 3]])
        );
    }

    #[test]
    fn a_full_flow_has_128_members() {
        assert_eq!(members(all(128)).count(), 128);
        assert_eq!(all(0), 0);
    }
}
