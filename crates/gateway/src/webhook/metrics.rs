//! What the webhook gateway counts. Labels hold names of Triggers and words of ours, never what a sender chose.

use std::time::Duration;

use kubezap_chassis::metrics::{self, Labels, Metrics};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::answer::Answer;
use super::route::Route;

/// Counters and histograms of one gateway.
#[derive(Clone)]
pub(crate) struct Counts {
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    auth_failures: Family<Labels, Counter>,
    firings: Family<Labels, Counter>,
    rate_limited: Family<Labels, Counter>,
    last_fired: Family<Labels, Gauge>,
}

impl Counts {
    pub(crate) fn new(registry: &Metrics) -> Self {
        Self {
            durations: registry.register(
                "webhook_request_duration_seconds",
                "Time from the head of a webhook request to its answer",
                Family::new_with_constructor(metrics::latency as fn() -> Histogram),
            ),
            auth_failures: registry.register(
                "webhook_auth_failures",
                "Webhook requests answered 401",
                Family::default(),
            ),
            firings: registry.register(
                "trigger_firings",
                "Events of Triggers, by what became of them",
                Family::default(),
            ),
            rate_limited: registry.register(
                "webhook_rate_limited",
                "Webhook requests answered 429",
                Family::default(),
            ),
            last_fired: registry.register(
                "trigger_last_fired_timestamp",
                "When a Trigger last made a FlowRun, in seconds since the epoch",
                Family::default(),
            ),
        }
    }

    /// Counts a finished request; `now` is in seconds since the epoch.
    pub(crate) fn request(&self, route: Option<&Route>, answer: &Answer, took: Duration, now: i64) {
        let result = match answer {
            Answer::Accepted { .. } => "accepted",
            Answer::TooMany { .. } => "rate_limited",
            _ => "rejected",
        };
        let trigger = route.map_or("", Route::trigger).to_owned();
        self.durations
            .get_or_create(&vec![
                ("trigger", trigger.clone()),
                ("result", result.to_owned()),
            ])
            .observe(took.as_secs_f64());
        let Some(route) = route else { return };
        let fired = match answer {
            Answer::Accepted { .. } => "success",
            Answer::TooMany { .. } => "rate_limited",
            Answer::Invalid | Answer::Unavailable { .. } => "error",
            // The sender's fault: no event came to be.
            Answer::BrokenBody
            | Answer::Unauthorized { .. }
            | Answer::NotFound
            | Answer::MethodNotAllowed { .. }
            | Answer::TooSlow
            | Answer::TooLarge { .. }
            | Answer::HeadersTooLarge { .. } => return,
        };
        self.firings
            .get_or_create(&vec![
                ("namespace", route.namespace.clone()),
                ("trigger", trigger.clone()),
                ("type", route.engine.kind.clone()),
                ("result", fired.to_owned()),
            ])
            .inc();
        match answer {
            Answer::Accepted { .. } => {
                self.last_fired
                    .get_or_create(&vec![("trigger", trigger)])
                    .set(now);
            }
            Answer::TooMany { .. } => {
                self.rate_limited
                    .get_or_create(&vec![
                        ("trigger", trigger),
                        ("namespace", route.namespace.clone()),
                    ])
                    .inc();
            }
            _ => {}
        }
    }

    /// Counts a failed check.
    pub(crate) fn auth_failure(&self, trigger: &str, kind: &str, reason: &str) {
        self.auth_failures
            .get_or_create(&vec![
                ("trigger", trigger.to_owned()),
                ("type", kind.to_owned()),
                ("reason", reason.to_owned()),
            ])
            .inc();
    }
}
