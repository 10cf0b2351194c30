//! A Flow's spec, or a Trigger's action, to the engine's Flow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubezap_engine::flow::{ActionDraft, Flow, FlowDraft, OnFailure, Param, Problem, StepDraft};
use kubezap_engine::retry::{Backoff, RetryPolicy};

use super::{Lowered, UNKNOWN_TYPE, duration_at, positive_duration_at, problem, unused_blocks};
use crate::flow::{self, ActionType, BackoffType, FailurePolicy, FlowSpec, HttpAction, Step};
use crate::trigger::{Trigger, TriggerActionType, WebhookAction};

const TEN_MINUTES: Duration = Duration::from_secs(600);
const THIRTY_SECONDS: Duration = Duration::from_secs(30);

/// Stands in for a URL that is not supported, so that the rest of a Flow is still judged. Such a Flow is never handed out.
const PLACEHOLDER_URL: &str = "http://not-supported.invalid/";

/// Lowers a Flow's spec. `name` is the Flow's.
pub fn flow(name: &str, spec: &FlowSpec) -> Lowered {
    let mut reader = Reader::default();
    let timeout = positive_duration_at(
        &mut reader.problems,
        "spec.timeout",
        &spec.timeout,
        TEN_MINUTES,
    );
    let draft = FlowDraft {
        name: name.to_owned(),
        timeout,
        failure_policy: match spec.failure_policy {
            FailurePolicy::Fail => OnFailure::Fail,
            FailurePolicy::Continue => OnFailure::Continue,
        },
        params: spec.params.iter().map(param).collect(),
        steps: spec
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| reader.step(&format!("spec.steps[{index}]"), step))
            .collect(),
    };
    reader.finish(draft, |path| path.to_owned())
}

/// Lowers a Trigger's `action` as a Flow of one http step named `action`; its paths are the Trigger's.
///
/// A Trigger without an action gives an error.
pub fn action(trigger: &Trigger) -> Lowered {
    let mut reader = Reader::default();
    let Some(action) = &trigger.spec.action else {
        reader.problems.push(problem("spec.action", "is not given"));
        return reader.refused();
    };
    let webhook = match (action.type_, &action.webhook) {
        (TriggerActionType::Webhook, Some(webhook)) => webhook,
        (TriggerActionType::Webhook, None) => {
            reader.problems.push(problem(
                "spec.action.webhook",
                "type webhook needs this block",
            ));
            return reader.refused();
        }
        (TriggerActionType::Unknown, _) => {
            reader
                .not_supported
                .push(problem("spec.action.type", UNKNOWN_TYPE));
            return reader.refused();
        }
    };
    let draft = FlowDraft {
        name: trigger.metadata.name.clone().unwrap_or_default(),
        timeout: TEN_MINUTES,
        failure_policy: OnFailure::Fail,
        params: Vec::new(),
        steps: vec![StepDraft {
            name: "action".to_owned(),
            run_after: Vec::new(),
            when: Vec::new(),
            action: reader.call(webhook),
            retry: None,
            timeout: None,
            on_failure: None,
        }],
    };
    reader.finish(draft, |path| {
        path.replacen("spec.steps[0].action.http", "spec.action.webhook", 1)
    })
}

/// Reads a spec and gathers what is to be said of it.
#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
    not_supported: Vec<Problem>,
    unused: Vec<Problem>,
}

impl Reader {
    /// Judges the whole draft. `path` turns the engine's paths into the object's.
    fn finish(mut self, draft: FlowDraft, path: impl Fn(&str) -> String) -> Lowered {
        match Flow::new(draft) {
            Ok(flow) if self.problems.is_empty() && self.not_supported.is_empty() => Lowered {
                flow: Ok(Arc::new(flow)),
                not_supported: Vec::new(),
                degraded: Vec::new(),
                unused: self.unused,
            },
            Ok(_) => self.refused(),
            Err(problems) => {
                self.problems.extend(problems.into_iter().map(|found| {
                    let path = path(&found.path);
                    Problem { path, ..found }
                }));
                self.refused()
            }
        }
    }

    fn refused(self) -> Lowered {
        Lowered {
            flow: Err(self.problems),
            not_supported: self.not_supported,
            degraded: Vec::new(),
            unused: self.unused,
        }
    }

    fn step(&mut self, at: &str, step: &Step) -> StepDraft {
        StepDraft {
            name: step.name.clone(),
            run_after: step.run_after.clone(),
            when: step
                .when
                .iter()
                .map(|when| when.expression.clone())
                .collect(),
            action: self.action(&format!("{at}.action"), &step.action),
            retry: step
                .retry_policy
                .as_ref()
                .map(|policy| self.retry(&format!("{at}.retryPolicy"), policy)),
            timeout: step.timeout.as_ref().map(|text| {
                let path = format!("{at}.timeout");
                positive_duration_at(&mut self.problems, &path, text, TEN_MINUTES)
            }),
            on_failure: step.on_failure.map(|policy| match policy {
                flow::OnFailure::Fail => OnFailure::Fail,
                flow::OnFailure::Continue => OnFailure::Continue,
                flow::OnFailure::Skip => OnFailure::Skip,
            }),
        }
    }

    fn action(&mut self, at: &str, action: &flow::Action) -> ActionDraft {
        unused_blocks(
            &mut self.unused,
            at,
            action.type_,
            &[
                ("http", action.http.is_some(), ActionType::Http),
                (
                    "transform",
                    action.transform.is_some(),
                    ActionType::Transform,
                ),
                ("publish", action.publish.is_some(), ActionType::Publish),
                ("wait", action.wait.is_some(), ActionType::Wait),
            ],
        );
        match action.type_ {
            ActionType::Http => match &action.http {
                Some(http) => self.http(&format!("{at}.http"), http),
                None => self.missing(at, "http"),
            },
            ActionType::Transform => match &action.transform {
                Some(transform) => ActionDraft::Transform {
                    mappings: pairs(&transform.mappings),
                },
                None => self.missing(at, "transform"),
            },
            ActionType::Wait => match &action.wait {
                Some(wait) => ActionDraft::Wait {
                    duration: duration_at(
                        &mut self.problems,
                        &format!("{at}.wait.duration"),
                        &wait.duration,
                        Duration::ZERO,
                    ),
                },
                None => self.missing(at, "wait"),
            },
            ActionType::Publish => {
                self.not_supported.push(problem(
                    format!("{at}.publish"),
                    "publish steps are not supported yet",
                ));
                nothing()
            }
            ActionType::Unknown => {
                self.not_supported
                    .push(problem(format!("{at}.type"), UNKNOWN_TYPE));
                nothing()
            }
        }
    }

    fn missing(&mut self, at: &str, block: &str) -> ActionDraft {
        self.problems.push(problem(
            format!("{at}.{block}"),
            format!("type {block} needs this block"),
        ));
        nothing()
    }

    fn http(&mut self, at: &str, http: &HttpAction) -> ActionDraft {
        let mut url = http.url.clone();
        if http.integration_ref.is_some() {
            self.not_supported.push(problem(
                format!("{at}.integrationRef"),
                "Integrations are not supported yet",
            ));
            // Relative and empty URLs are whole only once they are joined with the Integration's.
            url = PLACEHOLDER_URL.to_owned();
        } else if url.is_empty() {
            self.problems.push(problem(
                format!("{at}.url"),
                "only a step with an integrationRef may leave it out",
            ));
        }
        self.header_names(at, http.headers.keys());
        let mut result_mappings = pairs(&http.result_mappings);
        for (name, expression) in &mut result_mappings {
            if expression.starts_with('/') {
                self.not_supported.push(problem(
                    format!("{at}.resultMappings[{name}]"),
                    "XPath is not supported yet",
                ));
                "$".clone_into(expression);
            }
        }
        ActionDraft::Http {
            url,
            method: http.method.as_str().to_owned(),
            headers: pairs(&http.headers),
            body: http.body.clone(),
            timeout: match u64::try_from(http.timeout_seconds) {
                Ok(seconds) if seconds > 0 => Duration::from_secs(seconds),
                _ => THIRTY_SECONDS,
            },
            result_mappings,
        }
    }

    fn call(&mut self, webhook: &WebhookAction) -> ActionDraft {
        self.header_names("spec.action.webhook", webhook.headers.keys());
        ActionDraft::Http {
            url: webhook.url.clone(),
            method: webhook.method.as_str().to_owned(),
            headers: pairs(&webhook.headers),
            body: webhook.body.clone(),
            timeout: THIRTY_SECONDS,
            result_mappings: Vec::new(),
        }
    }

    /// A header's name is a token of RFC 9110, section 5.6.2.
    fn header_names<'a>(&mut self, at: &str, names: impl Iterator<Item = &'a String>) {
        let is_token_byte = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        for name in names {
            if name.is_empty() || !name.bytes().all(is_token_byte) {
                self.problems.push(problem(
                    format!("{at}.headers[{name}]"),
                    "is not the name of a header",
                ));
            }
        }
    }

    fn retry(&mut self, at: &str, policy: &flow::RetryPolicy) -> RetryPolicy {
        let multiplier = match policy.multiplier.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= 1.0 => factor,
            _ => {
                self.problems.push(problem(
                    format!("{at}.multiplier"),
                    format!("'{}' is not a number of at least 1", policy.multiplier),
                ));
                2.0
            }
        };
        RetryPolicy {
            max_retries: u32::try_from(policy.max_retries).unwrap_or_default(),
            backoff: match policy.backoff_type {
                BackoffType::Fixed => Backoff::Fixed,
                BackoffType::Linear => Backoff::Linear,
                BackoffType::Exponential => Backoff::Exponential,
            },
            initial_delay: duration_at(
                &mut self.problems,
                &format!("{at}.initialDelay"),
                &policy.initial_delay,
                Duration::from_secs(1),
            ),
            max_delay: duration_at(
                &mut self.problems,
                &format!("{at}.maxDelay"),
                &policy.max_delay,
                Duration::from_secs(60),
            ),
            multiplier,
        }
    }
}

/// Stands in for an action that cannot be read.
fn nothing() -> ActionDraft {
    ActionDraft::Transform {
        mappings: Vec::new(),
    }
}

fn param(param: &flow::Param) -> Param {
    Param {
        name: param.name.clone(),
        required: param.required,
        default: param.default.clone(),
    }
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(String, String)> {
    map.iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
