//! Executors as processes of their own: `POST /execute` over mutual TLS.

mod identity;
mod wiping;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kubezap_chassis::tls::{Files, Identity, TlsError};
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse};
use tokio_util::sync::CancellationToken;

use super::{DispatchError, Executors};

/// How long an executor may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// What an executor gets beyond a call's own time limit before its answer counts as lost.
const GRACE: Duration = Duration::from_secs(5);

/// Stands in the URL of executors for the namespace.
const PLACE: &str = "{namespace}";

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Hands calls to the executor of their namespace, and to nobody else: the server must present
/// `spiffe://<installation>/ns/<namespace>/executor`, whatever its address is.
///
/// An executor that cannot be connected to, that refuses the handshake or that answers 503 has not taken the call
/// ([`DispatchError::NotDelivered`]); when a connection breaks later, it may have ([`DispatchError::Lost`]).
pub struct RemoteExecutor {
    url: String,
    installation: String,
    files: Files,
    current: Mutex<Current>,
}

struct Current {
    identity: Identity,
    /// A namespace each: what a server must present differs.
    clients: HashMap<String, HttpClient>,
}

/// Why executors cannot be spoken to at all.
#[derive(Debug, thiserror::Error)]
pub enum RemoteExecutorError {
    /// Not a URL to send credentials to.
    #[error(
        "{url:?} is no https url; write one such as https://kubezap-http-executor.{PLACE}.svc:8091"
    )]
    Url {
        /// As it was given.
        url: String,
    },
    /// The controller's own certificate, key or authority.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl RemoteExecutor {
    /// Reads the controller's certificate. `{namespace}` in the URL stands for the namespace of a call's run.
    ///
    /// # Errors
    /// When the URL is not https, or a file cannot be used.
    pub fn new(url: &str, files: Files, installation: &str) -> Result<Self, RemoteExecutorError> {
        let refused = || RemoteExecutorError::Url {
            url: url.to_owned(),
        };
        let example = url::Url::parse(&url.replace(PLACE, "a")).map_err(|_| refused())?;
        if example.scheme() != "https" || !example.has_host() {
            return Err(refused());
        }
        let identity = Identity::load(&files)?;
        // A certificate that does not fit its key is told now, not at the first call.
        identity::client(&identity, installation, "")?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            installation: installation.to_owned(),
            files,
            current: Mutex::new(Current {
                identity,
                clients: HashMap::new(),
            }),
        })
    }

    /// Reads the files again and uses them for new connections. Says whether anything had changed.
    ///
    /// # Errors
    /// When a file cannot be used; what was in use stays in use.
    pub fn reload(&self) -> Result<bool, RemoteExecutorError> {
        let identity = Identity::load(&self.files)?;
        let mut current = self.lock();
        if identity::same(&identity, &current.identity) {
            return Ok(false);
        }
        identity::client(&identity, &self.installation, "")?;
        *current = Current {
            identity,
            clients: HashMap::new(),
        };
        Ok(true)
    }

    fn client(&self, namespace: &str) -> Result<HttpClient, DispatchError> {
        let mut current = self.lock();
        if let Some(client) = current.clients.get(namespace) {
            return Ok(client.clone());
        }
        let tls = identity::client(&current.identity, &self.installation, namespace)
            .map_err(|error| DispatchError::NotDelivered(error.to_string()))?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_all_versions()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(Duration::from_secs(20))
            .build(connector);
        current.clients.insert(namespace.to_owned(), client.clone());
        Ok(client)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(
        &self,
        namespace: &str,
        request: ExecuteRequest,
    ) -> Result<ExecuteResponse, DispatchError> {
        let client = self.client(namespace)?;
        let deadline = Duration::from_millis(request.timeout_millis).saturating_add(GRACE);
        let most = most_bytes(&request);
        let body = wiping::json(&request)
            .map_err(|_| DispatchError::NotDelivered("the request cannot be written".into()))?;
        drop(request);
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/execute", self.url.replace(PLACE, namespace)))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| DispatchError::NotDelivered(error.to_string()))?;
        let answer = async {
            let response = client
                .request(request)
                .await
                .map_err(|error| classify(&error))?;
            let status = response.status();
            if status == StatusCode::SERVICE_UNAVAILABLE {
                return Err(DispatchError::NotDelivered("it is shutting down".into()));
            }
            let body = Limited::new(response.into_body(), most)
                .collect()
                .await
                .map_err(|error| DispatchError::Lost(innermost(&*error)))?
                .to_bytes();
            read(status, &body)
        };
        tokio::time::timeout(deadline, answer)
            .await
            .unwrap_or_else(|_| Err(DispatchError::Lost("it did not answer in time".into())))
    }
}

impl Executors for RemoteExecutor {
    fn execute(
        &self,
        namespace: &str,
        request: ExecuteRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<ExecuteResponse, DispatchError>> {
        let namespace = namespace.to_owned();
        Box::pin(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Ok(ExecuteResponse::Failed {
                    code: Code::Canceled,
                    message: "the call was aborted".into(),
                }),
                answer = self.send(&namespace, request) => answer,
            }
        })
    }
}

/// What an answer of the executor may have in all: base64 and JSON escapes included.
fn most_bytes(request: &ExecuteRequest) -> usize {
    let limits = request.limits;
    let bytes = limits.response_bytes / 3 * 4 + limits.header_bytes * 6 + 64 * 1024;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn read(status: StatusCode, body: &[u8]) -> Result<ExecuteResponse, DispatchError> {
    #[derive(serde::Deserialize)]
    struct Problem {
        error: String,
    }
    match status {
        StatusCode::OK => serde_json::from_slice(body)
            .map_err(|_| DispatchError::Lost("it is not what an executor answers".into())),
        // Refused before anything was sent; the same request would be refused again.
        status if status.is_client_error() => Ok(ExecuteResponse::Failed {
            code: Code::InvalidRequest,
            message: serde_json::from_slice::<Problem>(body).map_or_else(
                |_| format!("the executor answered {status}"),
                |problem| problem.error,
            ),
        }),
        status => Err(DispatchError::Lost(format!("it answered {status}"))),
    }
}

/// Tells a call that cannot have been made from one that may have.
fn classify(error: &hyper_util::client::legacy::Error) -> DispatchError {
    let text = innermost(error);
    if error.is_connect() || identity::refused_by_peer(error) {
        DispatchError::NotDelivered(text)
    } else {
        DispatchError::Lost(text)
    }
}

/// The innermost cause says what happened; the wrappers only name their layers.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Looks for certificates that were renewed, for as long as the process runs.
pub async fn keep_reloading(executor: Arc<RemoteExecutor>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match executor.reload() {
            Ok(false) => {}
            Ok(true) => tracing::info!("certificates reloaded"),
            Err(error) => {
                tracing::warn!(%error, "certificates not reloaded; the last good ones stay in use");
            }
        }
    }
}
