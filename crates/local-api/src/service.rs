//! Requests in, answers out: the API as a tower service, for a socket and for clients in the process.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Body, Frame};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::audit::{Audit, AuditEntry};
use crate::errors::Refusal;
use crate::faults::{Fault, Faults};
use crate::kinds::Kind;
use crate::request::{ResourceRequest, Verb};
use crate::store::{Key, Store};
use crate::watch::{self, Watch};
use crate::write::{MAX_OBJECT_BYTES, Writer};
use crate::{discovery, request, table};

/// The body of an answer: at once, or as it comes.
pub type AnswerBody = UnsyncBoxBody<Bytes, Lost>;

/// The connection broke: a fault on demand.
#[derive(Debug, thiserror::Error)]
#[error("the answer was lost: a fault on demand")]
pub struct Lost;

/// The API behind every front.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) kinds: Arc<Vec<Kind>>,
    pub(crate) store: Arc<Store>,
    pub(crate) faults: Faults,
    pub(crate) audit: Audit,
    /// The key that continue tokens are signed by; they are opaque to clients.
    pub(crate) address: std::sync::OnceLock<String>,
}

/// The API as a service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service(pub(crate) Arc<Api>);

impl<B> tower::Service<Request<B>> for Service
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<AnswerBody>;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Lost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = match Limited::new(body, 2 * MAX_OBJECT_BYTES).collect().await {
                Ok(body) => body.to_bytes(),
                Err(_) => return Ok(refused(&Refusal::too_large(2 * MAX_OBJECT_BYTES))),
            };
            api.answer(&head.method, &head.uri, &head.headers, body)
                .await
        })
    }
}

impl Api {
    async fn answer(
        self: &Arc<Self>,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<AnswerBody>, Lost> {
        let accept = text(headers, header::ACCEPT.as_str());
        let request = match request::read(&self.kinds, method, uri) {
            Some(Ok(request)) => request,
            Some(Err(refusal)) => return Ok(refused(&refusal)),
            None => {
                let address = self.address.get().map_or("", String::as_str);
                let found = (method == Method::GET)
                    .then(|| discovery::answer(&self.kinds, uri.path(), accept, address))
                    .flatten();
                return Ok(match (found, uri.path()) {
                    (Some(answer), _)
                        if accept.contains("as=APIGroupDiscoveryList")
                            && answer["kind"] == "APIGroupDiscoveryList" =>
                    {
                        let content_type =
                            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
                        with_type(StatusCode::OK, &answer, content_type)
                    }
                    (Some(answer), _) => json_answer(StatusCode::OK, &answer),
                    (None, "/healthz" | "/livez" | "/readyz") => plain("ok"),
                    (None, _) => refused(&Refusal::no_such_path()),
                });
            }
        };
        let kind = &self.kinds[request.kind];
        let fault = self
            .faults
            .strike(request.verb, &kind.plural, request.status, &request.name);
        let mut delay = Duration::ZERO;
        match &fault {
            Some(Fault::Latency(time)) => tokio::time::sleep(*time).await,
            Some(Fault::Refuse(code)) => return Ok(refused(&Refusal::fault(*code))),
            Some(Fault::DropWatch) if request.verb == Verb::Watch => {
                return Ok(streamed(futures::stream::empty()));
            }
            Some(Fault::StaleWatch(time)) => delay = *time,
            Some(Fault::LoseAnswer | Fault::DropWatch) | None => {}
        }
        let answer = match request.verb {
            Verb::Watch => self.watch(&request, accept, delay),
            Verb::Get | Verb::List => self.read(&request, accept),
            _ => self.write(&request, headers, &body, accept),
        };
        let answer = answer.unwrap_or_else(|refusal| refused(&refusal));
        self.note(&request, headers, &body, answer.status());
        if fault == Some(Fault::LoseAnswer) {
            return Err(Lost);
        }
        Ok(answer)
    }

    fn note(&self, request: &ResourceRequest, headers: &HeaderMap, body: &Bytes, code: StatusCode) {
        if !self.audit.on {
            return;
        }
        let body: Option<Value> = matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch)
            .then(|| serde_json::from_slice(body).ok())
            .flatten();
        let named = || {
            body.as_ref()
                .and_then(|body| body["metadata"]["name"].as_str())
                .unwrap_or_default()
                .to_owned()
        };
        self.audit.record(AuditEntry {
            verb: request.verb.as_str().to_owned(),
            resource: self.kinds[request.kind].plural.clone(),
            subresource: if request.status {
                "status".to_owned()
            } else {
                String::new()
            },
            namespace: request.namespace.clone().unwrap_or_default(),
            name: if request.name.is_empty() {
                named()
            } else {
                request.name.clone()
            },
            code: code.as_u16(),
            user_agent: text(headers, header::USER_AGENT.as_str()).to_owned(),
            body,
            at: Instant::now(),
        });
    }

    fn read(
        &self,
        request: &ResourceRequest,
        accept: &str,
    ) -> Result<Response<AnswerBody>, Refusal> {
        let kind = &self.kinds[request.kind];
        if request.verb == Verb::Get {
            let namespace = request.namespace.as_deref().unwrap_or_default();
            let object = self
                .store
                .lock()
                .get(request.kind, namespace, &request.name);
            let object = object.ok_or_else(|| Refusal::not_found(kind, &request.name))?;
            return Ok(self.one(request, &object, accept, StatusCode::OK, &[]));
        }
        let selector = request.query.selector(kind)?;
        let limit = request
            .query
            .number("limit")?
            .filter(|limit| *limit > 0)
            .unwrap_or(u64::MAX);
        let inner = self.store.lock();
        let after = match request.query.get("continue") {
            Some(token) => {
                let (version, key) = read_token(token)?;
                if version < inner.compacted() {
                    return Err(Refusal::expired(
                        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
                    ));
                }
                Some((version, key))
            }
            None => None,
        };
        let version = after
            .as_ref()
            .map_or(inner.version(), |(version, _)| *version);
        // A page is taken from the newest state; what the pages before saw is not kept.
        let mut objects = Vec::new();
        let mut last: Option<Key> = None;
        let mut more = false;
        for (key, object) in inner.range(
            request.kind,
            request.namespace.as_deref(),
            after.as_ref().map(|(_, key)| key),
        ) {
            if !selector.takes(object) {
                continue;
            }
            if objects.len() as u64 == limit {
                more = true;
                break;
            }
            objects.push(object.clone());
            last = Some(key.clone());
        }
        drop(inner);
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if let (true, Some(key)) = (more, last) {
            metadata["continue"] = json!(token(version, &key));
        }
        let references: Vec<&Value> = objects.iter().map(Arc::as_ref).collect();
        if table::is_asked(accept) {
            return Ok(json_answer(
                StatusCode::OK,
                &table::of(kind, &references, metadata, Timestamp::now()),
            ));
        }
        let mut body = format!(
            "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            kind.kind,
            kind.api_version()
        );
        for (index, object) in references.iter().enumerate() {
            if index > 0 {
                body.push(',');
            }
            body.push_str(&object.to_string());
        }
        body.push_str("]}");
        Ok(respond(
            StatusCode::OK,
            "application/json",
            body.into(),
            &[],
        ))
    }

    fn watch(
        &self,
        request: &ResourceRequest,
        accept: &str,
        delay: Duration,
    ) -> Result<Response<AnswerBody>, Refusal> {
        let kind = &self.kinds[request.kind];
        let query = &request.query;
        let mut selector = query.selector(kind)?;
        if !request.name.is_empty() {
            selector = crate::selector::Selector::read(
                "",
                &format!("metadata.name={}", request.name),
                kind,
            )?;
        }
        let given = query.number("resourceVersion")?;
        let send_initial = query.is_true("sendInitialEvents");
        let inner = self.store.lock();
        let from_the_start = send_initial || given.is_none_or(|version| version == 0);
        let (from, initial) = if from_the_start {
            let objects = inner.range(request.kind, request.namespace.as_deref(), None);
            (
                inner.version(),
                objects
                    .map(|(_, object)| object)
                    .filter(|object| selector.takes(object))
                    .cloned()
                    .collect(),
            )
        } else {
            (given.unwrap_or_default(), Vec::new())
        };
        let compacted = inner.compacted();
        drop(inner);
        if from < compacted {
            return Ok(streamed(futures::stream::iter([watch::expired(
                from, compacted,
            )])));
        }
        let bookmarks = query.is_true("allowWatchBookmarks");
        let watch = Watch {
            kinds: self.kinds.clone(),
            kind: request.kind,
            namespace: request.namespace.clone(),
            selector,
            from,
            initial,
            mark_initial_end: send_initial && bookmarks,
            bookmarks,
            as_table: table::is_asked(accept),
            timeout: query.number("timeoutSeconds")?.map(Duration::from_secs),
            delay,
        };
        Ok(streamed(watch::lines(watch, self.store.clone())))
    }

    fn write(
        &self,
        request: &ResourceRequest,
        headers: &HeaderMap,
        body: &Bytes,
        accept: &str,
    ) -> Result<Response<AnswerBody>, Refusal> {
        let kind = &self.kinds[request.kind];
        let content_type = text(headers, header::CONTENT_TYPE.as_str());
        let parse = || -> Result<Value, Refusal> {
            if body.is_empty() {
                return Ok(Value::Null);
            }
            serde_json::from_slice(body).map_err(|error| {
                Refusal::bad_request(format!("the object provided is unrecognized: {error}"))
            })
        };
        let mut inner = self.store.lock();
        let mut writer = Writer {
            kinds: &self.kinds,
            inner: &mut inner,
            index: request.kind,
            namespace: request.namespace.clone().unwrap_or_default(),
            query: &request.query,
            warnings: Vec::new(),
        };
        let (object, code) = match request.verb {
            Verb::Create => (writer.create(parse()?)?, StatusCode::CREATED),
            Verb::Update => (
                writer.update(&request.name, parse()?, request.status)?,
                StatusCode::OK,
            ),
            Verb::Patch => (
                writer.patch(&request.name, content_type, body, request.status)?,
                StatusCode::OK,
            ),
            Verb::Delete => {
                let object = writer.delete(&request.name, &parse()?)?;
                let held = object["metadata"]["deletionTimestamp"].is_string();
                if held {
                    return Ok(json_answer(StatusCode::OK, &object));
                }
                let details = json!({"name": request.name, "group": kind.group, "kind": kind.plural, "uid": object["metadata"]["uid"]});
                return Ok(json_answer(
                    StatusCode::OK,
                    &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
                ));
            }
            Verb::DeleteCollection => {
                let selector = request.query.selector(kind)?;
                let options = parse()?;
                let keys: Vec<Key> = writer
                    .inner
                    .range(request.kind, request.namespace.as_deref(), None)
                    .filter(|(_, object)| selector.takes(object))
                    .map(|(key, _)| key.clone())
                    .collect();
                let mut items = Vec::new();
                for (namespace, name) in keys {
                    writer.namespace = namespace;
                    items.push(writer.delete(&name, &options)?);
                }
                let items: Vec<&Value> = items.iter().map(Arc::as_ref).collect();
                let metadata = json!({"resourceVersion": writer.inner.version().to_string()});
                return Ok(json_answer(
                    StatusCode::OK,
                    &json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(), "metadata": metadata, "items": items}),
                ));
            }
            Verb::Get | Verb::List | Verb::Watch => return Err(Refusal::method_not_allowed()),
        };
        let warnings = std::mem::take(&mut writer.warnings);
        drop(inner);
        Ok(self.one(request, &object, accept, code, &warnings))
    }

    fn one(
        &self,
        request: &ResourceRequest,
        object: &Arc<Value>,
        accept: &str,
        code: StatusCode,
        warnings: &[String],
    ) -> Response<AnswerBody> {
        let body = if table::is_asked(accept) {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            table::of(
                &self.kinds[request.kind],
                &[object.as_ref()],
                metadata,
                Timestamp::now(),
            )
            .to_string()
        } else {
            object.to_string()
        };
        respond(code, "application/json", body.into(), warnings)
    }
}

/// The answer that refuses.
pub(crate) fn refused(refusal: &Refusal) -> Response<AnswerBody> {
    json_answer(refusal.code, &refusal.to_json())
}

fn json_answer(code: StatusCode, value: &Value) -> Response<AnswerBody> {
    with_type(code, value, "application/json")
}

fn with_type(code: StatusCode, value: &Value, content_type: &str) -> Response<AnswerBody> {
    respond(code, content_type, value.to_string().into(), &[])
}

fn plain(text: &'static str) -> Response<AnswerBody> {
    respond(
        StatusCode::OK,
        "text/plain",
        Bytes::from_static(text.as_bytes()),
        &[],
    )
}

fn respond(
    code: StatusCode,
    content_type: &str,
    body: Bytes,
    warnings: &[String],
) -> Response<AnswerBody> {
    let body = Full::new(body)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    if let Ok(value) = content_type.parse() {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    for warning in warnings {
        if let Ok(value) = format!("299 - \"{}\"", warning.replace('"', "\\\"")).parse() {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

fn streamed(lines: impl futures::Stream<Item = Bytes> + Send + 'static) -> Response<AnswerBody> {
    let body = StreamBody::new(lines.map(|line| Ok::<_, Lost>(Frame::data(line)))).boxed_unsync();
    let mut response = Response::new(body);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn token(version: u64, (namespace, name): &Key) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .encode(format!("{version}\n{namespace}\n{name}"))
}

fn read_token(token: &str) -> Result<(u64, Key), Refusal> {
    use base64::Engine;
    let wrong =
        || Refusal::bad_request("continue key is not valid: it was not given by this server");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(token)
        .map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let mut parts = text.splitn(3, '\n');
    let (version, namespace, name) = (parts.next(), parts.next(), parts.next());
    match (
        version.and_then(|version| version.parse().ok()),
        namespace,
        name,
    ) {
        (Some(version), Some(namespace), Some(name)) => {
            Ok((version, (namespace.to_owned(), name.to_owned())))
        }
        _ => Err(wrong()),
    }
}
