//! Flows: checked, stored as a ControllerRevision, then Ready.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::{Client, ResourceExt as _};
use kubezap_api::conditions::{self, Status, Verdict, reason};
use kubezap_api::lower::{self, Lowered};
use kubezap_api::{Flow, FlowStatus};
use serde_json::Value;

use crate::flows::{Edition, Flows, Standing, runnable};
use crate::reconcile::{Place, Reconcile, ReconcileError};
use crate::revision::{Holder, Revision};
use crate::status::{Conditions, is_observed};

/// Keeps Flows.
pub(crate) struct FlowReconciler {
    pub(crate) client: Client,
    pub(crate) flows: Flows,
}

impl Reconcile for FlowReconciler {
    type Kind = Flow;

    fn note(&self, place: &Place, flow: Option<&Arc<Flow>>) -> Vec<Place> {
        let edition = flow.map(|flow| Edition::of(&**flow));
        self.flows.see(Holder::Flow, place, edition);
        Vec::new()
    }

    async fn reconcile(&self, flow: Arc<Flow>) -> Result<Option<Duration>, ReconcileError> {
        if self.is_done(&flow) {
            return Ok(None);
        }
        let lowered = lower::flow(&flow.name_any(), &flow.spec);
        let ready = match self.store(&flow, &lowered).await? {
            Standing::Refused { message } if lowered.flow.is_ok() => Verdict {
                status: Status::False,
                reason: reason::INVALID_SPEC,
                message,
            },
            Standing::Refused { .. } | Standing::Ready { .. } => lowered.ready(),
        };
        plan(&flow, &ready, &lowered, Timestamp::now())
            .record(&self.client, &*flow)
            .await?;
        Ok(None)
    }
}

impl FlowReconciler {
    fn is_done(&self, flow: &Flow) -> bool {
        let standing = self
            .flows
            .standing(Holder::Flow, &place(flow), &Edition::of(flow));
        standing.is_some() && is_observed(flow, conditions_of(flow.status.as_ref()))
    }

    /// Stores the revision of a Flow that can run, and lets runs have it.
    async fn store(&self, flow: &Flow, lowered: &Lowered) -> Result<Standing, ReconcileError> {
        let refused = |why: String| Standing::Refused {
            message: format!("the Flow {} is not Ready: {why}", flow.name_any()),
        };
        let standing = match runnable(lowered) {
            Err(why) => refused(why),
            Ok(runs) => match revision(flow).store(&self.client).await {
                Ok(revision) => Standing::Ready {
                    revision,
                    flow: runs,
                },
                Err(error @ ReconcileError::Collision { .. }) => refused(error.to_string()),
                Err(error) => return Err(error),
            },
        };
        self.flows.settle(
            Holder::Flow,
            &place(flow),
            Edition::of(flow),
            standing.clone(),
        );
        Ok(standing)
    }
}

fn place(flow: &Flow) -> Place {
    Place::new(flow.namespace().unwrap_or_default(), flow.name_any())
}

fn revision(flow: &Flow) -> Revision {
    Revision {
        holder: Holder::Flow,
        namespace: flow.namespace().unwrap_or_default(),
        of: flow.name_any(),
        // What was read from JSON can be written as JSON.
        data: serde_json::to_value(&flow.spec).unwrap_or(Value::Null),
    }
}

fn conditions_of(
    status: Option<&FlowStatus>,
) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    status.map_or(&[], |status| &status.conditions)
}

/// What a Flow's conditions should be.
fn plan(flow: &Flow, ready: &Verdict, lowered: &Lowered, now: Timestamp) -> Conditions {
    let mut plan = Conditions::of(flow, conditions_of(flow.status.as_ref()), now);
    plan.set(conditions::READY, ready);
    plan.set_or_remove(conditions::DEGRADED, lowered.degraded().as_ref());
    plan
}
