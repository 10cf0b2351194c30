//! `/openapi/v3`, as far as `kubectl explain` and kubectl's own validation read it.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::kinds::{Kind, Registry};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Answers a path below `/openapi/v3`.
pub(crate) fn answer(registry: &Registry, path: &str) -> Option<Value> {
    let rest = path.trim_end_matches('/').strip_prefix("/openapi/v3")?;
    if rest.is_empty() {
        return Some(index(registry));
    }
    let words: Vec<&str> = rest.split('/').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["api", version] => document(registry, "", version),
        ["apis", group, version] => document(registry, group, version),
        _ => None,
    }
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, version) in registry.group_versions() {
        let path = path_of(group, version);
        let text = document(registry, group, version)
            .unwrap_or_default()
            .to_string();
        let hash: String = Sha256::digest(text.as_bytes())
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02X}"))
            .collect();
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for kind in registry.of_group(group, version) {
        let name = schema_name(kind);
        let id = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let mut schema = kind.document.clone();
        schema["properties"]["metadata"] = json!({
            "description": "Standard object's metadata.",
            "allOf": [{"$ref": format!("#/components/schemas/{META}")}],
        });
        schema["x-kubernetes-group-version-kind"] = json!([id]);
        schemas.insert(name.clone(), schema);
        let base = if kind.namespaced {
            format!(
                "/{}/namespaces/{{namespace}}/{}",
                path_of(group, version),
                kind.plural
            )
        } else {
            format!("/{}/{}", path_of(group, version), kind.plural)
        };
        let body = json!({"application/json": {
            "schema": {"$ref": format!("#/components/schemas/{name}")},
        }});
        let parameters = ["dryRun", "fieldManager", "fieldValidation"].map(|name| {
            json!({
                "name": name,
                "in": "query",
                "schema": {"type": "string", "uniqueItems": true},
            })
        });
        let operation = |action: &str, content: Value| {
            json!({
                "parameters": parameters,
                "requestBody": {"content": content},
                "responses": {"200": {"description": "OK", "content": body}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": id,
            })
        };
        let patch = json!({
            "application/json-patch+json": {"schema": {"type": "object"}},
            "application/merge-patch+json": {"schema": {"type": "object"}},
        });
        paths.insert(
            base.clone(),
            json!({"post": operation("post", body.clone())}),
        );
        paths.insert(
            format!("{base}/{{name}}"),
            json!({"put": operation("put", body.clone()), "patch": operation("patch", patch)}),
        );
    }
    if schemas.is_empty() {
        return None;
    }
    schemas.insert(META.to_owned(), object_meta());
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "KubeZap local API", "version": "v0.1.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `io.kubezap.automation.v1alpha1.Flow`
fn schema_name(kind: &Kind) -> String {
    if kind.builtin {
        let group = kind.group.split('.').next().unwrap_or_default();
        let group = if group.is_empty() { "core" } else { group };
        return format!("io.k8s.api.{group}.{}.{}", kind.version, kind.kind);
    }
    let mut words: Vec<&str> = kind.group.split('.').collect();
    words.reverse();
    format!("{}.{}.{}", words.join("."), kind.version, kind.kind)
}

fn object_meta() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let map = |description: &str| {
        json!({
            "type": "object",
            "description": description,
            "additionalProperties": {"type": "string"},
        })
    };
    json!({
        "type": "object",
        "description": "ObjectMeta is metadata that all persisted resources must have.",
        "properties": {
            "annotations": map("Unstructured text that tools keep with the object."),
            "creationTimestamp": {"type": "string", "format": "date-time", "description": "When the object was made."},
            "deletionTimestamp": {"type": "string", "format": "date-time", "description": "When deletion was asked for."},
            "finalizers": {
                "type": "array",
                "description": "What must be done before the object goes.",
                "items": {"type": "string"},
            },
            "generateName": text("A prefix, used by the server to make a unique name when none is given."),
            "generation": {"type": "integer", "format": "int64", "description": "Counts changes of the desired state."},
            "labels": map("Key value pairs that select and group objects."),
            "name": text("Unique within a namespace."),
            "namespace": text("The space within which the name is unique."),
            "ownerReferences": {
                "type": "array",
                "description": "Objects that this one depends on.",
                "items": {"type": "object", "properties": {
                    "apiVersion": text("API version of the owner."),
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": text("Kind of the owner."),
                    "name": text("Name of the owner."),
                    "uid": text("UID of the owner."),
                }},
            },
            "resourceVersion": text("The version of this state of the object."),
            "uid": text("Unique in time and space."),
        },
    })
}
