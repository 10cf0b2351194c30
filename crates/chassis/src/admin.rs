//! The admin server of a process: `/healthz`, `/readyz` and `/metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::{self, Metrics};

/// What a process waits for before it may be called ready; cloning it shares it.
///
/// Each part of the process holds a [`Gate`]. A process without gates is ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<Gates>>);

#[derive(Debug, Default)]
struct Gates {
    next: u64,
    waiting: BTreeMap<u64, (String, String)>,
}

/// One part of a process that is ready or not. Dropped, it no longer counts.
#[derive(Debug)]
pub struct Gate {
    readiness: Readiness,
    id: u64,
    name: String,
}

impl Readiness {
    /// Starts without gates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part that is not ready yet; `name` and `why` are shown by `/readyz`.
    pub fn gate(&self, name: impl Into<String>, why: impl Into<String>) -> Gate {
        let name = name.into();
        let id = {
            let mut gates = self.lock();
            gates.next += 1;
            gates.next
        };
        let gate = Gate {
            readiness: self.clone(),
            id,
            name,
        };
        gate.not_ready(why);
        gate
    }

    /// Says what is not ready, a line each, `name: why`; empty when all is.
    pub fn waiting(&self) -> Vec<String> {
        let gates = self.lock();
        gates
            .waiting
            .values()
            .map(|(name, why)| format!("{name}: {why}"))
            .collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Gates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// Counts this part as ready.
    pub fn ready(&self) {
        self.readiness.lock().waiting.remove(&self.id);
    }

    /// Counts this part as not ready, and says why.
    pub fn not_ready(&self, why: impl Into<String>) {
        let entry = (self.name.clone(), why.into());
        self.readiness.lock().waiting.insert(self.id, entry);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.ready();
    }
}

/// Binds an admin address, such as `0.0.0.0:9090` or `:8081` (all addresses).
///
/// # Errors
/// One line that names the address, what is wrong, and what to do.
pub async fn bind(address: &str) -> Result<TcpListener, BindError> {
    let full = if address.starts_with(':') {
        format!("0.0.0.0{address}")
    } else {
        address.to_owned()
    };
    let parsed: SocketAddr = full.parse().map_err(|_| BindError::NotAnAddress {
        address: address.to_owned(),
    })?;
    TcpListener::bind(parsed)
        .await
        .map_err(|source| BindError::of(address, source))
}

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Not `IP:PORT`.
    #[error("{address:?} is not an address to listen on; write IP:PORT, such as 127.0.0.1:8080")]
    NotAnAddress {
        /// As it was given.
        address: String,
    },
    /// Another process listens there.
    #[error("the address {address} is in use; stop what listens there, or choose another address")]
    InUse {
        /// As it was given.
        address: String,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {source}")]
    Refused {
        /// As it was given.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl BindError {
    /// Tells a port in use from everything else; for listeners that a caller binds itself.
    pub fn of(address: impl ToString, source: std::io::Error) -> Self {
        let address = address.to_string();
        if source.kind() == std::io::ErrorKind::AddrInUse {
            Self::InUse { address }
        } else {
            Self::Refused { address, source }
        }
    }
}

/// Serves `/healthz` (200 while the process lives), `/readyz` (200, or 503 with a line for each part that is not ready)
/// and `/metrics`, until `shutdown`.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    metrics: Metrics,
    shutdown: CancellationToken,
) {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(readiness)
        .route("/metrics", get(scrape).with_state(metrics));
    let served = axum::serve(listener, router)
        .with_graceful_shutdown(async move { shutdown.cancelled().await })
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the admin server ended");
    }
}

async fn readyz(State(readiness): State<Readiness>) -> impl IntoResponse {
    let waiting = readiness.waiting();
    if waiting.is_empty() {
        (StatusCode::OK, "ok\n".to_owned())
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}\n", waiting.join("\n")),
        )
    }
}

async fn scrape(State(metrics): State<Metrics>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)],
        metrics.encode(),
    )
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn readyz_names_what_is_not_ready() {
        let readiness = Readiness::new();
        let metrics = Metrics::new();
        let shutdown = CancellationToken::new();
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let triggers = readiness.gate("triggers", "waiting for the first list");
        let server = tokio::spawn(serve(
            listener,
            readiness.clone(),
            metrics,
            shutdown.clone(),
        ));

        let answer = ask(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("triggers: waiting for the first list"));
        assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));

        triggers.ready();
        assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        triggers.not_ready("the watch broke");
        assert!(ask(address, "/readyz").await.contains("the watch broke"));
        drop(triggers);
        assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(ask(address, "/metrics").await.contains("# EOF"));

        shutdown.cancel();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_port_in_use_is_said_in_one_line_with_what_to_do() {
        let first = bind("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap().to_string();
        let error = bind(&address).await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the address {address} is in use; stop what listens there, or choose another address"
            )
        );
        let error = bind("nonsense").await.unwrap_err().to_string();
        assert!(
            error.starts_with("\"nonsense\" is not an address"),
            "{error}"
        );
    }
}
