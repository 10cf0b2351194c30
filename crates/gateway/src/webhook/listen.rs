//! Connections: how many, how long, and how they end.
//!
//! A connection that carries no request for a while is closed, whatever it does meanwhile: one that has sent nothing, half
//! a head, or only pings. While a request is under way, the request's own deadlines bound it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::handle::Gateway;

/// The most header fields of one request; their size has a limit of its own.
const MAX_HEADERS: usize = 512;
/// What the HTTP library buffers of a head before it answers 431 by itself; above our own limit, so that ours answers.
const MAX_HEAD: usize = 128 * 1024;
/// How long the accept loop rests when the system has no sockets left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Accepts until `shutdown`, then lets what is in flight finish, for `limits.drain` at most.
pub(crate) async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(limits.max_connections));
    // Each connection and each request holds a sender; the receiver sees the end of the last one.
    let (alive, mut all_gone) = mpsc::channel::<Infallible>(1);
    let cut = CancellationToken::new();
    loop {
        // A slot first: connections beyond the limit wait in the system's queue.
        let slot = tokio::select! {
            slot = slots.clone().acquire_owned() => match slot {
                Ok(slot) => slot,
                Err(_) => break,
            },
            () = shutdown.cancelled() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = Connection {
                    stream,
                    peer,
                    gateway: gateway.clone(),
                    limits,
                    shutdown: shutdown.clone(),
                    alive: alive.clone(),
                };
                let cut = cut.clone();
                tokio::spawn(async move { cut.run_until_cancelled(connection.run(slot)).await });
            }
            Err(error) if is_connection_error(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
    drop(listener);
    drop(alive);
    if tokio::time::timeout(limits.drain, all_gone.recv())
        .await
        .is_err()
    {
        tracing::warn!("requests in flight did not finish in time; they are cut");
        cut.cancel();
    }
}

/// The other side gave up between its connect and our accept.
fn is_connection_error(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    gateway: Arc<Gateway>,
    limits: Limits,
    shutdown: CancellationToken,
    alive: mpsc::Sender<Infallible>,
}

impl Connection {
    async fn run(self, _slot: OwnedSemaphorePermit) {
        let Self {
            stream,
            peer,
            gateway,
            limits,
            shutdown,
            alive,
        } = self;
        let _ = stream.set_nodelay(true);
        let activity = Activity::new(limits.header_deadline);
        let server = builder(&limits);
        let service = service_fn(|request| {
            let busy = activity.begin(limits.idle);
            let gateway = gateway.clone();
            let alive = alive.clone();
            // A task of its own: a sender that goes away must not cut a create in two.
            let task = tokio::spawn(async move {
                let _alive = alive;
                gateway.handle(peer, request).await
            });
            async move {
                let answered = task.await;
                drop(busy);
                Ok::<_, Infallible>(answered.unwrap_or_else(|_| broken()))
            }
        });
        let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
        let mut closing = false;
        loop {
            let deadline = activity.deadline();
            tokio::select! {
                // What a client does wrong is not for our log.
                _ = connection.as_mut() => break,
                () = shutdown.cancelled(), if !closing => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = tokio::time::sleep_until(deadline) => {
                    if activity.is_over() {
                        break;
                    }
                }
            }
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_deadline)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.max_streams)
        .max_header_list_size(MAX_HEAD as u32)
        .keep_alive_interval(Some(limits.idle / 2))
        .keep_alive_timeout(limits.header_deadline);
    builder
}

fn broken() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

/// Whether a connection is of use: requests under way, and until when it may be without one.
#[derive(Clone)]
struct Activity(Arc<Mutex<State>>);

struct State {
    requests: usize,
    until: Instant,
}

/// A request under way.
struct Busy {
    activity: Activity,
    idle: Duration,
}

impl Activity {
    fn new(first: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            requests: 0,
            until: Instant::now() + first,
        })))
    }

    fn begin(&self, idle: Duration) -> Busy {
        self.lock().requests += 1;
        Busy {
            activity: self.clone(),
            idle,
        }
    }

    /// When to look again.
    fn deadline(&self) -> Instant {
        let state = self.lock();
        if state.requests > 0 {
            Instant::now() + Duration::from_secs(1)
        } else {
            state.until
        }
    }

    fn is_over(&self) -> bool {
        let state = self.lock();
        state.requests == 0 && state.until <= Instant::now()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.requests -= 1;
        state.until = Instant::now() + self.idle;
    }
}
