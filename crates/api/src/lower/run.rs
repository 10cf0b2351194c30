//! A FlowRun, to and from what the engine knows of a run.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Resource as _;
use kubezap_engine::driver::{RunObject, SLOTS, Slot};
use kubezap_engine::event::{Event, Source};
use kubezap_engine::flow::Problem;
use kubezap_engine::run::{self, RunSpec};
use kubezap_engine::trigger::RunRequest;

use super::{event, problem, trigger_data};
use crate::flow_run::{FlowRun, FlowRunSpec, RunFlowRef, TriggerRef};
use crate::metadata::{ANNOTATION_CANCEL, LABEL_SLOT};
use crate::status::from_status;
use crate::trigger::Trigger;

/// Reads a FlowRun as the store has it. Of params with the same name the last counts.
pub fn run_object(object: &FlowRun) -> RunObject {
    let metadata = &object.metadata;
    let spec = &object.spec;
    let label = |name: &str| metadata.labels.as_ref().and_then(|all| all.get(name));
    let annotation = |name: &str| metadata.annotations.as_ref().and_then(|all| all.get(name));
    RunObject {
        spec: Arc::new(RunSpec {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            created: metadata
                .creation_timestamp
                .as_ref()
                .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            flow: spec
                .flow_ref
                .as_ref()
                .map(|flow| flow.name.clone())
                .unwrap_or_default(),
            trigger: spec.trigger_ref.as_ref().map(|trigger| run::TriggerRef {
                name: trigger.name.clone(),
                kind: trigger.type_.clone(),
            }),
            params: spec
                .params
                .iter()
                .map(|param| (param.name.clone(), param.value.clone()))
                .collect(),
            event: Arc::new(event_of(spec)),
        }),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        slot: label(LABEL_SLOT)
            .and_then(|text| text.parse::<Slot>().ok())
            .filter(|slot| *slot < SLOTS),
        cancel: annotation(ANNOTATION_CANCEL).is_some_and(|value| value == "true"),
        deleting: metadata.deletion_timestamp.is_some(),
        status: object
            .status
            .as_ref()
            .filter(|status| status.phase.is_some())
            .map(from_status),
    }
}

/// The event of a run; one that does not say where it came from came from its Trigger's kind of source.
fn event_of(spec: &FlowRunSpec) -> Event {
    let data = spec.trigger_data.as_ref();
    let mut read = data.map(event).unwrap_or_default();
    let says_where = data.is_some_and(|data| data.source.is_some());
    if let (false, Some(trigger)) = (says_where, &spec.trigger_ref) {
        read.source = match trigger.type_.as_str() {
            "webhook" => Source::Webhook,
            "cron" => Source::Cron,
            "kafka" => Source::Kafka,
            "amqp" => Source::Amqp,
            "nats" => Source::Nats,
            "resource" => Source::KubernetesEvent,
            "plugin" => Source::Plugin,
            _ => Source::Manual,
        };
    }
    read
}

/// Makes the FlowRun that a run request asks for. The Trigger owns it.
pub fn flow_run(request: &RunRequest, trigger: &Trigger) -> FlowRun {
    let mut object = FlowRun::new(
        &request.name,
        FlowRunSpec {
            flow_ref: trigger.spec.flow_ref.as_ref().map(|flow| RunFlowRef {
                name: flow.name.clone(),
                namespace: None,
            }),
            params: Vec::new(),
            trigger_ref: Some(TriggerRef {
                name: trigger.metadata.name.clone().unwrap_or_default(),
                type_: trigger.spec.type_.as_str().to_owned(),
            }),
            trigger_data: Some(trigger_data(&request.event)),
            ttl_after_finished: None,
        },
    );
    object.metadata.namespace = trigger.metadata.namespace.clone();
    object.metadata.labels = Some(request.labels.clone());
    object.metadata.annotations = Some(request.annotations.clone());
    object.metadata.owner_references = trigger.controller_owner_ref(&()).map(|owner| vec![owner]);
    object
}

/// What of a FlowRun's spec has no effect yet, for a condition `Degraded`.
pub fn flow_run_degraded(spec: &FlowRunSpec) -> Vec<Problem> {
    spec.ttl_after_finished
        .iter()
        .map(|_| {
            problem(
                "spec.ttlAfterFinished",
                "has no effect yet: the FlowRun is kept",
            )
        })
        .collect()
}
