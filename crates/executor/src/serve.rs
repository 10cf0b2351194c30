//! `POST /execute` over mutual TLS, for the controller of the installation and nobody else.
//!
//! A connection without its certificate does not get past the handshake. A caller that hangs up cancels its call. On
//! shutdown what is in flight finishes while everything new is answered 503; then [`serve()`] returns.

mod body;
mod identity;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::perform::Performer;
pub use identity::{ServerTls, ServerTlsError};

/// How long a peer may take to prove who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Certificates are looked at this often; they are replaced hours before they end.
const RELOAD: Duration = Duration::from_secs(30);

/// How long answers may take to leave after the last call has finished.
const FLUSH: Duration = Duration::from_secs(5);

/// The server could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener is unusable.
    #[error("cannot accept connections")]
    Accept(#[source] io::Error),
}

/// Serves `performer` on `listener` until `shutdown`, and returns when what was in flight then has finished.
///
/// # Errors
/// The listener failed in a way that no later attempt would mend.
pub async fn serve(
    listener: TcpListener,
    performer: Performer,
    tls: ServerTls,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let server = Arc::new(Server {
        performer,
        tls,
        draining: AtomicBool::new(false),
        calls: TaskTracker::new(),
        closing: CancellationToken::new(),
    });
    let connections = TaskTracker::new();
    let reload = tokio::spawn(Arc::clone(&server).keep_reloading());
    let drained = async {
        shutdown.cancelled().await;
        server.draining.store(true, Ordering::SeqCst);
        server.calls.close();
        server.calls.wait().await;
    };
    let outcome = tokio::select! {
        () = drained => Ok(()),
        error = accept(&listener, &server, &connections) => Err(error),
    };
    reload.abort();
    drop(listener);
    server.closing.cancel();
    connections.close();
    // Whoever does not read its answer in time does not keep the pod.
    let _ = tokio::time::timeout(FLUSH, connections.wait()).await;
    outcome
}

/// Accepts until the listener is beyond help.
async fn accept(
    listener: &TcpListener,
    server: &Arc<Server>,
    connections: &TaskTracker,
) -> ServeError {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(Arc::clone(server).connection(stream));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) if error.raw_os_error().is_some_and(is_shortage) => {
                tracing::warn!(%error, "cannot accept a connection now");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return ServeError::Accept(error),
        }
    }
}

/// The peer was gone before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// ENFILE, EMFILE, ENOBUFS, ENOMEM on Linux: pass when load does.
fn is_shortage(code: i32) -> bool {
    [23, 24, 105, 12].contains(&code)
}

struct Server {
    performer: Performer,
    tls: ServerTls,
    draining: AtomicBool,
    calls: TaskTracker,
    /// The last call has finished: close connections as they become idle.
    closing: CancellationToken,
}

impl Server {
    async fn keep_reloading(self: Arc<Self>) {
        loop {
            tokio::time::sleep(RELOAD).await;
            match self.tls.reload() {
                Ok(false) => {}
                Ok(true) => tracing::info!("certificates reloaded"),
                Err(error) => {
                    tracing::warn!(%error, "certificates not reloaded; the last good ones stay in use");
                }
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let acceptor = TlsAcceptor::from(self.tls.config());
        let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::info!(%error, "connection refused");
                return;
            }
            Err(_) => {
                tracing::info!("connection refused: no handshake in time");
                return;
            }
        };
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(300));
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(4096)
            .keep_alive_interval(Duration::from_secs(20));
        let service = service_fn(|request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let outcome = tokio::select! {
            outcome = connection.as_mut() => outcome,
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "connection ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() != "/execute" {
            return problem(StatusCode::NOT_FOUND, "the only path is /execute");
        }
        if request.method() != Method::POST {
            let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, "the only method is POST");
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        // Taken before the flag is read: a call is either waited for, or told to go elsewhere.
        let _call = self.calls.token();
        if self.draining.load(Ordering::SeqCst) {
            return draining(request.version());
        }
        let execute = match body::read(request.into_body()).await {
            Ok(execute) => execute,
            Err(refused) => return problem(refused.status(), &refused.to_string()),
        };
        // The future is dropped when the caller hangs up, and the call with it.
        let outcome = self
            .performer
            .perform(execute, CancellationToken::new())
            .await;
        match serde_json::to_vec(&outcome) {
            Ok(json) => respond(StatusCode::OK, json),
            Err(_) => problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the outcome cannot be written as JSON",
            ),
        }
    }
}

fn draining(version: Version) -> Response<Full<Bytes>> {
    let mut response = problem(
        StatusCode::SERVICE_UNAVAILABLE,
        "this executor is shutting down; nothing was sent",
    );
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("0"));
    if version < Version::HTTP_2 {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn problem(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(
        status,
        serde_json::json!({ "error": text })
            .to_string()
            .into_bytes(),
    )
}

fn respond(status: StatusCode, json: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(json)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
