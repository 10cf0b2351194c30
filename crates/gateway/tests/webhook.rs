//! The webhook gateway on a real socket, before a Kubernetes API in the process: what it answers, in which order it checks, and
//! what it stores.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are not test functions"
)]

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use kubezap_api::{FlowRun, Trigger};
use kubezap_chassis::namespaces::Namespaces;
use kubezap_gateway::webhook::{Routes, WebhookConfig, serve};
use kubezap_local_api::{Fault, LocalApi, Options, Rule};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The secret, body and signature of GitHub's own documentation of `X-Hub-Signature-256`.
const GITHUB_SECRET: &str = "It's a Secret to Everybody";
const GITHUB_BODY: &str = "Hello, World!";
const GITHUB_SIGNATURE: &str =
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

const LIMIT: usize = 512 * 1024;

struct Gateway {
    api: LocalApi,
    client: Client,
    routes: Routes,
    http: HttpClient<HttpConnector, Full<Bytes>>,
    url: String,
    _stop: DropGuard,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Gateway {
    /// Serves the namespace `default` with these Triggers, each `(name, spec)`.
    async fn start(triggers: &[(&str, Value)]) -> Self {
        let api = LocalApi::new(Options::new(kubezap_api::crds()));
        let client = api.client("default");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"},
            "stringData": {"github": GITHUB_SECRET, "token": "s3cret-token"},
        });
        Api::<k8s_openapi::api::core::v1::Secret>::default_namespaced(client.clone())
            .create(
                &PostParams::default(),
                &serde_json::from_value(secret).unwrap(),
            )
            .await
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let config = WebhookConfig::new(
            client.clone(),
            Namespaces::Only(vec!["default".to_owned()]),
            listener,
        );
        let routes = config.routes.clone();
        let stop = CancellationToken::new();
        tokio::spawn(serve(config, stop.clone()));
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let gateway = Self {
            api,
            client,
            routes,
            http,
            url,
            _stop: stop.drop_guard(),
        };
        for (name, spec) in triggers {
            gateway.create(name, spec.clone()).await;
        }
        gateway
    }

    async fn create(&self, name: &str, spec: Value) {
        let trigger = json!({
            "apiVersion": "automation.kubezap.io/v1alpha1", "kind": "Trigger", "metadata": {"name": name}, "spec": spec,
        });
        Api::<Trigger>::default_namespaced(self.client.clone())
            .create(
                &PostParams::default(),
                &serde_json::from_value(trigger).unwrap(),
            )
            .await
            .unwrap();
    }

    /// Waits until exactly these paths are served.
    async fn serves(&self, paths: &[&str]) {
        let wanted = || {
            let mut served: Vec<_> = self
                .routes
                .served()
                .into_iter()
                .map(|route| route.path)
                .collect();
            served.sort();
            served == paths
        };
        let mut changes = self.routes.changes();
        tokio::time::timeout(Duration::from_secs(10), async {
            while !wanted() {
                changes.next().await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("served are {:?}, not {paths:?}", self.routes.served()));
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .http
            .request(request.body(Full::from(body.into())).unwrap())
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Answer {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, path, headers, body).await
    }

    async fn runs(&self) -> Vec<FlowRun> {
        Api::<FlowRun>::default_namespaced(self.client.clone())
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }
}

fn webhook(webhook: Value) -> Value {
    json!({"type": "webhook", "webhook": webhook, "flowRef": {"name": "f"}})
}

fn bearer(secret: &str) -> Value {
    let auth =
        json!({"type": "bearer", "bearer": {"tokenSecretRef": {"name": secret, "key": "token"}}});
    webhook(json!({"path": "/hooks/in", "auth": auth}))
}

fn github() -> Value {
    let auth = json!({"type": "hmac", "hmac": {"provider": "github", "secretRef": {"name": "keys", "key": "github"}}});
    webhook(json!({"path": "/hooks/in", "auth": auth}))
}

fn open() -> Value {
    webhook(json!({"path": "/hooks/in"}))
}

#[tokio::test]
async fn an_event_is_answered_202_with_the_name_of_the_run_that_is_stored() {
    let gateway = Gateway::start(&[("in", open())]).await;
    gateway.serves(&["/hooks/in"]).await;
    let answer = gateway
        .post(
            "/hooks/in",
            &[
                ("content-type", "application/json"),
                ("x-github-event", "push"),
                ("authorization", "Basic x"),
            ],
            r#"{"a": 1}"#,
        )
        .await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let runs = gateway.runs().await;
    let run = &runs[0];
    let name = run.metadata.name.clone().unwrap();
    assert_eq!(
        body,
        json!({"namespace": "default", "flowRun": name, "deduplicated": false})
    );
    let location = answer.headers["location"].to_str().unwrap();
    assert_eq!(
        location,
        format!("/apis/automation.kubezap.io/v1alpha1/namespaces/default/flowruns/{name}")
    );
    assert!(name.starts_with("in-") && name.len() <= 63);

    let event = run.spec.trigger_data.clone().unwrap();
    assert_eq!(event.source.as_deref(), Some("webhook"));
    assert_eq!(
        (event.method.as_deref(), event.path.as_deref()),
        (Some("POST"), Some("/hooks/in"))
    );
    assert_eq!(event.body.as_deref(), Some(r#"{"a": 1}"#));
    assert_eq!(
        event.headers["X-Github-Event"], "push",
        "names are stored in canonical form"
    );
    assert_eq!(event.headers["Authorization"], "[REDACTED]");
    let labels = run.metadata.labels.clone().unwrap();
    assert_eq!(labels["kubezap.io/trigger"], "in");
    assert_eq!(labels["kubezap.io/flow"], "f");
    let owner = &run.metadata.owner_references.clone().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str()),
        ("Trigger", "in")
    );
}

#[tokio::test]
async fn what_is_not_served_is_404_and_another_method_405_with_allow() {
    let gateway = Gateway::start(&[
        ("in", open()),
        ("off", json!({"type": "webhook", "enabled": false, "webhook": {"path": "/hooks/off"}, "flowRef": {"name": "f"}})),
        ("limited", webhook(json!({"path": "/hooks/limited", "rateLimit": {"maxRequests": 1}}))),
        ("slack", webhook(json!({"path": "/hooks/slack", "auth": {"type": "basic", "basic": {"secretRef": {"name": "keys"}}}}))),
        ("put", webhook(json!({"path": "put", "method": "PUT"}))),
    ])
    .await;
    // `/hooks` is prepended; what is disabled or not supported yet is not served.
    gateway.serves(&["/hooks/in", "/hooks/put"]).await;
    for path in [
        "/",
        "/hooks",
        "/hooks/nobody",
        "/hooks/off",
        "/hooks/limited",
        "/hooks/slack",
        "/hooks/in/deeper",
    ] {
        assert_eq!(gateway.post(path, &[], "{}").await.status, 404, "{path}");
    }
    for method in [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        let answer = gateway.send(method.clone(), "/hooks/in", &[], "").await;
        assert_eq!(
            (
                answer.status.as_u16(),
                answer.headers["allow"].to_str().unwrap()
            ),
            (405, "POST"),
            "{method}"
        );
    }
    let answer = gateway.post("/hooks/put", &[], "").await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.headers["allow"].to_str().unwrap()
        ),
        (405, "PUT")
    );
    assert!(gateway.runs().await.is_empty());
}

#[tokio::test]
async fn a_bearer_token_is_checked_before_the_body_is_read() {
    let gateway = Gateway::start(&[("in", bearer("keys"))]).await;
    gateway.serves(&["/hooks/in"]).await;
    let large = "x".repeat(LIMIT + 1);
    for headers in [
        &[][..],
        &[("authorization", "Bearer wrong")],
        &[("authorization", "Bearer s3cret-toke")],
        &[("authorization", "Bearer s3cret-token ")],
        &[("authorization", "s3cret-token")],
        &[("authorization", "Basic s3cret-token")],
    ] {
        // A body over the limit would be 413 if it were looked at first.
        let answer = gateway.post("/hooks/in", headers, large.clone()).await;
        let trimmed = headers
            .iter()
            .any(|(_, value)| *value == "Bearer s3cret-token ");
        let expected = if trimmed { 413 } else { 401 };
        assert_eq!(answer.status, expected, "{headers:?}");
        if !trimmed {
            assert_eq!(answer.body, "", "the reason is in the access log only");
        }
    }
    assert!(gateway.runs().await.is_empty());
    let answer = gateway
        .post(
            "/hooks/in",
            &[("authorization", "Bearer s3cret-token")],
            "{}",
        )
        .await;
    assert_eq!(answer.status, 202);
    let stored = serde_json::to_string(&gateway.runs().await).unwrap();
    assert!(
        !stored.contains("s3cret-token"),
        "the header that was checked is redacted"
    );
}

#[tokio::test]
async fn github_s_signature_is_checked_over_the_raw_body() {
    let gateway = Gateway::start(&[("in", github())]).await;
    gateway.serves(&["/hooks/in"]).await;
    let signed = |signature| [("x-hub-signature-256", signature)];
    let flipped = GITHUB_SIGNATURE.replace("757107", "757108");
    for (headers, body) in [
        (&[][..], GITHUB_BODY),
        (&signed(flipped.as_str()), GITHUB_BODY),
        (&signed("sha256="), GITHUB_BODY),
        (&signed("sha256=zz"), GITHUB_BODY),
        (&signed(&GITHUB_SIGNATURE[7..]), GITHUB_BODY),
        (&signed(GITHUB_SIGNATURE), "Hello, World"),
        (&[("x-hub-signature", GITHUB_SIGNATURE)], GITHUB_BODY),
    ] {
        let answer = gateway.post("/hooks/in", headers, body).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body.as_str()),
            (401, ""),
            "{headers:?} {body}"
        );
    }
    assert!(gateway.runs().await.is_empty());
    let answer = gateway
        .post("/hooks/in", &signed(GITHUB_SIGNATURE), GITHUB_BODY)
        .await;
    assert_eq!(answer.status, 202);
    assert!(
        !serde_json::to_string(&gateway.runs().await)
            .unwrap()
            .contains(GITHUB_SIGNATURE)
    );
    // The size comes before the signature.
    let answer = gateway
        .post(
            "/hooks/in",
            &signed(GITHUB_SIGNATURE),
            "x".repeat(LIMIT + 1),
        )
        .await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_missing_secret_is_503_and_never_open() {
    let gateway = Gateway::start(&[("in", bearer("nobody"))]).await;
    gateway.serves(&["/hooks/in"]).await;
    for headers in [
        &[][..],
        &[("authorization", "Bearer s3cret-token")],
        &[("authorization", "Bearer ")],
    ] {
        let answer = gateway.post("/hooks/in", headers, "{}").await;
        assert!(
            [401, 503].contains(&answer.status.as_u16()),
            "{headers:?}: {}",
            answer.status
        );
    }
    let answer = gateway
        .post(
            "/hooks/in",
            &[("authorization", "Bearer s3cret-token")],
            "{}",
        )
        .await;
    assert_eq!(answer.status, 503);
    assert!(gateway.runs().await.is_empty());
}

#[tokio::test]
async fn a_body_is_measured_as_it_is_stored_and_headers_have_a_limit() {
    let gateway = Gateway::start(&[("in", open())]).await;
    gateway.serves(&["/hooks/in"]).await;
    // 393,216 binary bytes are 524,288 in base64.
    let binary = LIMIT / 4 * 3;
    for (body, expected) in [
        (vec![b'x'; LIMIT], 202),
        (vec![b'x'; LIMIT + 1], 413),
        (vec![0xff; binary], 202),
        (vec![0xff; binary + 1], 413),
    ] {
        let size = body.len();
        assert_eq!(
            gateway.post("/hooks/in", &[], body).await.status,
            expected,
            "{size} bytes"
        );
    }
    let runs = gateway.runs().await;
    assert_eq!(runs.len(), 2);
    let large = "h".repeat(33 * 1024);
    assert_eq!(
        gateway
            .post("/hooks/in", &[("x-large", &large)], "{}")
            .await
            .status,
        431
    );
}

#[tokio::test]
async fn an_api_that_cannot_store_is_503_with_retry_after_and_nothing_is_accepted() {
    let gateway = Gateway::start(&[("in", open())]).await;
    gateway.serves(&["/hooks/in"]).await;
    for code in [429, 500, 503] {
        gateway.api.faults().add(
            Rule::new(Fault::Status(code))
                .verb("create")
                .resource("flowruns"),
        );
        let answer = gateway.post("/hooks/in", &[], "{}").await;
        assert_eq!(answer.status, 503, "after {code}");
        assert!(answer.headers.contains_key("retry-after"), "after {code}");
        gateway.api.faults().clear();
    }
    assert!(gateway.runs().await.is_empty());
    assert_eq!(gateway.post("/hooks/in", &[], "{}").await.status, 202);
}

#[tokio::test]
async fn the_older_trigger_keeps_a_path_and_the_newer_takes_over_when_it_is_gone() {
    let gateway = Gateway::start(&[("a-first", open()), ("b-second", open())]).await;
    gateway.serves(&["/hooks/in"]).await;
    let answer = gateway.post("/hooks/in", &[], "{}").await;
    assert!(answer.body.contains("a-first-"), "{}", answer.body);
    Api::<Trigger>::default_namespaced(gateway.client.clone())
        .delete("a-first", &Default::default())
        .await
        .unwrap();
    let mut changes = gateway.routes.changes();
    tokio::time::timeout(Duration::from_secs(10), async {
        while gateway
            .routes
            .served()
            .iter()
            .all(|route| route.trigger != "b-second")
        {
            changes.next().await;
        }
    })
    .await
    .expect("the newer Trigger is served");
    assert!(
        gateway
            .post("/hooks/in", &[], "{}")
            .await
            .body
            .contains("b-second-")
    );
}

#[tokio::test]
async fn redact_headers_and_redact_body_store_the_marker() {
    let spec =
        webhook(json!({"path": "/hooks/in", "redactHeaders": ["x-internal"], "redactBody": true}));
    let gateway = Gateway::start(&[("in", spec)]).await;
    gateway.serves(&["/hooks/in"]).await;
    let headers = [
        ("x-internal", "visible-no-more"),
        ("cookie", "c=visible-no-more"),
        ("x-other", "kept"),
    ];
    assert_eq!(
        gateway
            .post("/hooks/in", &headers, "visible-no-more")
            .await
            .status,
        202
    );
    let run = gateway.runs().await.remove(0);
    let event = run.spec.trigger_data.clone().unwrap();
    assert_eq!(event.body.as_deref(), Some("[REDACTED]"));
    assert_eq!(
        (
            event.headers["X-Internal"].as_str(),
            event.headers["X-Other"].as_str()
        ),
        ("[REDACTED]", "kept")
    );
    assert!(
        !serde_json::to_string(&run)
            .unwrap()
            .contains("visible-no-more")
    );
}
