//! An API, a controller and an executor that answers what a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use kubezap_api::{FlowRun, FlowRunStatus};
use kubezap_chassis::namespaces::Namespaces;
use kubezap_controller::{ControllerConfig, DispatchError, Executors};
use kubezap_local_api::{AuditEntry, LocalApi, Options};
use kubezap_step_protocol::{ExecuteRequest, ExecuteResponse};
use kubezap_testing::wait::until;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long anything may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Names the controller in the audit; the tests' own client has no name.
const AGENT: &str = "kubezap-controller/test";

pub(crate) const NAMESPACE: &str = "default";

/// What an executor was asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) execution_id: String,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    pub(crate) max_redirects: u32,
    pub(crate) allow: Vec<String>,
    pub(crate) discard_body: bool,
    pub(crate) at: Instant,
}

type Answer = Result<ExecuteResponse, DispatchError>;
type Answering = dyn Fn(Asked, CancellationToken) -> BoxFuture<'static, Answer> + Send + Sync;

/// An executor in the test.
pub(crate) struct Fake {
    answering: Mutex<Arc<Answering>>,
    asked: Mutex<Vec<Asked>>,
    moved: Notify,
}

impl Executors for Fake {
    fn execute(
        &self,
        namespace: &str,
        mut request: ExecuteRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Answer> {
        assert_eq!(namespace, NAMESPACE);
        let asked = Asked {
            execution_id: request.execution_id.clone(),
            method: request.method.clone(),
            url: request.url.clone(),
            headers: std::mem::take(&mut request.headers)
                .into_iter()
                .map(|header| (header.name.to_ascii_lowercase(), header.value))
                .collect(),
            body: String::from_utf8(request.body.clone().unwrap_or_default()).unwrap(),
            max_redirects: request.max_redirects,
            allow: request.allow.clone(),
            discard_body: request.discard_body,
            at: Instant::now(),
        };
        self.asked.lock().unwrap().push(asked.clone());
        self.moved.notify_waiters();
        let answering = self.answering.lock().unwrap().clone();
        answering(asked, cancel)
    }
}

impl Fake {
    fn new() -> Self {
        Self {
            answering: Mutex::new(Arc::new(|_, _| Box::pin(async { ok("{}") }))),
            asked: Mutex::default(),
            moved: Notify::new(),
        }
    }

    /// From now on calls are answered so.
    pub(crate) fn answer<F>(
        &self,
        answering: impl Fn(Asked, CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Answer> + Send + 'static,
    {
        *self.answering.lock().unwrap() =
            Arc::new(move |asked, cancel| Box::pin(answering(asked, cancel)));
    }

    /// From now on calls to a URL that contains `part` wait for the gate; others are answered with `{}`.
    pub(crate) fn hold(&self, part: &'static str) -> Arc<Notify> {
        let gate = Arc::new(Notify::new());
        let at = Arc::clone(&gate);
        self.answer(move |asked, cancel| {
            let gate = Arc::clone(&at);
            async move {
                if asked.url.contains(part) {
                    tokio::select! {
                        () = gate.notified() => {}
                        () = cancel.cancelled() => {}
                    }
                }
                ok("{}")
            }
        });
        gate
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits for a call to a URL that contains `part`.
    pub(crate) async fn until_asked(&self, part: &str) -> Asked {
        let what = format!("a call to {part}");
        until(&what, DEADLINE, || async {
            self.asked()
                .into_iter()
                .find(|asked| asked.url.contains(part))
        })
        .await
    }

    pub(crate) fn count(&self, part: &str) -> usize {
        self.asked()
            .iter()
            .filter(|asked| asked.url.contains(part))
            .count()
    }
}

/// A response of 200.
pub(crate) fn ok(body: &str) -> Answer {
    responds(200, body)
}

pub(crate) fn responds(status: u16, body: &str) -> Answer {
    Ok(ExecuteResponse::Response {
        status,
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
    })
}

/// Everything.
pub(crate) struct Rig {
    pub(crate) api: LocalApi,
    pub(crate) client: Client,
    pub(crate) executor: Arc<Fake>,
    controller: Option<Running>,
}

struct Running {
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Rig {
    /// An API with a controller.
    pub(crate) fn start() -> Self {
        let mut rig = Self::without_controller();
        rig.start_controller(|_| {});
        rig
    }

    pub(crate) fn without_controller() -> Self {
        let mut options = Options::new(kubezap_api::crds());
        options.audit = true;
        let api = LocalApi::new(options);
        Self {
            client: api.client(NAMESPACE),
            api,
            executor: Arc::new(Fake::new()),
            controller: None,
        }
    }

    pub(crate) fn start_controller(&mut self, adjust: impl FnOnce(&mut ControllerConfig)) {
        let api = self.api.clone();
        let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
            request
                .headers_mut()
                .insert(USER_AGENT, HeaderValue::from_static(AGENT));
            let api = api.clone();
            async move { api.answer(request).await }
        });
        let mut config = ControllerConfig::new(
            Client::new(service, NAMESPACE),
            Namespaces::All,
            Arc::clone(&self.executor) as Arc<dyn Executors>,
        );
        adjust(&mut config);
        let shutdown = CancellationToken::new();
        let ends = shutdown.clone();
        let task = tokio::spawn(async move {
            kubezap_controller::run(config, ends).await.unwrap();
        });
        self.controller = Some(Running { shutdown, task });
    }

    /// Ends the controller as its process does when it is told to.
    pub(crate) async fn stop_controller(&mut self) {
        if let Some(mut running) = self.controller.take() {
            running.shutdown.cancel();
            (&mut running.task).await.unwrap();
        }
    }

    /// Ends the controller in the middle of whatever it does.
    pub(crate) async fn kill_controller(&mut self) {
        if let Some(mut running) = self.controller.take() {
            running.task.abort();
            let _ = (&mut running.task).await;
        }
    }

    pub(crate) fn kind<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Creates an object from JSON.
    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.kind()
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        self.kind()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap()
    }

    pub(crate) async fn flow(&self, name: &str, spec: Value) -> kubezap_api::Flow {
        self.create(object("Flow", name, spec)).await
    }

    /// A Flow that is Ready.
    pub(crate) async fn ready_flow(&self, name: &str, spec: Value) {
        self.flow(name, spec).await;
        self.until_condition::<kubezap_api::Flow>(name, "Ready", |ready| ready.status == "True")
            .await;
    }

    /// A run that a person made: only the Flow is named.
    pub(crate) async fn run(&self, name: &str, flow: &str) -> FlowRun {
        self.create(object("FlowRun", name, json!({"flowRef": {"name": flow}})))
            .await
    }

    /// A run as a gateway makes it.
    pub(crate) async fn labelled_run(&self, name: &str, flow: &str) -> FlowRun {
        let mut run = object("FlowRun", name, json!({"flowRef": {"name": flow}}));
        let slot = kubezap_engine::driver::slot_of(NAMESPACE, flow);
        run["metadata"]["labels"] = json!({"kubezap.io/slot": slot.to_string()});
        self.create(run).await
    }

    /// Waits until the status of a run satisfies the question.
    pub(crate) async fn until_status(
        &self,
        run: &str,
        what: &str,
        is: impl Fn(&FlowRunStatus) -> bool,
    ) -> FlowRunStatus {
        let api = self.kind::<FlowRun>();
        let what = format!("{run} to be {what}");
        let api = &api;
        let is = &is;
        until(&what, DEADLINE, || async move {
            api.get(run)
                .await
                .unwrap()
                .status
                .filter(|status| is(status))
        })
        .await
    }

    pub(crate) async fn until_phase(&self, run: &str, phase: &str) -> FlowRunStatus {
        self.until_status(run, phase, |status| phase_of(status) == phase)
            .await
    }

    /// Waits until a condition is there and satisfies the question.
    pub(crate) async fn until_condition<K>(
        &self,
        name: &str,
        type_: &str,
        is: impl Fn(&Condition) -> bool,
    ) -> Condition
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let api = self.kind::<K>();
        let what = format!("condition {type_} of {name}");
        let (api, is) = (&api, &is);
        until(&what, DEADLINE, || async move {
            let object = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
            conditions_of(&object)
                .into_iter()
                .find(|condition| condition.type_ == type_)
                .filter(|condition| is(condition))
        })
        .await
    }

    /// What the controller asked of the API about an object.
    pub(crate) fn audit(&self, resource: &str, name: &str) -> Vec<AuditEntry> {
        self.api
            .audit()
            .into_iter()
            .filter(|entry| entry.user_agent == AGENT)
            .filter(|entry| entry.resource == resource && entry.name == name)
            .collect()
    }

    /// The controller's requests about an object, such as `update status 200`.
    pub(crate) fn requests(&self, resource: &str, name: &str) -> Vec<String> {
        self.audit(resource, name)
            .into_iter()
            .map(|entry| {
                let AuditEntry {
                    verb,
                    subresource,
                    code,
                    ..
                } = entry;
                format!("{verb} {subresource} {code}").replace("  ", " ")
            })
            .collect()
    }
}

pub(crate) fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    })
}

pub(crate) fn conditions_of(object: &Value) -> Vec<Condition> {
    serde_json::from_value(object["status"]["conditions"].clone()).unwrap_or_default()
}

pub(crate) fn phase_of(status: &FlowRunStatus) -> String {
    let phase = serde_json::to_value(status.phase).unwrap();
    phase.as_str().unwrap_or_default().to_owned()
}

/// An http step.
pub(crate) fn call(name: &str, after: &[&str]) -> Value {
    json!({
        "name": name,
        "runAfter": after,
        "action": {"type": "http", "http": {"url": format!("https://example.com/{name}"), "method": "POST"}},
    })
}

/// Three http steps in a row.
pub(crate) fn three_steps() -> Value {
    json!({"steps": [call("one", &[]), call("two", &["one"]), call("three", &["two"])]})
}
