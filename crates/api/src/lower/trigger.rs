//! A Trigger to the engine's, and its webhook to a route.

use std::time::Duration;

use kubezap_engine::effect::KeyRef;
use kubezap_engine::flow::Problem;
use kubezap_engine::trigger::Trigger as EngineTrigger;

use super::auth::{self, AuthReport};
use super::{UNKNOWN_TYPE, action, degraded, duration_at, problem, ready, unused_blocks};
use crate::conditions::{Verdict, reason};
use crate::metadata::{
    ANNOTATION_TLS_CA_SECRET, ANNOTATION_TLS_CLIENT_CERT_SECRET,
    ANNOTATION_TLS_INSECURE_SKIP_VERIFY,
};
use crate::trigger::{Trigger, TriggerSpec, TriggerType, WebhookSource};

/// What became of a Trigger.
#[derive(Clone, Debug)]
pub struct TriggerLowered {
    /// As the engine names runs after it.
    pub trigger: EngineTrigger,
    /// The route to serve; `None` when the Trigger is paused, is no webhook, or may not be served because something is wrong or
    /// not supported.
    pub webhook: Option<WebhookRoute>,
    /// What is wrong, the Trigger's action included. The Trigger is not Ready.
    pub problems: Vec<Problem>,
    /// What this version cannot do, the Trigger's action included. The Trigger is not Ready.
    pub not_supported: Vec<Problem>,
    /// What has no effect yet. The Trigger is served all the same.
    pub degraded: Vec<Problem>,
    /// Blocks beside the one that `type` names.
    pub unused: Vec<Problem>,
}

impl TriggerLowered {
    /// Judges the conditions `Ready` and `Accepted`, as far as the Trigger alone goes.
    pub fn ready(&self) -> Verdict {
        ready(reason::TRIGGER_READY, &self.problems, &self.not_supported)
    }

    /// Judges the condition `Degraded`; `None` when it should not be there.
    pub fn degraded(&self) -> Option<Verdict> {
        degraded(&self.degraded, &self.unused)
    }
}

/// What the webhook gateway serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRoute {
    /// Path, `/hooks` included.
    pub path: String,
    /// Method, upper case.
    pub method: &'static str,
    /// What a sender must prove.
    pub auth: Auth,
    /// Headers to redact beside those that always are.
    pub redact_headers: Vec<String>,
    /// Whether the body is redacted.
    pub redact_body: bool,
}

/// What a sender must prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Nothing.
    None,
    /// A signature over the body as GitHub makes it: `X-Hub-Signature-256: sha256=<hex>`.
    HmacGithub {
        /// The shared secret.
        secret: KeyRef,
    },
    /// `Authorization: Bearer <token>`.
    Bearer {
        /// The token.
        token: KeyRef,
    },
}

/// Lowers a Trigger, with its action if it has one.
pub fn trigger(trigger: &Trigger) -> TriggerLowered {
    let spec = &trigger.spec;
    let mut lowered = TriggerLowered {
        trigger: EngineTrigger {
            name: trigger.metadata.name.clone().unwrap_or_default(),
            namespace: trigger.metadata.namespace.clone().unwrap_or_default(),
            uid: trigger.metadata.uid.clone().unwrap_or_default(),
            kind: spec.type_.as_str().to_owned(),
            flow: spec.flow_ref.as_ref().map(|flow| flow.name.clone()),
        },
        webhook: None,
        problems: Vec::new(),
        not_supported: Vec::new(),
        degraded: Vec::new(),
        unused: Vec::new(),
    };
    lowered.source(spec);
    lowered.target(trigger);
    lowered.annotations(trigger);
    lowered.limits(spec);
    let served = spec.enabled && lowered.problems.is_empty() && lowered.not_supported.is_empty();
    if !served {
        lowered.webhook = None;
    }
    lowered
}

/// The path a webhook is served on: `/hooks` is put before a path that does not have it.
pub fn hook_path(path: &str) -> String {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path == "hooks" || path.starts_with("hooks/") {
        format!("/{path}")
    } else {
        format!("/hooks/{path}")
    }
}

impl TriggerLowered {
    /// Reads the block that `type` names.
    fn source(&mut self, spec: &TriggerSpec) {
        unused_blocks(
            &mut self.unused,
            "spec",
            spec.type_,
            &[
                ("webhook", spec.webhook.is_some(), TriggerType::Webhook),
                ("cron", spec.cron.is_some(), TriggerType::Cron),
                ("kafka", spec.kafka.is_some(), TriggerType::Kafka),
                ("amqp", spec.amqp.is_some(), TriggerType::Amqp),
                ("nats", spec.nats.is_some(), TriggerType::Nats),
                ("resource", spec.resource.is_some(), TriggerType::Resource),
                ("plugin", spec.plugin.is_some(), TriggerType::Plugin),
            ],
        );
        match spec.type_ {
            TriggerType::Webhook => match &spec.webhook {
                Some(webhook) => self.route(webhook),
                None => self
                    .problems
                    .push(problem("spec.webhook", "type webhook needs this block")),
            },
            TriggerType::Unknown => self.not_supported.push(problem("spec.type", UNKNOWN_TYPE)),
            TriggerType::Cron
            | TriggerType::Kafka
            | TriggerType::Amqp
            | TriggerType::Nats
            | TriggerType::Resource
            | TriggerType::Plugin => self.not_supported.push(problem(
                "spec.type",
                format!("{} is not supported yet", spec.type_.as_str()),
            )),
        }
    }

    fn route(&mut self, webhook: &WebhookSource) {
        if webhook.rate_limit.is_some() {
            self.not_supported.push(problem(
                "spec.webhook.rateLimit",
                "rate limits are not supported yet",
            ));
        }
        let mut report = AuthReport::default();
        let auth = auth::lower(webhook.auth.as_ref(), &mut report);
        self.problems.append(&mut report.problems);
        self.not_supported.append(&mut report.not_supported);
        self.unused.append(&mut report.unused);
        self.webhook = auth.map(|auth| WebhookRoute {
            path: hook_path(&webhook.path),
            method: webhook.method.as_str(),
            auth,
            redact_headers: webhook.redact_headers.clone(),
            redact_body: webhook.redact_body,
        });
    }

    /// Reads what an event runs.
    fn target(&mut self, trigger: &Trigger) {
        match (&trigger.spec.flow_ref, &trigger.spec.action) {
            (Some(_), Some(_)) => self.problems.push(problem(
                "spec.action",
                "a Trigger has a flowRef or an action, not both",
            )),
            (None, None) => self.problems.push(problem(
                "spec.flowRef",
                "name the Flow to run, or give an action",
            )),
            (Some(flow), None) => {
                if flow.namespace.as_ref().is_some_and(|text| !text.is_empty()) {
                    self.problems.push(problem(
                        "spec.flowRef.namespace",
                        "a Flow lives in its Trigger's namespace; remove this field",
                    ));
                }
            }
            (None, Some(_)) => {
                let mut action = action(trigger);
                if let Err(problems) = &mut action.flow {
                    self.problems.append(problems);
                }
                self.not_supported.append(&mut action.not_supported);
                self.degraded.append(&mut action.degraded);
                self.unused.append(&mut action.unused);
            }
        }
    }

    fn annotations(&mut self, trigger: &Trigger) {
        let Some(annotations) = &trigger.metadata.annotations else {
            return;
        };
        let path = |name: &str| format!("metadata.annotations[{name}]");
        for name in [ANNOTATION_TLS_CA_SECRET, ANNOTATION_TLS_CLIENT_CERT_SECRET] {
            if !annotations.contains_key(name) {
                continue;
            }
            if trigger.spec.action.is_some() {
                self.not_supported.push(problem(
                    path(name),
                    "TLS settings of an action are not supported yet",
                ));
            } else {
                self.degraded
                    .push(problem(path(name), "has no effect without an action"));
            }
        }
        if annotations.contains_key(ANNOTATION_TLS_INSECURE_SKIP_VERIFY) {
            self.degraded.push(problem(
                path(ANNOTATION_TLS_INSECURE_SKIP_VERIFY),
                "has no effect: certificates are always checked",
            ));
        }
    }

    /// Reads limits and retention, which have no effect yet.
    fn limits(&mut self, spec: &TriggerSpec) {
        let mut check = |path: &str, text: &str| {
            duration_at(&mut self.problems, path, text, Duration::ZERO);
        };
        if let Some(cooldown) = &spec.cooldown {
            check("spec.cooldown.window", &cooldown.window);
            if cooldown.max_invocations > 0 {
                self.degraded.push(problem(
                    "spec.cooldown",
                    "has no effect yet: every event makes a FlowRun",
                ));
            }
        }
        if let Some(gc) = &spec.flow_run_gc {
            for (path, text) in [
                ("spec.flowRunGC.ttlAfterSucceeded", &gc.ttl_after_succeeded),
                ("spec.flowRunGC.ttlAfterFailed", &gc.ttl_after_failed),
            ] {
                if let Some(text) = text {
                    check(path, text);
                }
            }
            self.degraded.push(problem(
                "spec.flowRunGC",
                "has no effect yet: FlowRuns are kept",
            ));
        }
    }
}
