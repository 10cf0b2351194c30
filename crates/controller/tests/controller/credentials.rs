//! Secrets and ConfigMaps: read when a call leaves, and never seen again.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubezap_step_protocol::ExecuteResponse;
use serde_json::{Value, json};

use crate::rig::{NAMESPACE, Rig};

const VALUE: &str = "s3cr3t/value+1234";

fn secret(name: &str, more: Value) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"token": base64(VALUE)},
    });
    for (key, value) in more.as_object().unwrap() {
        if key == "labels" {
            secret["metadata"]["labels"] = value.clone();
        } else {
            secret[key] = value.clone();
        }
    }
    secret
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn flow(header: &str) -> Value {
    json!({"steps": [{
        "name": "call",
        "action": {"type": "http", "http": {
            "url": "https://example.com/call",
            "headers": {"Authorization": format!("Bearer {header}")},
            "resultMappings": {"said": "$.said"},
        }},
        "results": [{"name": "said"}],
    }]})
}

#[tokio::test]
async fn a_credential_reaches_the_executor_and_nothing_else() {
    let rig = Rig::start();
    rig.create::<Secret>(secret("keys", json!({}))).await;
    // The target gives the credential back, in a body, a header and other forms.
    rig.executor.answer(|asked, _| async move {
        let token = asked.headers["authorization"]
            .trim_start_matches("Bearer ")
            .to_owned();
        Ok(ExecuteResponse::Response {
            status: 200,
            headers: vec![("x-echo".into(), token.clone())],
            body: json!({"said": format!("{token} {}", base64(&token))})
                .to_string()
                .into_bytes(),
        })
    });
    rig.ready_flow("f", flow("$(secrets.keys.token)")).await;
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Succeeded").await;

    assert_eq!(
        rig.executor.asked()[0].headers["authorization"],
        format!("Bearer {VALUE}")
    );
    assert_eq!(status.steps[0].results[0].value, "*** ***");
    for entry in rig
        .api
        .audit()
        .iter()
        .filter(|entry| entry.resource != "secrets")
    {
        let sent = entry
            .body
            .as_ref()
            .map(Value::to_string)
            .unwrap_or_default();
        for form in [VALUE.to_owned(), base64(VALUE), VALUE.replace('/', "%2F")] {
            assert!(
                !sent.contains(&form),
                "{} {} holds it",
                entry.verb,
                entry.name
            );
        }
    }
}

#[tokio::test]
async fn a_credential_in_an_error_is_masked() {
    let rig = Rig::start();
    rig.create::<Secret>(secret("keys", json!({}))).await;
    rig.executor.answer(|asked, _| async move {
        let token = asked.headers["authorization"].clone();
        Ok(ExecuteResponse::Failed {
            code: kubezap_step_protocol::Code::Connect,
            message: format!("example.com: did not like {token}"),
        })
    });
    rig.ready_flow("f", flow("$(secrets.keys.token)")).await;
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Failed").await;
    assert_eq!(
        status.steps[0].message.as_deref(),
        Some("connect: example.com: did not like Bearer ***")
    );
}

#[tokio::test]
async fn what_cannot_be_read_fails_the_step_and_is_named() {
    let rig = Rig::start();
    rig.create::<Secret>(secret("keys", json!({}))).await;
    let token = json!({"type": "kubernetes.io/service-account-token"});
    rig.create::<Secret>(secret("account", token)).await;
    let ours = json!({"labels": {"app.kubernetes.io/managed-by": "kubezap"}});
    rig.create::<Secret>(secret("identity", ours)).await;
    let cases = [
        (
            "none",
            "$(secrets.nowhere.token)",
            "the Secret nowhere does not exist",
        ),
        (
            "key",
            "$(secrets.keys.other)",
            "the Secret keys has no key other",
        ),
        (
            "account",
            "$(secrets.account.token)",
            "the Secret account may not be used: it is the token of a ServiceAccount",
        ),
        (
            "identity",
            "$(secrets.identity.token)",
            "the Secret identity may not be used: it belongs to KubeZap itself",
        ),
        (
            "map",
            "$(configmaps.nowhere.key)",
            "the ConfigMap nowhere does not exist",
        ),
    ];
    for (name, header, message) in cases {
        rig.ready_flow(name, flow(header)).await;
        rig.labelled_run(name, name).await;
        let status = rig.until_phase(name, "Failed").await;
        let step = &status.steps[0];
        assert_eq!(step.reason.as_deref(), Some("ReferenceNotFound"), "{name}");
        assert_eq!(step.message.as_deref(), Some(message), "{name}");
    }
    assert!(rig.executor.asked().is_empty());
}

#[tokio::test]
async fn a_configmap_is_there_for_calls_transforms_and_conditions() {
    let rig = Rig::start();
    rig.create::<ConfigMap>(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": NAMESPACE},
        "data": {"color": "red"},
    }))
    .await;
    let transform = json!({
        "name": "shape",
        "action": {"type": "transform", "transform": {"mappings": {"it": "is $(configmaps.settings.color)"}}},
        "results": [{"name": "it"}],
    });
    let mut flow = flow("$(configmaps.settings.color)");
    flow["steps"].as_array_mut().unwrap().push(transform);
    rig.ready_flow("f", flow).await;
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Succeeded").await;
    assert_eq!(
        rig.executor.asked()[0].headers["authorization"],
        "Bearer red"
    );
    assert_eq!(status.steps[1].results[0].value, "is red");
}
