//! An installation as a cluster has it: controller, executor and gateway as processes of their own, mutual TLS between
//! controller and executor, and a Kubernetes API that the test can look into.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use kubezap_api::flow_run::FlowRun;
use kubezap_local_api::{LocalApi, Options};
use kubezap_testing::identity::Identity;
use kubezap_testing::process::{Process, Running};
use kubezap_testing::wait;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "test";

/// Processes and the API they work on; everything ends when it is dropped.
pub(crate) struct Installation {
    pub(crate) api: LocalApi,
    pub(crate) client: Client,
    folder: tempfile::TempDir,
    executor: SocketAddr,
    _executor: Running,
    calls_per_namespace: usize,
    controller: Option<Running>,
    gateway: Option<(Running, SocketAddr)>,
    _stop: tokio_util::sync::DropGuard,
}

impl Installation {
    /// Starts the API, the executor, and the controller.
    pub(crate) async fn start() -> Self {
        Self::start_with(64).await
    }

    /// The same, with so many calls in flight.
    pub(crate) async fn start_with(calls_per_namespace: usize) -> Self {
        kubezap_chassis::crypto::install();
        let folder = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let api = LocalApi::new(Options {
            audit: true,
            ..Options::new(kubezap_api::crds())
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        write(
            folder.path(),
            "kubeconfig",
            &api.kubeconfig(listener.local_addr().unwrap()).unwrap(),
        );
        tokio::spawn(api.clone().serve(listener, stop.clone()));

        let identity = Identity::new(NAME);
        write(folder.path(), "ca.pem", identity.ca_pem());
        for (name, uri) in [
            ("controller", format!("spiffe://{NAME}/controller")),
            ("executor", format!("spiffe://{NAME}/ns/default/executor")),
        ] {
            let (certificate, key) = identity.issue(&uri);
            write(folder.path(), &format!("{name}.crt"), &certificate);
            write(folder.path(), &format!("{name}.key"), &key);
        }
        let (executor_process, executor) = start_executor(folder.path()).await;
        let client = api.client("default");
        let mut installation = Self {
            api,
            client,
            folder,
            executor,
            _executor: executor_process,
            calls_per_namespace,
            controller: None,
            gateway: None,
            _stop: stop.drop_guard(),
        };
        installation.start_controller().await;
        installation
    }

    /// Starts a controller; the one before must have been killed.
    pub(crate) async fn start_controller(&mut self) {
        assert!(self.controller.is_none(), "one controller at a time");
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let executor = format!("https://{}", self.executor);
        let mut process = Process::start(
            "kubezap-controller",
            &[
                "--kubeconfig",
                &path("kubeconfig"),
                "--executor-url",
                &executor,
                "--installation",
                NAME,
                "--tls-cert",
                &path("controller.crt"),
                "--tls-key",
                &path("controller.key"),
                "--tls-ca",
                &path("ca.pem"),
                "--egress-allow",
                "127.0.0.1:*",
                "--watch-namespaces",
                "*",
                "--calls-per-namespace",
                &self.calls_per_namespace.to_string(),
                "--health-probe-bind-address",
                "127.0.0.1:0",
                "--metrics-bind-address",
                "127.0.0.1:0",
            ],
        );
        process
            .json("the controller to be ready", PATIENCE, |line| {
                (line["msg"] == "ready").then_some(())
            })
            .await;
        self.controller = Some(process.drain());
    }

    /// SIGKILL.
    pub(crate) async fn kill_controller(&mut self) {
        self.controller
            .take()
            .expect("a controller runs")
            .kill()
            .await;
    }

    /// Starts a webhook gateway for the namespace `default` once, and gives its URL.
    pub(crate) async fn gateway(&mut self) -> String {
        if self.gateway.is_none() {
            let kubeconfig = self.folder.path().join("kubeconfig").display().to_string();
            let mut process = Process::start(
                "kubezap-webhook-gateway",
                &[
                    "--kubeconfig",
                    &kubeconfig,
                    "--watch-namespaces",
                    "default",
                    "--listen",
                    "127.0.0.1:0",
                    "--metrics-port",
                    "0",
                ],
            );
            let address = listening(&mut process).await;
            self.gateway = Some((process.drain(), address));
        }
        format!("http://{}", self.gateway.as_ref().expect("just started").1)
    }

    /// Creates an object from YAML in the namespace `default`, and waits until its condition Ready is True.
    pub(crate) async fn create_ready<K>(&self, yaml: &str)
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_saphyr::from_str(yaml).unwrap();
        let api = Api::<K>::default_namespaced(self.client.clone());
        api.create(&PostParams::default(), &object).await.unwrap();
        let name = object.meta().name.clone().unwrap();
        wait::until(
            &format!("{} {name} to be Ready", K::kind(&())),
            PATIENCE,
            || async {
                let object = serde_json::to_value(api.get(&name).await.ok()?).ok()?;
                let conditions = object["status"]["conditions"].as_array()?.clone();
                conditions
                    .iter()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
                    .then_some(())
            },
        )
        .await;
    }

    /// Creates a run by hand.
    pub(crate) async fn create_run(&self, name: &str, flow: &str) {
        let run = format!(
            "{{apiVersion: automation.kubezap.io/v1alpha1, kind: FlowRun, metadata: {{name: {name}}}, spec: {{flowRef: {{name: {flow}}}}}}}"
        );
        let runs = Api::<FlowRun>::default_namespaced(self.client.clone());
        runs.create(
            &PostParams::default(),
            &serde_saphyr::from_str(&run).unwrap(),
        )
        .await
        .unwrap();
    }

    /// All runs of the namespace.
    pub(crate) async fn runs(&self) -> Vec<FlowRun> {
        Api::<FlowRun>::default_namespaced(self.client.clone())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }

    /// Waits until `count` runs exist and all have ended, and gives them.
    pub(crate) async fn ended_runs(&self, count: usize) -> Vec<FlowRun> {
        wait::until(&format!("{count} runs to end"), PATIENCE, || async {
            let runs = self.runs().await;
            let ended = runs
                .iter()
                .filter(|run| ["Succeeded", "Failed", "Cancelled"].contains(&phase(run).as_str()));
            (ended.count() == count && runs.len() == count).then_some(runs)
        })
        .await
    }
}

/// The phase of a run, as its status spells it; empty without one.
pub(crate) fn phase(run: &FlowRun) -> String {
    run.status
        .as_ref()
        .and_then(|status| status.phase)
        .map(|phase| phase.as_str().to_owned())
        .unwrap_or_default()
}

async fn start_executor(folder: &Path) -> (Running, SocketAddr) {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut process = Process::start(
        "kubezap-http-executor",
        &[
            "--listen",
            "127.0.0.1:0",
            "--health-listen",
            "127.0.0.1:0",
            "--installation",
            NAME,
            "--tls-cert",
            &path("executor.crt"),
            "--tls-key",
            &path("executor.key"),
            "--tls-ca",
            &path("ca.pem"),
        ],
    );
    let address = listening(&mut process).await;
    (process.drain(), address)
}

async fn listening(process: &mut Process) -> SocketAddr {
    process
        .json("a process to listen", PATIENCE, |line| {
            line["listen"].as_str()?.parse().ok()
        })
        .await
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}
