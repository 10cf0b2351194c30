//! A FlowRun is made from a run request and read back as the engine's run.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

use std::collections::BTreeMap;
use std::sync::Arc;

use kubezap_api::flow_run::{ParamValue, RunFlowRef};
use kubezap_api::{FlowRun, FlowRunSpec, Trigger, lower, metadata};
use kubezap_engine::event::{Encoding, Event, Source};
use kubezap_engine::trigger::RunRequest;
use serde_json::json;

fn event() -> Event {
    Event {
        source: Source::Webhook,
        method: "POST".to_owned(),
        path: "/hooks/orders".to_owned(),
        headers: [("X-Github-Event".to_owned(), "push".to_owned())].into(),
        topic: "orders".to_owned(),
        partition: "0".to_owned(),
        offset: "9223372036854775807".to_owned(),
        key: "a2V5".to_owned(),
        key_encoding: "base64".to_owned(),
        scheduled_time: "2026-12-01T10:00:00Z".to_owned(),
        body: "{\"id\": 1}".to_owned(),
        body_encoding: Encoding::Utf8,
        content_type: "application/json".to_owned(),
        event_type: "ADDED".to_owned(),
        resource_name: "web-0".to_owned(),
        resource_namespace: "shop".to_owned(),
        resource_api_version: "v1".to_owned(),
        resource_kind: "Pod".to_owned(),
    }
}

fn trigger() -> Trigger {
    serde_json::from_value(json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "Trigger",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "t-1"},
        "spec": {
            "type": "webhook",
            "webhook": {"path": "orders"},
            "flowRef": {"name": "handle-order"},
        },
    }))
    .unwrap()
}

#[test]
fn an_event_survives_the_store() {
    for stored in [
        event(),
        Event::default(),
        Event {
            body_encoding: Encoding::Base64,
            ..Event::default()
        },
    ] {
        let data = lower::trigger_data(&stored);
        let text = serde_json::to_string(&data).unwrap();
        assert_eq!(lower::event(&serde_json::from_str(&text).unwrap()), stored);
    }
}

#[test]
fn numbers_of_a_kafka_record_are_numbers_in_the_store() {
    let data = serde_json::to_value(lower::trigger_data(&event())).unwrap();
    assert_eq!(data["partition"], 0);
    assert_eq!(data["offset"], i64::MAX);
}

#[test]
fn what_does_not_apply_is_left_out() {
    let data = lower::trigger_data(&Event::default());
    assert_eq!(
        serde_json::to_value(data).unwrap(),
        json!({"source": "manual"})
    );
}

#[test]
fn a_run_is_owned_by_its_trigger_and_names_it() {
    let request = RunRequest {
        name: "orders-1".to_owned(),
        labels: BTreeMap::from([(metadata::LABEL_SLOT.to_owned(), "7".to_owned())]),
        annotations: BTreeMap::from([(metadata::ANNOTATION_EVENT_HASH.to_owned(), "h".to_owned())]),
        event: Arc::new(event()),
    };
    let run = lower::flow_run(&request, &trigger());
    let value = serde_json::to_value(&run).unwrap();
    assert_eq!(
        value["metadata"],
        json!({
            "name": "orders-1",
            "namespace": "shop",
            "labels": {"kubezap.io/slot": "7"},
            "annotations": {"kubezap.io/event-hash": "h"},
            "ownerReferences": [{
                "apiVersion": "automation.kubezap.io/v1alpha1",
                "kind": "Trigger",
                "name": "orders",
                "uid": "t-1",
                "controller": true,
            }],
        })
    );
    assert_eq!(value["spec"]["flowRef"], json!({"name": "handle-order"}));
    assert_eq!(
        value["spec"]["triggerRef"],
        json!({"name": "orders", "type": "webhook"})
    );
    let object = lower::run_object(&run);
    assert_eq!(object.slot, Some(7));
    assert_eq!(*object.spec.event, event());
    assert_eq!(object.spec.flow, "handle-order");
    assert_eq!(object.spec.trigger.as_ref().unwrap().kind, "webhook");
}

#[test]
fn a_run_of_an_action_has_no_flow() {
    let mut acting = trigger();
    acting.spec.flow_ref = None;
    let request = RunRequest {
        name: "orders-1".to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        event: Arc::new(event()),
    };
    let run = lower::flow_run(&request, &acting);
    assert_eq!(run.spec.flow_ref, None);
    assert_eq!(lower::run_object(&run).spec.flow, "");
}

#[test]
fn slots_and_cancellation_are_read_from_metadata() {
    let mut run = FlowRun::new("manual", FlowRunSpec::default());
    let read = |run: &FlowRun| {
        let object = lower::run_object(run);
        (object.slot, object.cancel)
    };
    assert_eq!(read(&run), (None, false));
    for (slot, expected) in [
        ("0", Some(0)),
        ("63", Some(63)),
        ("64", None),
        ("x", None),
        ("-1", None),
    ] {
        run.metadata.labels = Some([("kubezap.io/slot".to_owned(), slot.to_owned())].into());
        assert_eq!(read(&run).0, expected, "{slot}");
    }
    for (value, cancel) in [("true", true), ("false", false), ("", false)] {
        run.metadata.annotations =
            Some([("kubezap.io/cancel".to_owned(), value.to_owned())].into());
        assert_eq!(read(&run).1, cancel, "{value}");
    }
}

#[test]
fn the_last_of_params_with_one_name_counts() {
    let param = |value: &str| ParamValue {
        name: "id".to_owned(),
        value: value.to_owned(),
    };
    let run = FlowRun::new(
        "manual",
        FlowRunSpec {
            flow_ref: Some(RunFlowRef {
                name: "orders".to_owned(),
                namespace: None,
            }),
            params: vec![param("1"), param("2")],
            ..FlowRunSpec::default()
        },
    );
    let object = lower::run_object(&run);
    assert_eq!(object.spec.params["id"], "2");
    assert_eq!(object.spec.trigger, None);
    assert_eq!(object.spec.event.source, Source::Manual);
}

#[test]
fn labels_and_annotations_have_the_names_that_the_engine_gives() {
    let admitted = lower::trigger(&trigger()).trigger.admit(event(), "1");
    let names: Vec<_> = admitted.labels.keys().map(String::as_str).collect();
    let mut ours = [
        metadata::LABEL_FLOW,
        metadata::LABEL_SLOT,
        metadata::LABEL_TRIGGER,
        metadata::LABEL_TRIGGER_TYPE,
    ];
    ours.sort_unstable();
    assert_eq!(names, ours);
    let annotations: Vec<_> = admitted.annotations.keys().map(String::as_str).collect();
    assert_eq!(annotations, [metadata::ANNOTATION_EVENT_HASH]);
    let object = lower::run_object(&lower::flow_run(&admitted, &trigger()));
    let slot = kubezap_engine::driver::slot_of("shop", "orders");
    assert_eq!(object.slot, Some(slot));
}
