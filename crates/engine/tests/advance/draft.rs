//! Flows in a few words.

use std::time::Duration;

use kubezap_engine::flow::{ActionDraft, FlowDraft, OnFailure, Param, StepDraft};
use kubezap_engine::retry::{Backoff, RetryPolicy};

/// A Flow of these steps that may take ten minutes.
pub(crate) fn flow(steps: impl IntoIterator<Item = StepDraft>) -> FlowDraft {
    FlowDraft {
        name: "shop".to_owned(),
        timeout: Duration::from_secs(600),
        failure_policy: OnFailure::Fail,
        params: Vec::new(),
        steps: steps.into_iter().collect(),
    }
}

/// A step that calls a target.
pub(crate) fn http(name: &str) -> StepDraft {
    step(
        name,
        ActionDraft::Http {
            url: format!("https://{name}.example.com/"),
            method: "POST".to_owned(),
            headers: Vec::new(),
            body: None,
            timeout: Duration::from_secs(30),
            result_mappings: Vec::new(),
        },
    )
}

/// A step that computes results.
pub(crate) fn transform(name: &str, mappings: &[(&str, &str)]) -> StepDraft {
    step(
        name,
        ActionDraft::Transform {
            mappings: pairs(mappings),
        },
    )
}

/// A step that waits.
pub(crate) fn wait(name: &str, seconds: u64) -> StepDraft {
    step(
        name,
        ActionDraft::Wait {
            duration: Duration::from_secs(seconds),
        },
    )
}

fn step(name: &str, action: ActionDraft) -> StepDraft {
    StepDraft {
        name: name.to_owned(),
        run_after: Vec::new(),
        when: Vec::new(),
        action,
        retry: None,
        timeout: None,
        on_failure: None,
    }
}

/// One attempt and so many more, 2 s apart.
pub(crate) fn fixed(max_retries: u32) -> RetryPolicy {
    RetryPolicy {
        max_retries,
        backoff: Backoff::Fixed,
        initial_delay: Duration::from_secs(2),
        max_delay: Duration::from_secs(60),
        multiplier: 2.0,
    }
}

/// A declared parameter.
pub(crate) fn param(name: &str, required: bool, default: Option<&str>) -> Param {
    Param {
        name: name.to_owned(),
        required,
        default: default.map(str::to_owned),
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    pairs.iter().map(owned).collect()
}

/// Says more of a step.
pub(crate) trait Words: Sized {
    /// Runs after these.
    fn after(self, names: &[&str]) -> Self;
    /// Runs if this holds.
    fn when(self, condition: &str) -> Self;
    /// What its failure does.
    fn on_failure(self, policy: OnFailure) -> Self;
    /// Retries.
    fn retry(self, policy: RetryPolicy) -> Self;
    /// The most an attempt may take.
    fn timeout(self, seconds: u64) -> Self;
    /// The body of its request.
    fn body(self, template: &str) -> Self;
    /// The URL of its request.
    fn url(self, template: &str) -> Self;
    /// A header of its request.
    fn header(self, name: &str, template: &str) -> Self;
    /// A result by JSONPath.
    fn result(self, name: &str, path: &str) -> Self;
    /// What its call may take.
    fn call_timeout(self, seconds: u64) -> Self;
}

impl Words for StepDraft {
    fn after(mut self, names: &[&str]) -> Self {
        self.run_after = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    fn when(mut self, condition: &str) -> Self {
        self.when.push(condition.to_owned());
        self
    }

    fn on_failure(mut self, policy: OnFailure) -> Self {
        self.on_failure = Some(policy);
        self
    }

    fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    fn timeout(mut self, seconds: u64) -> Self {
        self.timeout = Some(Duration::from_secs(seconds));
        self
    }

    fn body(mut self, template: &str) -> Self {
        if let ActionDraft::Http { body, .. } = &mut self.action {
            *body = Some(template.to_owned());
        }
        self
    }

    fn url(mut self, template: &str) -> Self {
        if let ActionDraft::Http { url, .. } = &mut self.action {
            *url = template.to_owned();
        }
        self
    }

    fn header(mut self, name: &str, template: &str) -> Self {
        if let ActionDraft::Http { headers, .. } = &mut self.action {
            headers.push((name.to_owned(), template.to_owned()));
        }
        self
    }

    fn result(mut self, name: &str, path: &str) -> Self {
        if let ActionDraft::Http {
            result_mappings, ..
        } = &mut self.action
        {
            result_mappings.push((name.to_owned(), path.to_owned()));
        }
        self
    }

    fn call_timeout(mut self, seconds: u64) -> Self {
        if let ActionDraft::Http { timeout, .. } = &mut self.action {
            *timeout = Duration::from_secs(seconds);
        }
        self
    }
}
