//! Manifests against the schemas: what is refused, in the words of a real API server, and what is taken in.
//!
//! The tables belong to `kubezap-api`; here they meet a server.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are not test functions

use std::path::PathBuf;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::Status;
use kubezap_local_api::{LocalApi, Options};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Invalid {
    name: String,
    by: String,
    manifest: Value,
    #[serde(default)]
    old: Option<Value>,
    message: String,
}

#[derive(Deserialize)]
struct RetiredShape {
    file: String,
    refusal: String,
}

static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(kubezap_api::crds);

/// Where objects of a document's kind are created. `None` when no such kind is served.
fn collection(document: &Value) -> Option<String> {
    let crd = DEFINITIONS
        .iter()
        .find(|crd| document["kind"] == crd.spec.names.kind.as_str())?;
    let (group, version) = (&crd.spec.group, &crd.spec.versions[0].name);
    let plural = &crd.spec.names.plural;
    Some(format!(
        "/apis/{group}/{version}/namespaces/default/{plural}"
    ))
}

/// Sends a document the way `kubectl apply --validate=strict` does.
async fn send(
    client: &kube::Client,
    method: &str,
    path: &str,
    document: &Value,
) -> Result<Value, Box<Status>> {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("{path}?fieldValidation=Strict"))
        .header("content-type", "application/json")
        .body(serde_json::to_vec(document).unwrap())
        .unwrap();
    client.request(request).await.map_err(status)
}

fn server() -> kube::Client {
    LocalApi::new(Options::new(DEFINITIONS.clone())).client("default")
}

fn status(error: kube::Error) -> Box<Status> {
    match error {
        kube::Error::Api(status) => status,
        other => panic!("{other}"),
    }
}

/// What `kubectl` prints of a refusal, but for the remark that rules were not run.
fn causes(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .filter(|cause| !cause.contains("some validation rules were not checked"))
        .collect()
}

#[tokio::test]
async fn what_a_schema_refuses_is_said_in_the_words_of_a_real_server() {
    let table: Vec<Invalid> =
        serde_saphyr::from_str(include_str!("../../api/tests/invalid.yaml")).unwrap();
    let mut otherwise = Vec::new();
    let mut tried = 0;
    for entry in table.into_iter().filter(|entry| entry.by == "schema") {
        let (client, path) = (server(), collection(&entry.manifest).unwrap());
        let answer = match entry.old {
            None => send(&client, "POST", &path, &entry.manifest).await,
            Some(old) => {
                let stored = send(&client, "POST", &path, &old).await.unwrap();
                let mut change = entry.manifest;
                change["metadata"]["resourceVersion"] =
                    stored["metadata"]["resourceVersion"].clone();
                let name = change["metadata"]["name"].as_str().unwrap().to_owned();
                send(&client, "PUT", &format!("{path}/{name}"), &change).await
            }
        };
        tried += 1;
        match answer {
            Ok(_) => otherwise.push(format!("{}: taken in", entry.name)),
            Err(status) if status.code != 422 || causes(&status) != [entry.message] => {
                otherwise.push(format!(
                    "{}: {} {:?}",
                    entry.name,
                    status.code,
                    causes(&status)
                ));
            }
            Err(_) => {}
        }
    }
    assert!(tried >= 60, "{tried} manifests");
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[tokio::test]
async fn manifests_that_lowering_refuses_pass_the_schema() {
    let table: Vec<Invalid> =
        serde_saphyr::from_str(include_str!("../../api/tests/invalid.yaml")).unwrap();
    for entry in table.into_iter().filter(|entry| entry.by == "lower") {
        let path = collection(&entry.manifest).unwrap();
        let answer = send(&server(), "POST", &path, &entry.manifest).await;
        assert!(answer.is_ok(), "{}: {:?}", entry.name, answer.err());
    }
}

#[tokio::test]
async fn samples_are_taken_in_strictly_except_retired_shapes() {
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
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no data");
        println!("skipped: no manifests in {}", folder.display());
        return;
    };
    let retired: Vec<RetiredShape> =
        serde_saphyr::from_str(include_str!("../../api/tests/retired-shapes.yaml")).unwrap();
    let mut taken_in = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for document in documents {
            if document["apiVersion"] != "automation.kubezap.io/v1alpha1" {
                continue;
            }
            let refusal = retired.iter().find(|shape| shape.file == file);
            match (collection(&document), refusal) {
                (Some(path), None) => {
                    let answer = send(&server(), "POST", &path, &document).await;
                    assert!(answer.is_ok(), "{file}: {:?}", answer.err());
                    taken_in += 1;
                }
                (Some(path), Some(shape)) => {
                    let answer = send(&server(), "POST", &path, &document).await;
                    let status = answer.unwrap_err();
                    assert_eq!(causes(&status), [shape.refusal.as_str()], "{file}");
                }
                (None, Some(shape)) => assert!(shape.refusal.starts_with("no matches for kind")),
                (None, None) => panic!("{file}: {} is not served", document["kind"]),
            }
        }
    }
    assert!(taken_in >= 15, "{taken_in} manifests");
}
