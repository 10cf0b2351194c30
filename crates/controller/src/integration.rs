//! Integrations: accepted, and not in use yet.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kubezap_api::{Integration, conditions, lower};

use crate::reconcile::{Reconcile, ReconcileError};
use crate::status::Conditions;

/// Keeps Integrations.
pub(crate) struct IntegrationReconciler {
    pub(crate) client: Client,
}

impl Reconcile for IntegrationReconciler {
    type Kind = Integration;

    async fn reconcile(
        &self,
        integration: Arc<Integration>,
    ) -> Result<Option<Duration>, ReconcileError> {
        plan(&integration, Timestamp::now())
            .record(&self.client, &*integration)
            .await?;
        Ok(None)
    }
}

fn plan(integration: &Integration, now: Timestamp) -> Conditions {
    let before = integration
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let reported = lower::integration(&integration.spec);
    let mut plan = Conditions::of(integration, before, now);
    plan.set(conditions::READY, &reported.ready());
    plan.set_or_remove(conditions::DEGRADED, reported.degraded().as_ref());
    plan
}
