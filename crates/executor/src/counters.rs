//! How calls end, counted.

use kubezap_chassis::metrics::{Labels, Metrics};
use kubezap_step_protocol::ExecuteResponse;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::failure::Failure;

pub(crate) struct Counters {
    requests: Family<Labels, Counter>,
    denied: Family<Labels, Counter>,
}

impl Counters {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.register(
                "executor_requests",
                "Calls by how they ended: ok when the target answered, else the failure's code",
                Family::default(),
            ),
            denied: metrics.register(
                "egress_denied",
                "Calls that the egress guard refused, by reason",
                Family::default(),
            ),
        }
    }

    pub(crate) fn count(&self, outcome: &Result<ExecuteResponse, Failure>) {
        let code = match outcome {
            Ok(_) => "ok",
            Err(failure) => failure.code.as_str(),
        };
        self.requests
            .get_or_create(&vec![("code", code.to_owned())])
            .inc();
        if let Err(Failure {
            denied: Some(reason),
            ..
        }) = outcome
        {
            self.denied
                .get_or_create(&vec![("reason", (*reason).to_owned())])
                .inc();
        }
    }
}
