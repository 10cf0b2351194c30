//! A small Kubernetes API in the process: the API that `kubezap dev` and most tests run on.
//!
//! It serves KubeZap's kinds with their schemas, and of Kubernetes' own those that KubeZap uses, to any client: in the
//! process through [`LocalApi::client`], and to kubectl through [`LocalApi::serve`]. What holds here holds on a real
//! server; the contract suite of `kubezap-testing` runs against both and lists what differs.
//!
//! One room each: `kinds` (what is served), `store` (objects and their changes), `admission` (schema, defaults, rules),
//! `read`, `watch`, `write`, `patch` and `garbage` (the verbs), `show` and `table` (what goes back), `discovery`,
//! `openapi`, `faults`, `audit`, `serve` and `client`.
//!
//! It is a development server: one token, no authorization, no admission webhooks, and nothing survives the process.

mod admission;
mod audit;
mod client;
mod discovery;
mod failure;
mod faults;
mod field;
mod garbage;
mod json_path;
mod kinds;
mod openapi;
mod patch;
mod protobuf;
mod read;
mod reply;
mod request;
mod selector;
mod serve;
mod show;
mod store;
mod table;
mod watch;
mod write;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::{Method, Request as HttpRequest, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

pub use crate::audit::AuditEntry;
pub use crate::faults::{Fault, Faults, Rule};
pub use crate::reply::Body;

use crate::audit::Audit;
use crate::failure::{Failure, Result};
use crate::faults::Subject;
use crate::kinds::Registry;
use crate::reply::Reply;
use crate::request::{BODY_LIMIT, Request, Verb};
use crate::store::{Key, Store};

/// How a [`LocalApi`] is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kinds served beside the built-in ones.
    pub definitions: Vec<CustomResourceDefinition>,
    /// The token that clients over the socket present; by default a random one.
    pub token: Option<String>,
    /// Whether requests are recorded for [`LocalApi::audit`]. The record only grows: for tests.
    pub audit: bool,
    /// Changes kept of each kind, for watches that resume and lists that go on.
    pub history: usize,
    /// The time between two bookmarks of a watch that asked for them.
    pub bookmark_every: Duration,
}

impl Options {
    /// Serves the given kinds, without an audit.
    pub fn new(definitions: Vec<CustomResourceDefinition>) -> Self {
        Self {
            definitions,
            token: None,
            audit: false,
            history: 5_000,
            bookmark_every: Duration::from_secs(60),
        }
    }
}

/// A running API. Cheap to clone; all clones are the same server. Its objects go with the last clone.
#[derive(Clone, Debug)]
pub struct LocalApi {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    store: Store,
    faults: Faults,
    audit: Option<Audit>,
    token: String,
    bookmark_every: Duration,
    certificate: OnceLock<serve::Certificate>,
}

impl LocalApi {
    /// Makes an API that holds the namespaces `default` and `kube-system` and nothing else.
    ///
    /// # Panics
    /// When a definition uses a schema keyword that is not implemented here.
    pub fn new(options: Options) -> Self {
        let registry = Registry::new(&options.definitions);
        let store = Store::new(registry.all().len(), options.history);
        let api = Self {
            inner: Arc::new(Inner {
                store,
                registry,
                faults: Faults::default(),
                audit: options.audit.then(Audit::default),
                token: options.token.unwrap_or_else(random_token),
                bookmark_every: options.bookmark_every,
                certificate: OnceLock::new(),
            }),
        };
        for name in ["default", "kube-system"] {
            api.inner.create_namespace(name);
        }
        api
    }

    /// The token that clients over the socket present.
    pub fn token(&self) -> &str {
        &self.inner.token
    }

    /// Faults on demand.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// Every request so far, in order; empty unless [`Options::audit`] is set.
    pub fn audit(&self) -> Vec<AuditEntry> {
        self.inner
            .audit
            .as_ref()
            .map(Audit::entries)
            .unwrap_or_default()
    }

    /// Forgets all past versions, as a real server does every few minutes: lists that go on and watches that resume from one are
    /// answered 410. Open watches go on.
    pub fn compact(&self) {
        self.inner.store.lock().compact();
    }

    /// The version of the last write.
    pub fn resource_version(&self) -> u64 {
        self.inner.store.lock().version
    }

    async fn respond<B>(&self, request: HttpRequest<B>) -> io::Result<Response<Body>>
    where
        B: http_body::Body<Data = bytes::Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, BODY_LIMIT).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let failure = Failure::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "RequestEntityTooLarge",
                    format!("Request entity too large: limit is {BODY_LIMIT}"),
                );
                return Ok(Reply::from(failure).into_response());
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        let inner = &self.inner;
        let request = match Request::parse(&inner.registry, &parts, body) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(inner.answer_other(&parts).into_response()),
            Err(failure) => return Ok(Reply::from(failure).into_response()),
        };
        let name_given = inner.name_of(&request);
        let subject = Subject {
            verb: request.verb.name(),
            resource: &request.kind.plural,
            subresource: request.subresource.as_deref().unwrap_or_default(),
            namespace: request.namespace.as_deref().unwrap_or_default(),
            name: &name_given,
        };
        let latency = inner
            .faults
            .take(&subject, |fault| matches!(fault, Fault::Latency(_)));
        if let Some(Fault::Latency(duration)) = latency {
            tokio::time::sleep(duration).await;
        }
        let refused = inner
            .faults
            .take(&subject, |fault| matches!(fault, Fault::Status(_)));
        let reply = match refused {
            Some(Fault::Status(code)) => Err(injected(code, &request, &name_given)),
            _ => inner.dispatch(&request),
        };
        let reply = reply.unwrap_or_else(Reply::from);
        inner.record(&request, &name_given, &reply);
        if inner
            .faults
            .take(&subject, |fault| *fault == Fault::AnswerLost)
            .is_some()
        {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the answer was made to be lost",
            ));
        }
        Ok(reply.into_response())
    }
}

impl Inner {
    fn dispatch(self: &Arc<Self>, request: &Request<'_>) -> Result<Reply> {
        match request.verb {
            Verb::Get => self.get(request),
            Verb::List => self.list(request),
            Verb::Watch => self.watch(request),
            Verb::Create => self.create(request),
            Verb::Update => self.update(request),
            Verb::Patch => self.patch(request),
            Verb::Delete => self.delete(request),
            Verb::DeleteCollection => self.delete_collection(request),
        }
    }

    /// Answers what is about no objects: discovery, schemas, health.
    fn answer_other(&self, parts: &http::request::Parts) -> Reply {
        let path = parts.uri.path();
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Failure::method_not_allowed().into();
        }
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            return Reply::text(StatusCode::OK, "ok");
        }
        if let Some((value, aggregated)) = discovery::answer(&self.registry, path, &parts.headers) {
            let body = value.to_string().into();
            return if aggregated {
                Reply::typed(
                    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                    body,
                )
            } else {
                Reply::ok(body)
            };
        }
        match openapi::answer(&self.registry, path) {
            Some(value) => Reply::ok(value.to_string().into()),
            None => Failure::unknown_path().into(),
        }
    }

    /// The name that a request is about, as far as it says.
    fn name_of(&self, request: &Request<'_>) -> String {
        if let Some(name) = &request.name {
            return name.clone();
        }
        match request.verb {
            Verb::Create => serde_json::from_slice::<Named>(&request.body)
                .map(|named| named.metadata.name)
                .unwrap_or_default(),
            _ => String::new(),
        }
    }

    fn record(&self, request: &Request<'_>, name: &str, reply: &Reply) {
        let Some(audit) = &self.audit else {
            return;
        };
        let written = reply.written.as_ref();
        let user_agent = request.headers.get(http::header::USER_AGENT);
        let is_write = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch);
        audit.record(AuditEntry {
            seq: 0,
            at: Instant::now(),
            verb: request.verb.name().to_owned(),
            resource: request.kind.plural.clone(),
            subresource: request.subresource.clone().unwrap_or_default(),
            namespace: request.namespace.clone().unwrap_or_default(),
            name: written.map_or_else(|| name.to_owned(), |written| written.name.clone()),
            code: reply.code.as_u16(),
            resource_version: written.map(|written| written.version),
            user_agent: user_agent
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            body: is_write
                .then(|| serde_json::from_slice(&request.body).ok())
                .flatten(),
        });
    }

    fn create_namespace(&self, name: &str) {
        let kind = self.registry.namespaces();
        let key = Key {
            kind: kind.id,
            namespace: String::new(),
            name: name.to_owned(),
        };
        let namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": key.name,
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": write::now(),
                "labels": {"kubernetes.io/metadata.name": key.name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        self.store.lock().put(&key, namespace);
    }
}

#[derive(serde::Deserialize)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(serde::Deserialize)]
struct NamedMetadata {
    #[serde(default)]
    name: String,
}

fn random_token() -> String {
    let bytes: [u8; 32] = rand::random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A refusal that a fault asked for.
fn injected(code: u16, request: &Request<'_>, name: &str) -> Failure {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match code {
        StatusCode::CONFLICT => Failure::modified(request.kind, name),
        StatusCode::TOO_MANY_REQUESTS => {
            let mut failure = Failure::new(
                code,
                "TooManyRequests",
                "too many requests, please try again later",
            );
            failure.set_details(json!({"retryAfterSeconds": 1}));
            failure
        }
        StatusCode::INTERNAL_SERVER_ERROR => Failure::internal("a fault was asked for"),
        StatusCode::SERVICE_UNAVAILABLE => Failure::new(
            code,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        other => Failure::new(other, "", "a fault was asked for"),
    }
}
