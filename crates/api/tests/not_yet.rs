//! What the schema has and this version does not do is never passed over in silence.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

use kubezap_api::{Flow, Trigger, lower};
use serde_json::{Value, json};

/// A Trigger with a route, changed by a merge patch on its spec.
fn trigger(patch: &str) -> Trigger {
    let mut spec = json!({
        "type": "webhook",
        "webhook": {"path": "orders"},
        "flowRef": {"name": "orders"},
    });
    merge(&mut spec, &serde_saphyr::from_str(patch).unwrap());
    Trigger::new("sample", serde_json::from_value(spec).unwrap())
}

/// A Flow of one http step, changed by a merge patch on the step's action.
fn flow(patch: &str) -> Flow {
    let mut action = json!({"type": "http", "http": {"url": "https://example.com"}});
    merge(&mut action, &serde_saphyr::from_str(patch).unwrap());
    let spec = json!({"steps": [{"name": "call", "action": action}]});
    Flow::new("sample", serde_json::from_value(spec).unwrap())
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    target.remove(name);
                } else {
                    merge(target.entry(name.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

#[test]
fn what_would_widen_access_or_change_a_target_is_not_served() {
    let auth = |block: &str| format!("webhook: {{auth: {block}}}");
    let key = "{name: s, key: k}";
    for (patch, message) in [
        (
            "type: cron\ncron: {schedule: '@daily'}".to_owned(),
            "spec.type: cron is not supported yet",
        ),
        (
            "type: kafka\nkafka: {integrationRef: {name: k}, topic: t}".to_owned(),
            "spec.type: kafka is not supported yet",
        ),
        (
            "type: amqp\namqp: {integrationRef: {name: k}, topic: t}".to_owned(),
            "spec.type: amqp is not supported yet",
        ),
        (
            "type: nats\nnats: {integrationRef: {name: k}, subject: t}".to_owned(),
            "spec.type: nats is not supported yet",
        ),
        (
            "type: resource\nresource: {apiVersion: v1, kind: Pod}".to_owned(),
            "spec.type: resource is not supported yet",
        ),
        (
            "type: plugin\nplugin: {integrationRef: {name: k}}".to_owned(),
            "spec.type: plugin is not supported yet",
        ),
        (
            "webhook: {rateLimit: {maxRequests: 5}}".to_owned(),
            "spec.webhook.rateLimit: rate limits are not supported yet",
        ),
        (
            auth("{type: oidc, oidc: {issuer: 'https://i'}}"),
            "spec.webhook.auth.type: oidc is not supported yet",
        ),
        (
            auth("{type: basic, basic: {secretRef: {name: s}}}"),
            "spec.webhook.auth.type: basic is not supported yet",
        ),
        (
            auth(&format!("{{type: apiKey, apiKey: {{secretRef: {key}}}}}")),
            "spec.webhook.auth.type: apiKey is not supported yet",
        ),
        (
            auth("{type: ipAllowlist, ipAllowlist: {cidrs: [192.0.2.0/24]}}"),
            "spec.webhook.auth.type: ipAllowlist is not supported yet",
        ),
        (
            auth(&format!(
                "{{type: header-equals, headerEquals: {{header: X, secretRef: {key}}}}}"
            )),
            "spec.webhook.auth.type: header-equals is not supported yet",
        ),
        (
            auth(&format!(
                "{{type: hmac, hmac: {{secretRef: {key}, provider: slack}}}}"
            )),
            "spec.webhook.auth.hmac.provider: slack is not supported yet",
        ),
    ] {
        let lowered = lower::trigger(&trigger(&patch));
        let ready = lowered.ready();
        assert_eq!(
            (ready.status.as_str(), ready.reason),
            ("False", "NotYetSupported"),
            "{patch}"
        );
        assert_eq!(ready.message, message);
        assert_eq!(lowered.webhook, None, "{patch}");
    }
}

#[test]
fn a_flow_with_what_is_not_supported_cannot_be_run() {
    for (patch, message) in [
        (
            "http: {integrationRef: {name: crm}}",
            "spec.steps[0].action.http.integrationRef: Integrations are not supported yet",
        ),
        (
            "http: {resultMappings: {id: /order/id}}",
            "spec.steps[0].action.http.resultMappings[id]: XPath is not supported yet",
        ),
        (
            "type: publish\nhttp: null\npublish: {integrationRef: {name: k}, topic: t}",
            "spec.steps[0].action.publish: publish steps are not supported yet",
        ),
    ] {
        let lowered = lower::flow("sample", &flow(patch).spec);
        let ready = lowered.ready();
        assert_eq!(
            (ready.status.as_str(), ready.reason),
            ("False", "NotYetSupported"),
            "{patch}"
        );
        assert_eq!(ready.message, message);
        assert!(lowered.flow.is_err(), "{patch}");
    }
}

#[test]
fn other_mistakes_show_beside_what_is_not_supported() {
    let broken = flow("http: {integrationRef: {name: crm}, url: '', body: '$(params.id)'}");
    let lowered = lower::flow("sample", &broken.spec);
    let ready = lowered.ready();
    assert_eq!(ready.reason, "InvalidSpec");
    assert!(
        ready
            .message
            .starts_with("spec.steps[0].action.http.body: "),
        "{}",
        ready.message
    );
    assert_eq!(lowered.not_supported.len(), 1);
}

#[test]
fn what_only_lacks_an_effect_is_reported_and_served() {
    for (patch, message) in [
        (
            "cooldown: {maxInvocations: 5}",
            Some("spec.cooldown: has no effect yet: every event makes a FlowRun"),
        ),
        ("cooldown: {maxInvocations: 0}", None),
        (
            "flowRunGC: {maxSucceeded: 3}",
            Some("spec.flowRunGC: has no effect yet: FlowRuns are kept"),
        ),
    ] {
        let lowered = lower::trigger(&trigger(patch));
        assert_eq!(lowered.ready().reason, "TriggerReady", "{patch}");
        assert!(lowered.webhook.is_some(), "{patch}");
        let degraded = lowered.degraded();
        assert_eq!(
            degraded.as_ref().map(|verdict| verdict.message.as_str()),
            message
        );
        if let Some(verdict) = degraded {
            assert_eq!(
                (verdict.status.as_str(), verdict.reason),
                ("True", "NoEffect")
            );
        }
    }
}

#[test]
fn what_is_supported_is_ready() {
    let plain = trigger("{}");
    let route = lower::trigger(&plain).webhook.unwrap();
    assert_eq!(
        (route.path.as_str(), route.method),
        ("/hooks/orders", "POST")
    );
    let ready = lower::flow("sample", &flow("{}").spec).ready();
    assert_eq!(
        (ready.status.as_str(), ready.reason, ready.message.as_str()),
        ("True", "FlowReady", "")
    );
}

#[test]
fn an_action_becomes_a_flow_of_one_step() {
    let acting = trigger(
        "flowRef: null\naction: {type: webhook, webhook: {url: 'https://example.com/$(trigger.body.id)', method: PUT, headers: {X-Id: '$(run.name)'}, body: '{}'}}",
    );
    assert!(lower::trigger(&acting).webhook.is_some());
    let flow = lower::action(&acting).flow.unwrap();
    assert_eq!(flow.name, "sample");
    assert_eq!(flow.steps.len(), 1);
    assert_eq!(flow.steps[0].name.as_str(), "action");
    let kubezap_engine::flow::Action::Http(http) = &flow.steps[0].action else {
        panic!("not an http step");
    };
    assert_eq!(http.method, "PUT");
    assert_eq!(http.timeout.as_secs(), 30);
}

#[test]
fn integrations_and_gateway_configurations_say_that_they_have_no_effect() {
    let reported = lower::integration(
        &serde_saphyr::from_str(
            "type: http\n\
             http: {auth: {type: basic, basic: {usernameSecretRef: {name: s, key: u}, passwordSecretRef: {name: s, key: p}}, bearer: {tokenSecretRef: {name: s, key: t}}}}\n\
             nats: {servers: [n]}",
        )
        .unwrap(),
    );
    let ready = reported.ready();
    assert_eq!(
        (ready.status.as_str(), ready.reason),
        ("False", "NotYetSupported")
    );
    assert_eq!(ready.message, "spec.type: http is not supported yet");
    let degraded = reported.degraded().unwrap();
    assert_eq!(degraded.reason, "UnusedBlock");
    assert_eq!(
        degraded.message,
        "spec.nats: has no effect beside http, which type names; \
         spec.http.auth.bearer: has no effect beside basic, which type names"
    );

    let reported = lower::webhook_gateway_config(
        &serde_saphyr::from_str("tls: {serverSecretRef: {name: s}}\nhpa: {}").unwrap(),
    );
    assert_eq!(
        reported.ready().message,
        "spec.tls: is not supported yet; spec.hpa: is not supported yet"
    );
    let empty = lower::webhook_gateway_config(&serde_saphyr::from_str("{}").unwrap());
    assert_eq!(empty.ready().status.as_str(), "True");
}
