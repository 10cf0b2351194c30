//! A namespace on the server under test, and plain requests to it.

use std::time::Duration;

use bytes::Bytes;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};

/// The longest that anything may take on a slow machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// The group and version of KubeZap's kinds, as in a path.
pub(super) const KUBEZAP: &str = "/apis/automation.kubezap.io/v1alpha1";

/// A namespace of one case.
pub struct Scene {
    client: Client,
    namespace: String,
}

/// What a server answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answer {
    /// The body, of an answer with this code.
    #[track_caller]
    pub(super) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    /// Holds a refusal to code, reason and text.
    #[track_caller]
    pub(super) fn refused(self, code: u16, reason: &str, text: &str) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        assert_eq!(self.body["kind"], "Status");
        assert_eq!(self.body["status"], "Failure");
        assert_eq!(self.body["reason"], reason, "{}", self.body);
        assert_eq!(self.body["code"], code);
        let message = self.body["message"].as_str().unwrap_or_default();
        assert!(message.contains(text), "{message:?} does not say {text:?}");
        self.body
    }
}

impl Scene {
    /// Makes the namespace.
    ///
    /// # Panics
    /// When the server refuses it.
    pub(super) async fn new(client: Client) -> Self {
        let mut scene = Self {
            client,
            namespace: String::new(),
        };
        let namespace = json!({"metadata": {"generateName": "contract-"}});
        let made = scene
            .post("/api/v1/namespaces", namespace)
            .await
            .expect(201);
        scene.namespace = text(&made["metadata"]["name"]);
        scene
    }

    /// Takes the namespace away.
    pub(super) async fn strike(self) {
        self.delete(&format!("/api/v1/namespaces/{}", self.namespace), None)
            .await;
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of a kind of KubeZap in the namespace: `flows`, `flows/one`.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("{KUBEZAP}/namespaces/{}/{rest}", self.namespace)
    }

    /// The path of a core kind in the namespace.
    pub(super) fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(body.into_bytes().into()).expect("a request");
        let exchange = async {
            let answer = self.client.send(request).await.expect("an answer");
            let (parts, body) = answer.into_parts();
            let bytes: Bytes = body.collect().await.expect("a whole answer").to_bytes();
            (parts, bytes)
        };
        let (parts, bytes) = tokio::time::timeout(DEADLINE, exchange)
            .await
            .expect("an answer in time");
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
        }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[], None).await
    }

    pub(super) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.call(Method::GET, path, &[("accept", accept)], None)
            .await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        let headers = [(header::CONTENT_TYPE.as_str(), "application/json")];
        self.call(Method::POST, path, &headers, Some(&body)).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Answer {
        let headers = [(header::CONTENT_TYPE.as_str(), "application/json")];
        self.call(Method::PUT, path, &headers, Some(body)).await
    }

    pub(super) async fn delete(&self, path: &str, options: Option<Value>) -> Answer {
        let headers = [(header::CONTENT_TYPE.as_str(), "application/json")];
        self.call(Method::DELETE, path, &headers, options.as_ref())
            .await
    }

    /// Patches; `kind` is the middle of the content type: `merge-patch`.
    pub(super) async fn patch(&self, path: &str, kind: &str, patch: Value) -> Answer {
        let content_type = format!("application/{kind}+json");
        let headers = [(header::CONTENT_TYPE.as_str(), content_type.as_str())];
        self.call(Method::PATCH, path, &headers, Some(&patch)).await
    }

    /// Creates an object of a kind of KubeZap.
    pub(super) async fn create(&self, plural: &str, object: Value) -> Value {
        self.post(&self.path(plural), object).await.expect(201)
    }

    /// Opens a watch on a path that carries its query.
    pub(super) async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    pub(super) async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::get(path)
            .header(header::ACCEPT, accept)
            .body(Vec::new())
            .expect("a request");
        let stream = tokio::time::timeout(DEADLINE, self.client.request_stream(request))
            .await
            .expect("a watch in time")
            .expect("a watch");
        let events = stream.lines().map(|line| {
            let line = line.expect("a whole line");
            serde_json::from_str(&line).expect("an event is JSON")
        });
        Events(events.boxed())
    }

    /// Waits until an object is gone: on a real server some other process collects it.
    pub(super) async fn gone(&self, path: &str) {
        crate::wait::until(&format!("{path} to go"), DEADLINE, || async {
            (self.get(path).await.code == 404).then_some(())
        })
        .await;
    }
}

/// The events of a watch.
pub(super) struct Events(futures::stream::BoxStream<'static, Value>);

impl Events {
    /// The next event, bookmarks included; `None` when the watch has ended.
    pub(super) async fn any(&mut self) -> Option<Value> {
        tokio::time::timeout(DEADLINE, self.0.next())
            .await
            .expect("an event in time")
    }

    /// The next event that is no bookmark.
    pub(super) async fn next(&mut self) -> Value {
        loop {
            let event = self.any().await.expect("the watch goes on");
            if event["type"] != "BOOKMARK" {
                return event;
            }
        }
    }

    /// Holds the next event to a type and an object's name.
    pub(super) async fn expect(&mut self, kind: &str, name: &str) -> Value {
        let event = self.next().await;
        assert_eq!(event["type"], kind, "{event}");
        assert_eq!(event["object"]["metadata"]["name"], name, "{event}");
        event
    }
}

/// A Flow of one step that waits.
pub(super) fn flow(name: &str) -> Value {
    json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "Flow",
        "metadata": {"name": name},
        "spec": {"steps": [{"name": "pause", "action": {"type": "wait", "wait": {"duration": "1s"}}}]},
    })
}

/// A run of a Flow that need not exist.
pub(super) fn run(name: &str) -> Value {
    json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "FlowRun",
        "metadata": {"name": name},
        "spec": {"flowRef": {"name": "some-flow"}},
    })
}

/// A Trigger that fires a Flow that need not exist.
pub(super) fn trigger(name: &str) -> Value {
    json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "Trigger",
        "metadata": {"name": name},
        "spec": {"type": "webhook", "webhook": {"path": format!("/{name}")}, "flowRef": {"name": "some-flow"}},
    })
}

pub(super) fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    object
        .pointer_mut(parent)
        .expect("the parent exists")
        .as_object_mut()
        .expect("the parent is an object")
        .insert(key.to_owned(), value);
    object
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn version(object: &Value) -> String {
    text(&object["metadata"]["resourceVersion"])
}

pub(super) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| text(&item["metadata"]["name"])).collect()
}

/// The names of what items of any list are called in a field.
pub(super) fn fields(list: &Value, field: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| text(&item[field]))
        .collect()
}
