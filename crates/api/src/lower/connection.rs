//! What is said of an Integration and of a WebhookGatewayConfig. Neither is carried out by this version.

use kubezap_engine::flow::Problem;

use super::{UNKNOWN_TYPE, degraded, problem, ready, unused_blocks};
use crate::conditions::{Verdict, reason};
use crate::integration::{HttpAuthType, IntegrationSpec, IntegrationType};
use crate::webhook_gateway_config::WebhookGatewayConfigSpec;

/// What became of an Integration or a WebhookGatewayConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// What this version cannot do. The object is not Ready.
    pub not_supported: Vec<Problem>,
    /// Blocks beside the one that `type` names.
    pub unused: Vec<Problem>,
}

impl Reported {
    /// Judges the condition `Ready`.
    pub fn ready(&self) -> Verdict {
        ready(reason::IN_EFFECT, &[], &self.not_supported)
    }

    /// Judges the condition `Degraded`; `None` when it should not be there.
    pub fn degraded(&self) -> Option<Verdict> {
        degraded(&[], &self.unused)
    }
}

/// Judges an Integration.
pub fn integration(spec: &IntegrationSpec) -> Reported {
    let mut unused = Vec::new();
    unused_blocks(
        &mut unused,
        "spec",
        spec.type_,
        &[
            ("kafka", spec.kafka.is_some(), IntegrationType::Kafka),
            ("amqp", spec.amqp.is_some(), IntegrationType::Amqp),
            ("nats", spec.nats.is_some(), IntegrationType::Nats),
            ("http", spec.http.is_some(), IntegrationType::Http),
            ("plugin", spec.plugin.is_some(), IntegrationType::Plugin),
        ],
    );
    if let (IntegrationType::Http, Some(http)) = (spec.type_, &spec.http)
        && let Some(auth) = &http.auth
    {
        unused_blocks(
            &mut unused,
            "spec.http.auth",
            auth.type_,
            &[
                ("bearer", auth.bearer.is_some(), HttpAuthType::Bearer),
                ("basic", auth.basic.is_some(), HttpAuthType::Basic),
                ("apiKey", auth.api_key.is_some(), HttpAuthType::ApiKey),
                (
                    "secretUrl",
                    auth.secret_url.is_some(),
                    HttpAuthType::SecretUrl,
                ),
            ],
        );
    }
    let message = match spec.type_ {
        IntegrationType::Unknown => UNKNOWN_TYPE.to_owned(),
        type_ => format!("{} is not supported yet", type_.as_str()),
    };
    Reported {
        not_supported: vec![problem("spec.type", message)],
        unused,
    }
}

/// Judges a WebhookGatewayConfig.
pub fn webhook_gateway_config(spec: &WebhookGatewayConfigSpec) -> Reported {
    let blocks = [
        ("spec.tls", spec.tls.is_some()),
        ("spec.hpa", spec.hpa.is_some()),
        (
            "spec.podDisruptionBudget",
            spec.pod_disruption_budget.is_some(),
        ),
    ];
    Reported {
        not_supported: blocks
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(path, _)| problem(path, "is not supported yet"))
            .collect(),
        unused: Vec::new(),
    }
}
