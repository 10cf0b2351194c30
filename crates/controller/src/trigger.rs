//! Triggers: whether they are served, and the revision of an action.

mod paths;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Client, ResourceExt as _};
use kubezap_api::Trigger;
use kubezap_api::conditions::{self, Status, Verdict, reason};
use kubezap_api::lower::{self, TriggerLowered};
use kubezap_api::trigger::TriggerAction;
use serde_json::Value;

use self::paths::Paths;
use crate::flows::{Edition, Flows, Standing, runnable};
use crate::reconcile::{Place, Reconcile, ReconcileError};
use crate::revision::{Holder, Revision};
use crate::status::Conditions;

/// Keeps Triggers. A gateway owns the rest of their status.
pub(crate) struct TriggerReconciler {
    client: Client,
    flows: Flows,
    paths: Paths,
}

impl TriggerReconciler {
    pub(crate) fn new(client: Client, flows: Flows) -> Self {
        Self {
            client,
            flows,
            paths: Paths::default(),
        }
    }
}

impl Reconcile for TriggerReconciler {
    type Kind = Trigger;

    fn note(&self, place: &Place, trigger: Option<&Arc<Trigger>>) -> Vec<Place> {
        let edition = trigger.map(|trigger| Edition::of(&**trigger));
        self.flows.see(Holder::Trigger, place, edition);
        self.paths.note(place, trigger.map(|trigger| &**trigger))
    }

    async fn reconcile(&self, trigger: Arc<Trigger>) -> Result<Option<Duration>, ReconcileError> {
        let lowered = lower::trigger(&trigger);
        let standing = self.store(&trigger).await?;
        let beside_others = match (standing, self.paths.older(&place(&trigger))) {
            (Standing::Refused { message }, _) if trigger.spec.action.is_some() => {
                Some(invalid(message))
            }
            (_, Some(older)) => Some(path_conflict(&trigger, &older)),
            (_, None) => None,
        };
        plan(&trigger, &lowered, beside_others, Timestamp::now())
            .record(&self.client, &*trigger)
            .await?;
        Ok(None)
    }
}

impl TriggerReconciler {
    /// Stores the revision of an action that can run, and lets runs have it.
    async fn store(&self, trigger: &Trigger) -> Result<Standing, ReconcileError> {
        let (place, edition) = (place(trigger), Edition::of(trigger));
        if let Some(standing) = self.flows.standing(Holder::Trigger, &place, &edition) {
            return Ok(standing);
        }
        let standing = match &trigger.spec.action {
            None => Standing::Refused {
                message: format!("the Trigger {} has no action to run", place.name),
            },
            Some(action) => {
                let refused = |why: String| Standing::Refused {
                    message: format!("the action of the Trigger {} cannot run: {why}", place.name),
                };
                match runnable(&lower::action(trigger)) {
                    Err(why) => refused(why),
                    Ok(flow) => match revision(&place, action).store(&self.client).await {
                        Ok(revision) => Standing::Ready { revision, flow },
                        Err(error @ ReconcileError::Collision { .. }) => refused(error.to_string()),
                        Err(error) => return Err(error),
                    },
                }
            }
        };
        self.flows
            .settle(Holder::Trigger, &place, edition, standing.clone());
        Ok(standing)
    }
}

fn revision(place: &Place, action: &TriggerAction) -> Revision {
    Revision {
        holder: Holder::Trigger,
        namespace: place.namespace.clone(),
        of: place.name.clone(),
        // What was read from JSON can be written as JSON.
        data: serde_json::to_value(action).unwrap_or(Value::Null),
    }
}

fn place(trigger: &Trigger) -> Place {
    Place::new(trigger.namespace().unwrap_or_default(), trigger.name_any())
}

fn invalid(message: String) -> Verdict {
    Verdict {
        status: Status::False,
        reason: reason::INVALID_SPEC,
        message,
    }
}

fn path_conflict(trigger: &Trigger, older: &str) -> Verdict {
    let path = trigger
        .spec
        .webhook
        .as_ref()
        .map(|webhook| lower::hook_path(&webhook.path))
        .unwrap_or_default();
    Verdict {
        status: Status::False,
        reason: reason::PATH_CONFLICT,
        message: format!(
            "spec.webhook.path: {path} belongs to the older Trigger {older}; choose another path"
        ),
    }
}

/// What a Trigger's conditions should be. What is wrong with it alone is told before what is wrong beside others.
fn plan(
    trigger: &Trigger,
    lowered: &TriggerLowered,
    beside_others: Option<Verdict>,
    now: Timestamp,
) -> Conditions {
    let alone = lowered.ready();
    let ready = match beside_others {
        Some(conflict) if alone.status == Status::True => conflict,
        _ if alone.status == Status::True && !trigger.spec.enabled => Verdict {
            status: Status::True,
            reason: reason::TRIGGER_READY,
            message: "paused: spec.enabled is false".to_owned(),
        },
        _ => alone,
    };
    let mut plan = Conditions::of(trigger, conditions_of(trigger), now);
    plan.set(conditions::READY, &ready);
    plan.set(conditions::ACCEPTED, &ready);
    plan.set_or_remove(conditions::DEGRADED, lowered.degraded().as_ref());
    plan
}

fn conditions_of(trigger: &Trigger) -> &[Condition] {
    trigger
        .status
        .as_ref()
        .map_or(&[], |status| &status.conditions)
}
