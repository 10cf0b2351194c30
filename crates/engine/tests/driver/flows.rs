//! Flows for tests, by the shape of their steps.

use std::sync::Arc;
use std::time::Duration;

use kubezap_engine::flow::{ActionDraft, Flow, FlowDraft, OnFailure, StepDraft};
use kubezap_engine::retry::{Backoff, RetryPolicy};

/// An http step.
pub(crate) fn http(name: &str, run_after: &[&str]) -> StepDraft {
    StepDraft {
        name: name.into(),
        run_after: run_after.iter().map(|&step| step.into()).collect(),
        when: Vec::new(),
        action: ActionDraft::Http {
            url: format!("https://target.example/{name}"),
            method: "POST".into(),
            headers: Vec::new(),
            body: Some("{}".into()),
            timeout: Duration::from_secs(30),
            result_mappings: vec![("id".into(), "$.id".into())],
        },
        retry: None,
        timeout: None,
        on_failure: None,
    }
}

/// A wait.
pub(crate) fn wait(name: &str, run_after: &[&str], duration: Duration) -> StepDraft {
    StepDraft {
        action: ActionDraft::Wait { duration },
        ..http(name, run_after)
    }
}

/// A transform.
pub(crate) fn transform(name: &str, run_after: &[&str]) -> StepDraft {
    StepDraft {
        action: ActionDraft::Transform {
            mappings: vec![("greeting".into(), "hello $(run.name)".into())],
        },
        ..http(name, run_after)
    }
}

/// Lets a step be tried again after a fixed delay.
pub(crate) fn retried(step: StepDraft, max_retries: u32, delay: Duration) -> StepDraft {
    StepDraft {
        retry: Some(RetryPolicy {
            max_retries,
            backoff: Backoff::Fixed,
            initial_delay: delay,
            max_delay: Duration::from_secs(60),
            multiplier: 2.0,
        }),
        ..step
    }
}

/// `n` http steps, each after the one before: `s1`, `s2`, ...
pub(crate) fn chain(n: usize) -> Vec<StepDraft> {
    (1..=n)
        .map(|step| {
            let before = format!("s{}", step - 1);
            let run_after: &[&str] = if step == 1 { &[] } else { &[&before] };
            http(&format!("s{step}"), run_after)
        })
        .collect()
}

/// A Flow of these steps.
pub(crate) fn flow(steps: Vec<StepDraft>) -> Arc<Flow> {
    flow_within(Duration::from_secs(600), steps)
}

/// A Flow of these steps that may take this long.
pub(crate) fn flow_within(timeout: Duration, steps: Vec<StepDraft>) -> Arc<Flow> {
    let draft = FlowDraft {
        name: "flow".into(),
        timeout,
        failure_policy: OnFailure::Fail,
        params: Vec::new(),
        steps,
    };
    Arc::new(Flow::new(draft).expect("a valid flow"))
}
