//! WebhookGatewayConfigs: accepted, and not in effect yet.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kubezap_api::conditions::{self, Status, Verdict, reason};
use kubezap_api::{WebhookGatewayConfig, lower};

use crate::reconcile::{Reconcile, ReconcileError};
use crate::status::Conditions;

/// Keeps WebhookGatewayConfigs.
pub(crate) struct WebhookGatewayConfigReconciler {
    pub(crate) client: Client,
}

impl Reconcile for WebhookGatewayConfigReconciler {
    type Kind = WebhookGatewayConfig;

    async fn reconcile(
        &self,
        config: Arc<WebhookGatewayConfig>,
    ) -> Result<Option<Duration>, ReconcileError> {
        plan(&config, Timestamp::now())
            .record(&self.client, &*config)
            .await?;
        Ok(None)
    }
}

fn plan(config: &WebhookGatewayConfig, now: Timestamp) -> Conditions {
    let before = config
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let mut plan = Conditions::of(config, before, now);
    let reported = lower::webhook_gateway_config(&config.spec);
    let ready = server_secret_missing(config).unwrap_or_else(|| reported.ready());
    plan.set(conditions::READY, &ready);
    plan.set_or_remove(conditions::DEGRADED, reported.degraded().as_ref());
    plan
}

/// A client CA alone asks for nothing that a gateway could do.
fn server_secret_missing(config: &WebhookGatewayConfig) -> Option<Verdict> {
    let tls = config.spec.tls.as_ref()?;
    let missing = tls.client_ca_secret_ref.is_some() && tls.server_secret_ref.is_none();
    missing.then(|| Verdict {
        status: Status::False,
        reason: reason::SERVER_SECRET_NOT_FOUND,
        message: "spec.tls.serverSecretRef: clientCASecretRef needs it; name the Secret with tls.crt and tls.key"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(spec: Value) -> Option<&'static str> {
        let config = serde_json::from_value(json!({
            "apiVersion": "automation.kubezap.io/v1alpha1",
            "kind": "WebhookGatewayConfig",
            "metadata": {"name": "default", "generation": 1},
            "spec": spec,
        }))
        .unwrap();
        server_secret_missing(&config).map(|verdict| verdict.reason)
    }

    #[test]
    fn a_client_ca_without_a_server_certificate_has_its_own_reason() {
        let ca = json!({"name": "ca"});
        assert_eq!(
            refused(json!({"tls": {"clientCASecretRef": ca}})),
            Some("ServerSecretNotFound")
        );
        let both = json!({"tls": {"clientCASecretRef": ca, "serverSecretRef": {"name": "tls"}}});
        assert_eq!(refused(both), None);
        assert_eq!(refused(json!({})), None);
    }
}
