//! Draft to Flow: every check that needs no cluster, all problems at once.

mod names;
mod results;
mod step;

use std::collections::BTreeMap;

use names::Names;
use results::{implicit_results, mapped_names};

use super::{ActionDraft, Flow, FlowDraft, ImplicitResult, MAX_RESULTS, MAX_STEPS, Problem, Step};
use crate::graph::{Graph, StepSet};

/// Checks a draft.
pub(super) fn validate(draft: FlowDraft) -> Result<Flow, Vec<Problem>> {
    let mut checker = Checker {
        names: Names::of(&draft),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    checker.sizes_and_names(&draft);
    let parsed: Vec<_> = draft
        .steps
        .iter()
        .enumerate()
        .take(MAX_STEPS)
        .map(|(index, step)| checker.step(index, step, &draft))
        .collect();
    let run_after = parsed.iter().map(|step| step.run_after).collect();
    let inferred: Vec<_> = parsed.iter().map(|step| step.inferred).collect();
    let graph = if draft.steps.len() <= MAX_STEPS {
        checker.graph(run_after, &inferred, &draft)
    } else {
        None
    };
    let implicit = implicit_results(&parsed, &draft);
    checker.result_counts(&implicit, &draft);
    let Checker {
        problems, warnings, ..
    } = checker;
    let (Some(graph), true) = (graph, problems.is_empty()) else {
        return Err(problems);
    };
    let steps = draft.steps.iter().zip(parsed).zip(implicit);
    Ok(Flow {
        timeout: draft.timeout,
        steps: steps
            .filter_map(|((step, parsed), implicit)| {
                Some(Step {
                    name: parsed.name?,
                    when: parsed.when,
                    implicit_results: implicit,
                    configmaps: parsed.configmaps,
                    action: parsed.action?,
                    retry: step.retry,
                    timeout: step.timeout,
                    on_failure: step.on_failure.unwrap_or(draft.failure_policy),
                })
            })
            .collect(),
        name: draft.name,
        params: draft.params,
        graph,
        warnings,
    })
}

struct Checker {
    names: Names,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Checker {
    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem {
            path: path.into(),
            message: message.into(),
        });
    }

    fn sizes_and_names(&mut self, draft: &FlowDraft) {
        if draft.steps.is_empty() {
            self.problem("spec.steps", "has no step: a Flow needs at least one");
        }
        if draft.steps.len() > MAX_STEPS {
            self.problem(
                "spec.steps",
                format!("has {} steps, the most is {MAX_STEPS}", draft.steps.len()),
            );
        }
        let mut seen = BTreeMap::new();
        for (index, step) in draft.steps.iter().enumerate() {
            if let Some(first) = seen.insert(step.name.as_str(), index) {
                self.problem(
                    format!("spec.steps[{index}].name"),
                    format!(
                        "'{}' is the name of steps[{first}] too: names are unique",
                        step.name
                    ),
                );
            }
        }
        let mut params = BTreeMap::new();
        for (index, param) in draft.params.iter().enumerate() {
            if params.insert(param.name.as_str(), index).is_some() {
                self.problem(
                    format!("spec.params[{index}].name"),
                    format!("'{}' is declared twice", param.name),
                );
            }
        }
    }

    /// Counts the results of each step, those included that nobody declares.
    fn result_counts(&mut self, implicit: &[Vec<ImplicitResult>], draft: &FlowDraft) {
        for (index, (step, implicit)) in draft.steps.iter().zip(implicit).enumerate() {
            let at = format!("spec.steps[{index}].action");
            let path = match step.action {
                ActionDraft::Http { .. } => format!("{at}.http.resultMappings"),
                ActionDraft::Transform { .. } => format!("{at}.transform.mappings"),
                ActionDraft::Wait { .. } => continue,
            };
            let count = mapped_names(step).count() + implicit.len();
            if count > MAX_RESULTS {
                let names: Vec<_> = implicit.iter().map(|result| result.name()).collect();
                let with = match names.as_slice() {
                    [] => String::new(),
                    names => format!(" with {}, which expressions refer to", names.join(", ")),
                };
                self.problem(
                    path,
                    format!("has {count} results{with}; the most for a step is {MAX_RESULTS}"),
                );
            }
        }
    }

    fn graph(
        &mut self,
        run_after: Vec<StepSet>,
        inferred: &[StepSet],
        draft: &FlowDraft,
    ) -> Option<Graph> {
        match Graph::new(run_after, inferred) {
            Ok(graph) => Some(graph),
            Err(cycles) => {
                for cycle in cycles {
                    let names: Vec<_> = cycle
                        .iter()
                        .map(|step| draft.steps[*step].name.as_str())
                        .collect();
                    self.problem(
                        format!("spec.steps[{}]", cycle.first().copied().unwrap_or_default()),
                        format!(
                            "steps wait for each other in a circle: {}",
                            names.join(" -> ")
                        ),
                    );
                }
                None
            }
        }
    }
}
