//! The sample manifests that people come with are taken in, every field of them, and lower.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are not test functions

use std::collections::BTreeMap;
use std::path::PathBuf;

use kubezap_api::{
    Flow, FlowRun, Integration, Trigger, TriggerSpec, WebhookGatewayConfig, crds, lower,
};
use serde::Deserialize;
use serde_json::Value;

/// `tests/retired-shapes.yaml`: files that are refused, and why.
#[derive(Deserialize)]
struct RetiredShape {
    file: String,
    reason: String,
    refusal: String,
}

/// Every YAML document of the public data: file name and content. `None` without the data, which CI does not allow.
fn documents() -> Option<Vec<(String, Value)>> {
    let folder = std::env::var_os("KUBEZAP_CONFORMANCE").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/conformance"
            ))
        },
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(folder.join("manifests")) else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no manifests in {}",
            folder.display()
        );
        println!("skipped: no manifests in {}", folder.display());
        return None;
    };
    let mut documents = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        documents.extend(parsed.into_iter().map(|document| (name.clone(), document)));
    }
    assert!(documents.len() > 20, "{} documents", documents.len());
    Some(documents)
}

fn retired() -> Vec<RetiredShape> {
    serde_saphyr::from_str(include_str!("retired-shapes.yaml")).unwrap()
}

fn is_ours(document: &Value) -> bool {
    document["apiVersion"] == "automation.kubezap.io/v1alpha1"
}

fn schemas() -> BTreeMap<String, Value> {
    crds()
        .into_iter()
        .map(|crd| {
            let schema = crd.spec.versions[0].schema.clone().unwrap();
            let schema = serde_json::to_value(schema.open_api_v3_schema).unwrap();
            (crd.spec.names.kind, schema)
        })
        .collect()
}

/// Fields of a value that a schema does not have, as `--validate=strict` finds them.
fn unknown_fields(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let at = format!("{at}.{name}");
                let inner = match schema["properties"].get(name) {
                    Some(inner) => inner,
                    None if schema["additionalProperties"].is_object() => {
                        &schema["additionalProperties"]
                    }
                    None => {
                        found.push(at);
                        continue;
                    }
                };
                unknown_fields(field, inner, &at, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unknown_fields(item, &schema["items"], &format!("{at}[{index}]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether everything in `written` is in `read` with the same value.
fn is_within(written: &Value, read: &Value) -> bool {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => written
            .iter()
            .all(|(name, value)| read.get(name).is_some_and(|read| is_within(value, read))),
        (Value::Array(written), Value::Array(read)) => {
            written.len() == read.len()
                && written
                    .iter()
                    .zip(read)
                    .all(|(written, read)| is_within(written, read))
        }
        _ => written == read,
    }
}

/// Reads a document as its kind and writes it again.
fn round_trip(document: &Value) -> serde_json::Result<Value> {
    fn through<K: serde::de::DeserializeOwned + serde::Serialize>(
        document: &Value,
    ) -> serde_json::Result<Value> {
        serde_json::to_value(serde_json::from_value::<K>(document.clone())?)
    }
    match document["kind"].as_str().unwrap_or_default() {
        "Trigger" => through::<Trigger>(document),
        "Flow" => through::<Flow>(document),
        "FlowRun" => through::<FlowRun>(document),
        "Integration" => through::<Integration>(document),
        "WebhookGatewayConfig" => through::<WebhookGatewayConfig>(document),
        kind => panic!("{kind} is none of ours"),
    }
}

#[test]
fn sample_manifests_are_taken_in_with_every_field() {
    let Some(documents) = documents() else { return };
    let schemas = schemas();
    let retired = retired();
    let mut read = 0;
    for (file, document) in documents {
        if !is_ours(&document) || retired.iter().any(|shape| shape.file == file) {
            continue;
        }
        let mut unknown = Vec::new();
        let kind = document["kind"].as_str().unwrap();
        unknown_fields(
            &document["spec"],
            &schemas[kind]["properties"]["spec"],
            "spec",
            &mut unknown,
        );
        assert_eq!(unknown, Vec::<String>::new(), "{file}");
        let written = round_trip(&document).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(is_within(&document, &written), "{file}: {written:#}");
        read += 1;
    }
    assert!(read >= 15, "{read} manifests");
}

#[test]
fn each_retired_shape_is_listed_with_its_reason_and_is_in_the_samples() {
    let Some(documents) = documents() else { return };
    for shape in retired() {
        assert!(!shape.reason.is_empty() && !shape.refusal.is_empty());
        assert!(
            documents.iter().any(|(file, _)| *file == shape.file),
            "{} is not there any more",
            shape.file
        );
    }
}

#[test]
fn sample_flows_lower() {
    let Some(documents) = documents() else { return };
    for (file, document) in documents {
        if !is_ours(&document) || document["kind"] != "Flow" {
            continue;
        }
        let flow: Flow = serde_json::from_value(document).unwrap();
        let lowered = lower::flow("sample", &flow.spec);
        let not_supported: Vec<_> = lowered
            .not_supported
            .iter()
            .map(|problem| problem.path.as_str())
            .collect();
        if file == "automation_v1alpha1_flow_sns_publish.yaml" {
            assert_eq!(not_supported, ["spec.steps[0].action.publish"]);
            assert_eq!(lowered.flow.unwrap_err(), []);
        } else {
            assert_eq!(not_supported, [""; 0], "{file}");
            assert!(lowered.flow.is_ok(), "{file}: {:?}", lowered.flow);
        }
    }
}

#[test]
fn sample_triggers_lower() {
    let Some(documents) = documents() else { return };
    for (file, document) in documents {
        if !is_ours(&document) || document["kind"] != "Trigger" {
            continue;
        }
        let trigger: Trigger = serde_json::from_value(document).unwrap();
        let lowered = lower::trigger(&trigger);
        assert_eq!(lowered.problems, [], "{file}");
        let expected: &[&str] = match file.as_str() {
            "trigger-webhook-rate-limit.yaml" => &["spec.webhook.rateLimit"],
            _ if trigger.spec.webhook.is_some() => &[],
            _ => &["spec.type"],
        };
        let not_supported: Vec<_> = lowered.not_supported.iter().map(|p| &*p.path).collect();
        assert_eq!(not_supported, expected, "{file}");
        assert_eq!(lowered.webhook.is_some(), expected.is_empty(), "{file}");
    }
}

#[test]
fn a_trigger_stored_under_an_earlier_schema_is_read_and_not_served() {
    let spec: TriggerSpec = serde_saphyr::from_str(
        "type: pubsub\npubsub: {type: amqp, topic: orders}\nflowRef: {name: orders}",
    )
    .unwrap();
    let lowered = lower::trigger(&Trigger::new("old", spec));
    assert_eq!(
        lowered.ready().message,
        "spec.type: is a word that this version does not know"
    );
}
