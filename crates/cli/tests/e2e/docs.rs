//! Every manifest in the documentation is valid, and its Flows can run.

use std::path::{Path, PathBuf};

use kubezap_api::{Flow, lower};
use kubezap_local_api::{LocalApi, Options};
use serde_json::Value;

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The blocks fenced as YAML that are Kubernetes objects, with the line where each begins.
fn manifests(text: &str) -> Vec<(usize, Value)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match &mut block {
            None if line.trim() == "```yaml" => block = Some((index + 2, String::new())),
            None => {}
            Some(_) if line.trim() == "```" => found.extend(block.take()),
            Some((_, body)) => {
                body.push_str(line);
                body.push('\n');
            }
        }
    }
    let objects = found
        .into_iter()
        .map(|(line, body)| (line, serde_saphyr::from_str::<Value>(&body).unwrap()));
    objects
        .filter(|(_, object)| object["apiVersion"].is_string())
        .collect()
}

#[tokio::test]
async fn every_manifest_in_the_documentation_is_valid_and_its_flows_can_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut files);
    let client = LocalApi::new(Options::new(kubezap_api::crds())).client("default");
    let mut count = 0;
    for file in files {
        for (line, object) in manifests(&std::fs::read_to_string(&file).unwrap()) {
            let place = format!("{}:{line}", file.display());
            let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
            let url = format!(
                "/apis/automation.kubezap.io/v1alpha1/namespaces/default/{plural}?fieldValidation=Strict"
            );
            let request = http::Request::post(url)
                .header("content-type", "application/json")
                .body(object.to_string().into_bytes())
                .unwrap();
            let stored: Value = client
                .request(request)
                .await
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            if stored["kind"] == "Flow" {
                let flow: Flow = serde_json::from_value(stored).unwrap();
                let lowered = lower::flow("documented", &flow.spec);
                assert!(
                    lowered.flow.is_ok() && lowered.not_supported.is_empty(),
                    "{place}: {lowered:?}"
                );
            }
            count += 1;
        }
    }
    assert!(
        count >= 3,
        "the documentation has {count} manifests: one for each kind that works, at least"
    );
}
