//! A fake target of http steps on loopback: answers what a test decides, and remembers every call.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use http_body_util::BodyExt;

/// One call that arrived.
#[derive(Clone, Debug)]
pub struct Call {
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers, names in lower case; of several values the last.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: Bytes,
    /// When its head and body had arrived.
    pub at: Instant,
}

impl Call {
    /// The `Idempotency-Key`, empty without one.
    pub fn key(&self) -> &str {
        self.headers
            .get("idempotency-key")
            .map_or("", String::as_str)
    }
}

type Answer = dyn Fn(Call) -> BoxFuture<'static, Response> + Send + Sync;

/// A running target; stops when dropped.
pub struct Target {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
    server: tokio::task::JoinHandle<()>,
}

impl Target {
    /// Starts a target that answers 200 with `{}`.
    pub async fn start() -> Self {
        Self::answering(|_| Box::pin(async { axum::Json(serde_json::json!({})).into_response() }))
            .await
    }

    /// Starts a target that answers as the function says. A call is remembered before the function runs.
    ///
    /// # Panics
    /// When loopback has no free port.
    pub async fn answering(
        answer: impl Fn(Call) -> BoxFuture<'static, Response> + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener
            .local_addr()
            .expect("a bound listener has an address");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Answer> = Arc::new(answer);
        let remembered = calls.clone();
        let router = Router::new().fallback(move |request: Request| {
            let (answer, remembered) = (answer.clone(), remembered.clone());
            async move {
                let call = read(request).await;
                remembered
                    .lock()
                    .expect("no test panics while it holds this")
                    .push(call.clone());
                answer(call).await
            }
        });
        let server = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the target serves until it is dropped");
        });
        Self {
            address,
            calls,
            server,
        }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every call so far, in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.calls
            .lock()
            .expect("no test panics while it holds this")
            .clone()
    }

    /// How often each Idempotency-Key was seen.
    pub fn calls_by_key(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.calls() {
            *counts.entry(call.key().to_owned()).or_default() += 1;
        }
        counts
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn read(request: Request) -> Call {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    Call {
        method: head.method.to_string(),
        path: head
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect(),
        body,
        at: Instant::now(),
    }
}
