//! Draft to Flow: every check that needs no cluster, all problems at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Action, ActionDraft, Flow, FlowDraft, HttpAction, ImplicitResult, MAX_STEPS, Problem, Step,
    StepDraft, StepIndex, StepName,
};
use crate::expression::scope::same_but_hyphens;
use crate::expression::{Condition, ParseError, Reference, ResultMapping, Target, Template};
use crate::graph::{Graph, StepSet, single};

/// The most results one step may have.
pub const MAX_RESULTS: usize = 64;

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

/// Finds steps by name, as written or with underscores for hyphens.
struct Names {
    exact: BTreeMap<String, StepIndex>,
    folded: BTreeMap<String, StepIndex>,
}

impl Names {
    fn of(draft: &FlowDraft) -> Self {
        let mut names = Self {
            exact: BTreeMap::new(),
            folded: BTreeMap::new(),
        };
        for (index, step) in draft.steps.iter().enumerate().take(MAX_STEPS) {
            names.exact.entry(step.name.clone()).or_insert(index);
            names
                .folded
                .entry(step.name.replace('-', "_"))
                .or_insert(index);
        }
        names
    }

    fn find(&self, written: &str) -> Option<StepIndex> {
        self.exact
            .get(written)
            .or_else(|| self.folded.get(&written.replace('-', "_")))
            .copied()
    }
}

/// What reading one step gave.
struct ParsedStep {
    name: Option<StepName>,
    when: Vec<Condition>,
    action: Option<Action>,
    run_after: StepSet,
    inferred: StepSet,
    /// Which implicit results of which steps it refers to.
    wants: Vec<(StepIndex, ImplicitResult)>,
    configmaps: crate::effect::References,
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

    fn step(&mut self, index: StepIndex, draft: &StepDraft, flow: &FlowDraft) -> ParsedStep {
        let at = format!("spec.steps[{index}]");
        let name = StepName::parse(&draft.name);
        if name.is_none() {
            self.problem(
                format!("{at}.name"),
                format!("'{}' is no step name: lower-case letters, digits and '-', beginning with a letter, at most 63", draft.name),
            );
        }
        let mut run_after = 0;
        for (position, after) in draft.run_after.iter().enumerate() {
            let path = format!("{at}.runAfter[{position}]");
            match self.names.exact.get(after).copied() {
                None => self.problem(path, format!("there is no step '{after}'")),
                Some(other) if other == index => {
                    self.problem(path, format!("step '{after}' cannot run after itself"))
                }
                Some(other) => run_after |= single(other),
            }
        }
        let mut reader = Reader {
            checker: self,
            step: index,
            flow,
            inferred: 0,
            wants: Vec::new(),
            configmaps: Default::default(),
        };
        let when = draft
            .when
            .iter()
            .enumerate()
            .filter_map(|(position, source)| {
                reader.condition(&format!("{at}.when[{position}].expression"), source)
            })
            .collect();
        let action = reader.action(&format!("{at}.action"), &draft.action);
        let Reader {
            inferred,
            wants,
            configmaps,
            ..
        } = reader;
        ParsedStep {
            name,
            when,
            action,
            run_after,
            inferred,
            wants,
            configmaps,
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

/// Reads the expressions of one step.
struct Reader<'a> {
    checker: &'a mut Checker,
    step: StepIndex,
    flow: &'a FlowDraft,
    inferred: StepSet,
    wants: Vec<(StepIndex, ImplicitResult)>,
    configmaps: crate::effect::References,
}

impl Reader<'_> {
    fn action(&mut self, at: &str, draft: &ActionDraft) -> Option<Action> {
        match draft {
            ActionDraft::Http {
                url,
                method,
                headers,
                body,
                timeout,
                result_mappings,
            } => {
                let at = format!("{at}.http");
                let url_template = self.template(&format!("{at}.url"), url, Target::Url);
                let headers: Vec<_> = headers
                    .iter()
                    .map(|(name, value)| {
                        self.template(&format!("{at}.headers[{name}]"), value, Target::Header)
                            .map(|value| (name.clone(), value))
                    })
                    .collect();
                let body = body
                    .as_ref()
                    .map(|body| self.template(&format!("{at}.body"), body, Target::Body));
                let result_mappings: Vec<_> = result_mappings
                    .iter()
                    .map(|(name, source)| {
                        let path = format!("{at}.resultMappings[{name}]");
                        self.parsed(&path, ResultMapping::parse(source))
                            .map(|mapping| (name.clone(), mapping))
                    })
                    .collect();
                Some(Action::Http(Arc::new(HttpAction {
                    url: url_template?,
                    method: method.clone(),
                    headers: headers.into_iter().collect::<Option<_>>()?,
                    body: match body {
                        Some(body) => Some(body?),
                        None => None,
                    },
                    timeout: *timeout,
                    result_mappings: result_mappings.into_iter().collect::<Option<_>>()?,
                })))
            }
            ActionDraft::Transform { mappings } => {
                let at = format!("{at}.transform.mappings");
                let mappings: Vec<_> = mappings
                    .iter()
                    .map(|(name, text)| {
                        let path = format!("{at}[{name}]");
                        let template = self.template(&path, text, Target::Text)?;
                        self.configmaps_of(template.references());
                        Some((name.clone(), template))
                    })
                    .collect();
                Some(Action::Transform(
                    mappings.into_iter().collect::<Option<_>>()?,
                ))
            }
            ActionDraft::Wait { duration } => {
                if *duration > self.flow.timeout {
                    self.checker.problem(
                        format!("{at}.wait.duration"),
                        format!(
                            "a wait of {:?} never ends within the run's timeout of {:?}: shorten it, or raise spec.timeout",
                            duration, self.flow.timeout
                        ),
                    );
                }
                if let Some(timeout) = self.flow.steps[self.step].timeout
                    && *duration > timeout
                {
                    self.checker.warnings.push(Problem {
                        path: format!("{at}.wait.duration"),
                        message: format!(
                            "a wait of {duration:?} fails after the step's timeout of {timeout:?}"
                        ),
                    });
                }
                Some(Action::Wait(*duration))
            }
        }
    }

    fn condition(&mut self, path: &str, source: &str) -> Option<Condition> {
        let condition = self.parsed(path, Condition::parse(source))?;
        self.references(path, condition.references());
        self.configmaps_of(condition.references());
        Some(condition)
    }

    fn template(&mut self, path: &str, text: &str, target: Target) -> Option<Template> {
        let template = self.parsed(path, Template::parse(text, target))?;
        for warning in template.warnings() {
            self.checker.warnings.push(Problem {
                path: path.to_owned(),
                message: warning.clone(),
            });
        }
        self.references(path, template.references());
        Some(template)
    }

    fn parsed<T>(&mut self, path: &str, result: Result<T, ParseError>) -> Option<T> {
        result
            .map_err(|error| self.checker.problem(path, error.message))
            .ok()
    }

    fn references(&mut self, path: &str, references: &[Reference]) {
        for reference in references {
            match reference {
                Reference::Step { step, field } => match self.checker.names.find(step) {
                    None => self.checker.problem(
                        path,
                        format!("refers to steps.{step}, and there is no such step"),
                    ),
                    Some(other) if other == self.step => {
                        self.checker.problem(
                            path,
                            format!("refers to steps.{step}, which is the step itself"),
                        );
                    }
                    Some(other) => {
                        self.inferred |= single(other);
                        if let Some(result) = field.strip_prefix("results.")
                            && !has_result(&self.flow.steps[other], result)
                        {
                            self.checker.warnings.push(Problem {
                                path: path.to_owned(),
                                message: format!(
                                    "refers to steps.{step}.results.{result}, and that step has no such result: it is always empty, and in CEL an error"
                                ),
                            });
                        }
                        self.wants.extend(
                            ImplicitResult::named_by(field)
                                .into_iter()
                                .map(|result| (other, result)),
                        );
                    }
                },
                Reference::Param(name)
                    if !self.flow.params.iter().any(|param| param.name == *name) =>
                {
                    self.checker.problem(
                        path,
                        format!("refers to params.{name}: declare it in spec.params"),
                    );
                }
                Reference::Param(_)
                | Reference::Trigger(_)
                | Reference::Run(_)
                | Reference::Secret(_)
                | Reference::ConfigMap(_) => {}
            }
        }
    }

    fn configmaps_of(&mut self, references: &[Reference]) {
        for reference in references {
            if let Reference::ConfigMap(key) = reference {
                self.configmaps.configmaps.insert(key.clone());
            }
        }
    }
}

/// Per step, the implicit results that something refers to and no mapping shadows, in a fixed order.
fn implicit_results(parsed: &[ParsedStep], draft: &FlowDraft) -> Vec<Vec<ImplicitResult>> {
    let wanted = |step, result| {
        parsed
            .iter()
            .any(|other| other.wants.contains(&(step, result)))
    };
    let has_it = |step: &StepDraft, result: ImplicitResult| {
        matches!(step.action, ActionDraft::Http { .. })
            && !mapped_names(step).any(|name| name == result.name())
    };
    let steps = draft.steps.iter().take(MAX_STEPS).enumerate();
    steps
        .map(|(index, step)| {
            ImplicitResult::ALL
                .into_iter()
                .filter(|result| has_it(step, *result) && wanted(index, *result))
                .collect()
        })
        .collect()
}

/// The results that a step declares.
fn mapped_names(step: &StepDraft) -> impl Iterator<Item = &str> {
    let mappings: &[_] = match &step.action {
        ActionDraft::Http {
            result_mappings, ..
        } => result_mappings,
        ActionDraft::Transform { mappings } => mappings,
        ActionDraft::Wait { .. } => &[],
    };
    mappings.iter().map(|(name, _)| name.as_str())
}

/// Whether `results.<path>` of a step can ever be there.
fn has_result(step: &StepDraft, path: &str) -> bool {
    // In CEL something may be selected from the result.
    let first = path.split('.').next().unwrap_or(path);
    let is_it = |name: &str| same_but_hyphens(name, path) || same_but_hyphens(name, first);
    let implicit = matches!(step.action, ActionDraft::Http { .. })
        && ImplicitResult::ALL
            .iter()
            .any(|result| is_it(result.name()));
    implicit || mapped_names(step).any(is_it)
}
