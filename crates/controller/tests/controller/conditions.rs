//! What the conditions of each kind say.

use kubezap_api::{Flow, Integration, Trigger, WebhookGatewayConfig};
use kubezap_testing::wait::until;
use serde_json::{Value, json};

use crate::rig::{DEADLINE, Rig, call, conditions_of, object, three_steps};

fn webhook(path: &str, more: Value) -> Value {
    let mut spec = json!({"type": "webhook", "webhook": {"path": path}, "flowRef": {"name": "f"}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

#[tokio::test]
async fn each_spec_has_its_conditions() {
    let rig = Rig::start();
    let cron = json!({"type": "cron", "cron": {"schedule": "@hourly"}, "flowRef": {"name": "f"}});
    let broken = json!({"steps": [call("a", &["nowhere"])]});
    let publish = json!({"steps": [{"name": "p", "action": {
        "type": "publish", "publish": {"integrationRef": {"name": "i"}, "topic": "t", "body": "b"},
    }}]});
    let mut beside = call("a", &[]);
    beside["action"]["wait"] = json!({"duration": "1s"});
    // Kind, name, spec, condition, status, reason, what the message names.
    let cases = [
        (
            "Flow",
            "good",
            three_steps(),
            "Ready",
            "True",
            "FlowReady",
            "",
        ),
        (
            "Flow",
            "broken",
            broken,
            "Ready",
            "False",
            "InvalidSpec",
            "spec.steps[0].runAfter",
        ),
        (
            "Flow",
            "later",
            publish,
            "Ready",
            "False",
            "NotYetSupported",
            "spec.steps[0].action.publish",
        ),
        (
            "Flow",
            "beside",
            json!({"steps": [beside]}),
            "Degraded",
            "True",
            "UnusedBlock",
            "spec.steps[0].action.wait",
        ),
        (
            "Trigger",
            "good",
            webhook("good", json!({})),
            "Ready",
            "True",
            "TriggerReady",
            "",
        ),
        (
            "Trigger",
            "accepted",
            webhook("accepted", json!({})),
            "Accepted",
            "True",
            "TriggerReady",
            "",
        ),
        (
            "Trigger",
            "cron",
            cron.clone(),
            "Ready",
            "False",
            "NotYetSupported",
            "spec.type",
        ),
        (
            "Trigger",
            "cron2",
            cron,
            "Accepted",
            "False",
            "NotYetSupported",
            "spec.type",
        ),
        (
            "Trigger",
            "cooldown",
            webhook("cooldown", json!({"cooldown": {"maxInvocations": 1}})),
            "Degraded",
            "True",
            "NoEffect",
            "spec.cooldown",
        ),
        (
            "Trigger",
            "unused",
            webhook("unused", json!({"cron": {"schedule": "@hourly"}})),
            "Degraded",
            "True",
            "UnusedBlock",
            "spec.cron",
        ),
        (
            "Integration",
            "nats",
            json!({"type": "nats", "nats": {"servers": ["nats://example.com:4222"]}}),
            "Ready",
            "False",
            "NotYetSupported",
            "spec.type",
        ),
        (
            "WebhookGatewayConfig",
            "default",
            json!({"tls": {"clientCASecretRef": {"name": "ca"}}}),
            "Ready",
            "False",
            "ServerSecretNotFound",
            "spec.tls.serverSecretRef",
        ),
    ];
    for (kind, name, spec, type_, status, reason, message) in cases {
        let what = object(kind, name, spec);
        let found = match kind {
            "Flow" => {
                rig.create::<Flow>(what).await;
                rig.until_condition::<Flow>(name, type_, |_| true).await
            }
            "Trigger" => {
                rig.create::<Trigger>(what).await;
                rig.until_condition::<Trigger>(name, type_, |_| true).await
            }
            "Integration" => {
                rig.create::<Integration>(what).await;
                rig.until_condition::<Integration>(name, type_, |_| true)
                    .await
            }
            _ => {
                rig.create::<WebhookGatewayConfig>(what).await;
                rig.until_condition::<WebhookGatewayConfig>(name, type_, |_| true)
                    .await
            }
        };
        let said = (found.status.as_str(), found.reason.as_str());
        assert_eq!(said, (status, reason), "{kind} {name}: {}", found.message);
        assert!(
            found.message.contains(message),
            "{kind} {name}: {}",
            found.message
        );
        assert_eq!(found.observed_generation, Some(1), "{kind} {name}");
    }
}

#[tokio::test]
async fn the_older_trigger_keeps_a_path_until_it_lets_go() {
    let rig = Rig::start();
    rig.create::<Trigger>(object("Trigger", "a", webhook("/hooks/x", json!({}))))
        .await;
    rig.create::<Trigger>(object("Trigger", "b", webhook("x", json!({}))))
        .await;
    let conflict = rig
        .until_condition::<Trigger>("b", "Ready", |ready| ready.reason == "PathConflict")
        .await;
    assert_eq!(
        conflict.message,
        "spec.webhook.path: /hooks/x belongs to the older Trigger a; choose another path"
    );
    rig.until_condition::<Trigger>("a", "Ready", |ready| ready.status == "True")
        .await;
    rig.patch::<Trigger>("a", json!({"spec": {"webhook": {"path": "y"}}}))
        .await;
    rig.until_condition::<Trigger>("b", "Ready", |ready| ready.status == "True")
        .await;
}

#[tokio::test]
async fn what_a_gateway_wrote_stays_and_is_not_answered() {
    let rig = Rig::start();
    rig.create::<Trigger>(object("Trigger", "t", webhook("x", json!({}))))
        .await;
    rig.until_condition::<Trigger>("t", "Ready", |ready| ready.status == "True")
        .await;
    let theirs =
        json!({"status": {"lastResult": "Succeeded", "lastTriggeredTime": "2026-12-01T10:00:00Z"}});
    rig.kind::<Trigger>()
        .patch_status(
            "t",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(theirs),
        )
        .await
        .unwrap();
    // A change that the controller answers, after the one that it must not.
    let generation = rig
        .patch::<Trigger>("t", json!({"spec": {"webhook": {"path": "y"}}}))
        .await
        .metadata
        .generation;
    rig.until_condition::<Trigger>("t", "Ready", |ready| {
        ready.observed_generation == generation
    })
    .await;
    let trigger = serde_json::to_value(rig.kind::<Trigger>().get("t").await.unwrap()).unwrap();
    assert_eq!(trigger["status"]["lastResult"], "Succeeded");
    assert_eq!(
        rig.requests("triggers", "t"),
        ["patch status 200", "patch status 200"]
    );
}

#[tokio::test]
async fn a_condition_that_no_longer_holds_goes_away() {
    let rig = Rig::start();
    let spec = webhook("x", json!({"cooldown": {"maxInvocations": 1}}));
    rig.create::<Trigger>(object("Trigger", "t", spec)).await;
    rig.until_condition::<Trigger>("t", "Degraded", |_| true)
        .await;
    rig.patch::<Trigger>("t", json!({"spec": {"cooldown": null}}))
        .await;
    until("Degraded to go", DEADLINE, || async {
        let trigger = serde_json::to_value(rig.kind::<Trigger>().get("t").await.unwrap()).unwrap();
        conditions_of(&trigger)
            .iter()
            .all(|condition| condition.type_ != "Degraded")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_restart_writes_no_condition_that_stands() {
    let mut rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.create::<Trigger>(object("Trigger", "t", webhook("x", json!({}))))
        .await;
    rig.until_condition::<Trigger>("t", "Ready", |ready| ready.status == "True")
        .await;
    let before = (
        rig.requests("flows", "f").len(),
        rig.requests("triggers", "t").len(),
    );
    rig.stop_controller().await;
    rig.start_controller(|_| {});
    // A Flow that is made now is reconciled after those that were there.
    rig.ready_flow("later", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
    let patches = |resource: &str, name: &str| {
        let conditions = |entry: &kubezap_local_api::AuditEntry| {
            entry
                .body
                .as_ref()
                .is_some_and(|body| !body["status"]["conditions"].is_null())
        };
        rig.audit(resource, name)
            .iter()
            .filter(|entry| conditions(entry))
            .count()
    };
    assert_eq!((patches("flows", "f"), patches("triggers", "t")), before);
}
