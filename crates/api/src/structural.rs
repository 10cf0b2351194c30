//! The CustomResourceDefinitions as they are installed: what the derive gives, made to follow Kubernetes' rules for
//! structural schemas and this project's for defaults.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use serde_json::{Map, Value, json};

use crate::schema;
use crate::{Flow, FlowRun, Integration, Trigger, WebhookGatewayConfig};

/// Makes the definitions of all kinds, ordered by name. `config/crd` holds the same as files.
///
/// # Panics
/// Never: the schemas are made from this crate's own types, and a test makes them all.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut config = finished(WebhookGatewayConfig::crd());
    add_root_rule(
        &mut config,
        schema::forbidden_here(
            &format!(
                "self.metadata.name == '{}'",
                crate::webhook_gateway_config::NAME
            ),
            "a namespace has one WebhookGatewayConfig, and its name is default",
        ),
    );
    vec![
        finished(FlowRun::crd()),
        finished(Flow::crd()),
        finished(Integration::crd()),
        finished(Trigger::crd()),
        config,
    ]
}

fn finished(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    rewrite(crd, |schema| {
        tidy(schema);
        schema.remove("title");
    })
}

fn add_root_rule(crd: &mut CustomResourceDefinition, rule: Value) {
    *crd = rewrite(crd.clone(), |schema| {
        schema.insert("x-kubernetes-validations".to_owned(), json!([rule]));
    });
}

fn rewrite(
    crd: CustomResourceDefinition,
    change: impl FnOnce(&mut Map<String, Value>),
) -> CustomResourceDefinition {
    let mut value = serde_json::to_value(crd).expect("a definition is JSON");
    let schema = value
        .pointer_mut("/spec/versions/0/schema/openAPIV3Schema")
        .and_then(Value::as_object_mut)
        .expect("the derive gives one version with a schema");
    change(schema);
    serde_json::from_value(value).expect("the change keeps it a definition")
}

/// Walks a schema: drops `nullable` and null from enumerations, so that an explicit null is dropped or defaulted rather than
/// stored; gives integers formats that Kubernetes knows; and joins the lines of descriptions, which are wrapped for Rust.
fn tidy(schema: &mut Map<String, Value>) {
    schema.remove("nullable");
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("uint" | "uint8" | "uint16" | "uint32" | "int8" | "int16") => {
            schema.insert("format".to_owned(), "int32".into());
        }
        Some("uint64") => {
            schema.insert("format".to_owned(), "int64".into());
        }
        _ => {}
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect::<Vec<_>>()
            .join("\n\n");
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            if let Some(property) = property.as_object_mut() {
                tidy(property);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key).and_then(Value::as_object_mut) {
            tidy(inner);
        }
    }
}
