//! One step: its name, its arrows and its expressions.

use std::sync::Arc;

use super::Checker;
use super::results::has_result;
use crate::effect::References;
use crate::expression::{Condition, ParseError, Reference, ResultMapping, Target, Template};
use crate::flow::{
    Action, ActionDraft, FlowDraft, HttpAction, ImplicitResult, Problem, StepDraft, StepIndex,
    StepName,
};
use crate::graph::{StepSet, single};

/// What reading one step gave.
pub(super) struct ParsedStep {
    pub(super) name: Option<StepName>,
    pub(super) when: Vec<Condition>,
    pub(super) action: Option<Action>,
    pub(super) run_after: StepSet,
    pub(super) inferred: StepSet,
    /// Which implicit results of which steps it refers to.
    pub(super) wants: Vec<(StepIndex, ImplicitResult)>,
    pub(super) configmaps: References,
}

impl Checker {
    /// Reads one step.
    pub(super) fn step(
        &mut self,
        index: StepIndex,
        draft: &StepDraft,
        flow: &FlowDraft,
    ) -> ParsedStep {
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
}

/// Reads the expressions of one step.
struct Reader<'a> {
    checker: &'a mut Checker,
    step: StepIndex,
    flow: &'a FlowDraft,
    inferred: StepSet,
    wants: Vec<(StepIndex, ImplicitResult)>,
    configmaps: References,
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
