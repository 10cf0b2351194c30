//! Scripted servers, a scripted resolver, and requests.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kubezap_executor::resolve::{Resolve, ResolveError};
use kubezap_executor::{Performer, PerformerConfig};
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse, Header, Limits, VERSION};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine, short enough to notice a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it took too long")
}

/// A GET of `url` that may reach 127.0.0.1 on any port.
pub(crate) fn get(url: impl Into<String>) -> ExecuteRequest {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    ExecuteRequest {
        version: VERSION,
        execution_id: format!("execution-{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        method: "GET".to_owned(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
        timeout_millis: PATIENCE.as_millis() as u64,
        limits: Limits::default(),
        max_redirects: 0,
        allow: vec!["127.0.0.1".to_owned()],
        ca_bundle: None,
        client_certificate: None,
        discard_body: false,
    }
}

pub(crate) fn post(url: impl Into<String>, body: &[u8]) -> ExecuteRequest {
    let mut request = get(url);
    request.method = "POST".to_owned();
    request.body = Some(body.to_vec());
    request
}

pub(crate) fn header(name: &str, value: &str, sensitive: bool) -> Header {
    Header {
        name: name.to_owned(),
        value: value.to_owned(),
        sensitive,
    }
}

pub(crate) fn performer() -> Performer {
    Performer::new(PerformerConfig::default())
}

pub(crate) async fn perform(performer: &Performer, request: ExecuteRequest) -> ExecuteResponse {
    within(performer.perform(request, CancellationToken::new())).await
}

#[track_caller]
pub(crate) fn body_of(response: &ExecuteResponse) -> &[u8] {
    match response {
        ExecuteResponse::Response { body, .. } => body,
        ExecuteResponse::Failed { .. } => panic!("{response:?}"),
    }
}

#[track_caller]
pub(crate) fn status_of(response: &ExecuteResponse) -> u16 {
    match response {
        ExecuteResponse::Response { status, .. } => *status,
        ExecuteResponse::Failed { .. } => panic!("{response:?}"),
    }
}

#[track_caller]
pub(crate) fn failure_of(response: &ExecuteResponse) -> (Code, &str) {
    match response {
        ExecuteResponse::Failed { code, message } => (*code, message),
        ExecuteResponse::Response { .. } => panic!("{response:?}"),
    }
}

/// A server that does with each connection what its script says, and counts them.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start<F>(script: impl Fn(TcpStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(script(stream));
            }
        });
        Self {
            address,
            connections,
            task,
        }
    }

    /// Answers every request on every connection with what `answer` makes of it.
    pub(crate) async fn answering(
        answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::start(move |mut stream| {
            let answer = Arc::clone(&answer);
            async move {
                while let Some(received) = receive(&mut stream).await {
                    if stream.write_all(&answer(&received)).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// `METHOD target`.
    pub(crate) line: String,
    /// In order, names as sent.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Reads one request; `None` when the peer has closed.
pub(crate) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8(head).unwrap();
    let mut lines = text.trim_end().split("\r\n");
    let line = lines
        .next()
        .unwrap()
        .trim_end_matches(" HTTP/1.1")
        .to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_owned(), value.trim().to_owned())
        })
        .collect();
    let mut received = Received {
        line,
        headers,
        body: Vec::new(),
    };
    let length = received
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    received.body = vec![0; length];
    stream.read_exact(&mut received.body).await.ok()?;
    Some(received)
}

/// Waits until the peer has closed, by a FIN or a reset.
pub(crate) async fn closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut rest = [0; 1024];
    while let Ok(1..) = stream.read(&mut rest).await {}
}

pub(crate) fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

pub(crate) async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    stream.write_all(bytes).await.unwrap();
}

/// A resolver that gives scripted answers, one list for each look-up, the last one repeating.
#[derive(Default)]
pub(crate) struct Script {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    pub(crate) fn new(answers: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let answers = answers
            .iter()
            .map(|(name, lists)| {
                let lists = lists
                    .iter()
                    .map(|list| list.iter().map(|text| text.parse().unwrap()).collect())
                    .collect();
                ((*name).to_owned(), lists)
            })
            .collect();
        Arc::new(Self {
            answers: Mutex::new(answers),
            asked: Mutex::default(),
        })
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for Script {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, ResolveError>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.get_mut(name.trim_end_matches('.')) {
            None => Err(ResolveError::NoSuchName),
            Some(lists) if lists.len() > 1 => Ok(lists.remove(0)),
            Some(lists) => Ok(lists.first().cloned().unwrap_or_default()),
        };
        async move { answer }.boxed()
    }
}
