//! The API on a socket: TLS with a certificate of its own, and one bearer token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::LocalApi;
use crate::failure::Failure;
use crate::reply::{Body, Reply};

/// The certificate that a server presents, and that its kubeconfig trusts.
#[derive(Debug)]
pub(crate) struct Certificate {
    pem: String,
    config: Arc<rustls::ServerConfig>,
}

impl Certificate {
    fn new() -> io::Result<Self> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let issued = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            pem: issued.cert.pem(),
            config: Arc::new(config),
        })
    }
}

impl LocalApi {
    /// Serves until `shutdown`; open watches end then.
    ///
    /// # Errors
    /// No certificate can be made. Errors of single connections end these only.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        let acceptor = TlsAcceptor::from(self.certificate()?.config.clone());
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shutdown.cancelled() => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "the local API could not accept a connection");
                    continue;
                }
            };
            while connections.try_join_next().is_some() {}
            let (api, acceptor) = (self.clone(), acceptor.clone());
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(move |request| {
                    let api = api.clone();
                    async move { api.answer_over_socket(request).await }
                });
                let builder = auto::Builder::new(TokioExecutor::new());
                // An error here is a client that went away, or an answer that was made to be lost.
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
        connections.shutdown().await;
        Ok(())
    }

    /// A kubeconfig for this server at an address, as YAML.
    ///
    /// # Errors
    /// No certificate can be made.
    pub fn kubeconfig(&self, address: SocketAddr) -> io::Result<String> {
        let authority = STANDARD.encode(&self.certificate()?.pem);
        Ok(format!(
            "apiVersion: v1
kind: Config
clusters:
- name: kubezap
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: kubezap
  user:
    token: {token}
contexts:
- name: kubezap
  context:
    cluster: kubezap
    user: kubezap
    namespace: default
current-context: kubezap
",
            token = self.inner.token
        ))
    }

    fn certificate(&self) -> io::Result<&Certificate> {
        if let Some(certificate) = self.inner.certificate.get() {
            return Ok(certificate);
        }
        let made = Certificate::new()?;
        Ok(self.inner.certificate.get_or_init(|| made))
    }

    async fn answer_over_socket(&self, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let given = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.strip_prefix("Bearer "))
            .unwrap_or_default();
        if !bool::from(given.as_bytes().ct_eq(self.inner.token.as_bytes())) {
            return Ok(Reply::from(Failure::unauthorized()).into_response());
        }
        self.answer(request).await
    }
}
