//! kubectl against the local API, as its users do.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are not test functions

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kubezap_local_api::{LocalApi, Options};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

const FLOW: &str = "
apiVersion: automation.kubezap.io/v1alpha1
kind: Flow
metadata:
  name: one
spec:
  steps:
  - name: pause
    action: {type: wait, wait: {duration: 1s}}
";

struct Kubectl {
    folder: tempfile::TempDir,
    _shutdown: tokio_util::sync::DropGuard,
}

/// A server and a kubectl for it; `None` where there is no kubectl.
async fn kubectl() -> Option<Kubectl> {
    let found = Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .await;
    if !found.is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "CI needs kubectl"
        );
        println!("skipped: no kubectl");
        return None;
    }
    let api = LocalApi::new(Options::new(kubezap_api::crds()));
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = api.kubeconfig(listener.local_addr().unwrap()).unwrap();
    std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
    let shutdown = CancellationToken::new();
    tokio::spawn(api.serve(listener, shutdown.clone()));
    Some(Kubectl {
        folder,
        _shutdown: shutdown.drop_guard(),
    })
}

impl Kubectl {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.path("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.path("cache"))
            .args(arguments.split_whitespace())
            .kill_on_drop(true);
        command
    }

    /// Runs a command; gives whether it succeeded and what it printed.
    async fn run(&self, arguments: &str, input: &str) -> (bool, String) {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = tokio::time::timeout(Duration::from_secs(60), child.wait_with_output())
            .await
            .unwrap()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    async fn ok(&self, arguments: &str) -> String {
        let (succeeded, text) = self.run(arguments, "").await;
        assert!(succeeded, "{arguments}: {text}");
        text
    }

    async fn apply(&self, manifest: &str) -> (bool, String) {
        self.run("apply --validate=strict -f -", manifest).await
    }
}

#[tokio::test]
async fn manifests_are_applied_shown_changed_and_deleted() {
    let Some(kubectl) = kubectl().await else {
        return;
    };
    let (applied, text) = kubectl.apply(FLOW).await;
    assert!(
        applied && text.contains("flow.automation.kubezap.io/one created"),
        "{text}"
    );
    let (_, text) = kubectl.apply(FLOW).await;
    assert!(text.contains("unchanged"), "{text}");
    let (_, text) = kubectl.apply(&FLOW.replace("1s", "2s")).await;
    assert!(text.contains("configured"), "{text}");

    let table = kubectl.ok("get flows").await;
    assert!(
        table.contains("NAME") && table.contains("READY") && table.contains("one"),
        "{table}"
    );
    assert_eq!(
        kubectl.ok("get flw -o name").await.trim(),
        "flow.automation.kubezap.io/one"
    );
    assert!(
        kubectl
            .ok("get flow one -o yaml")
            .await
            .contains("duration: 2s")
    );
    assert!(kubectl.ok("get kubezap").await.contains("one"));
    kubectl.ok("label flow one tier=front").await;
    kubectl.ok("annotate flow one note=kept").await;
    assert!(
        kubectl
            .ok("get flows -l tier=front -o json")
            .await
            .contains("\"note\": \"kept\"")
    );
    assert!(
        kubectl
            .ok("describe flow one")
            .await
            .contains("Failure Policy:")
    );

    let (changed, text) = kubectl.run("apply --server-side -f -", FLOW).await;
    assert!(!changed && text.contains("client-side apply"), "{text}");
    assert!(kubectl.ok("delete flow one").await.contains("deleted"));
    let (found, text) = kubectl.run("get flow one", "").await;
    assert!(
        !found
            && text.contains(
                "Error from server (NotFound): flows.automation.kubezap.io \"one\" not found"
            ),
        "{text}"
    );
}

#[tokio::test]
async fn a_manifest_that_is_wrong_is_refused_with_the_fields_path() {
    let Some(kubectl) = kubectl().await else {
        return;
    };
    let (applied, text) = kubectl
        .apply(&FLOW.replace("spec:", "spec:\n  surprise: 1"))
        .await;
    assert!(
        !applied && text.contains("unknown field \"spec.surprise\""),
        "{text}"
    );
    let (applied, text) = kubectl
        .apply(&FLOW.replace("duration: 1s", "duration: soon"))
        .await;
    assert!(
        !applied && text.contains("The Flow \"one\" is invalid: spec.steps[0].action.wait.duration: Invalid value: \"soon\""),
        "{text}"
    );
}

#[tokio::test]
async fn discovery_and_explain_know_the_kinds() {
    let Some(kubectl) = kubectl().await else {
        return;
    };
    let version = kubectl.ok("version").await;
    assert!(version.contains("Server Version: v1."), "{version}");
    let resources = kubectl.ok("api-resources").await;
    for name in [
        "flows",
        "triggers",
        "flowruns",
        "secrets",
        "leases",
        "controllerrevisions",
    ] {
        assert!(resources.contains(name), "{name} is not in {resources}");
    }
    let explained = kubectl.ok("explain flow.spec.steps").await;
    assert!(
        explained.contains("runAfter") && explained.contains("KIND:       Flow"),
        "{explained}"
    );
}

#[tokio::test]
async fn waiting_and_watching_see_a_status() {
    let Some(kubectl) = kubectl().await else {
        return;
    };
    let (applied, text) = kubectl
        .apply("{apiVersion: automation.kubezap.io/v1alpha1, kind: FlowRun, metadata: {name: one}, spec: {flowRef: {name: some-flow}}}")
        .await;
    assert!(applied, "{text}");
    let mut watch = kubectl
        .command("get flowruns -w")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut line = async || {
        tokio::time::timeout(Duration::from_secs(30), lines.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    };
    assert!(line().await.contains("PHASE"));
    assert!(line().await.contains("one"));
    let wait = kubectl
        .command("wait flowrun/one --for=condition=Succeeded --timeout=30s")
        .status();
    let status = r#"{"status":{"phase":"Succeeded","conditions":[{"type":"Succeeded","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-12-01T00:00:00Z"}]}}"#;
    let patch = async {
        let mut command = kubectl.command("patch flowrun one --subresource=status --type=merge -p");
        assert!(command.arg(status).status().await.unwrap().success());
    };
    let (waited, ()) = tokio::join!(wait, patch);
    assert!(waited.unwrap().success());
    assert!(line().await.contains("Succeeded"));
}

#[tokio::test]
async fn secrets_config_maps_and_namespaces_are_managed() {
    let Some(kubectl) = kubectl().await else {
        return;
    };
    // These are sent as protobuf.
    kubectl.ok("create namespace other").await;
    kubectl
        .ok("create secret generic token --from-literal=key=value -n other")
        .await;
    kubectl
        .ok("create configmap settings --from-literal=a=b -n other")
        .await;
    let secrets = kubectl.ok("get secrets -n other").await;
    assert!(
        secrets.contains("token") && secrets.contains("Opaque"),
        "{secrets}"
    );
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: other}, data: {a: c}}";
    let (applied, text) = kubectl.apply(manifest).await;
    assert!(applied, "{text}");
    assert_eq!(
        kubectl
            .ok("get configmap settings -n other -o jsonpath={.data.a}")
            .await,
        "c"
    );
    kubectl.ok("delete namespace other").await;
    let (found, _) = kubectl.run("get namespace other", "").await;
    assert!(!found);
}
