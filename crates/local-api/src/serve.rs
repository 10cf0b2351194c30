//! The API on a socket: TLS with a certificate of its own, and one bearer token.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use http::{Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use crate::errors::Refusal;
use crate::service::{Service, refused};

/// Why the socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// No certificate could be made.
    #[error("cannot make a certificate for the local API")]
    Certificate(#[source] rcgen::Error),
    /// TLS refuses the certificate.
    #[error("cannot set up TLS for the local API")]
    Tls(#[source] rustls::Error),
}

/// What a client needs to be let in.
#[derive(Debug)]
pub(crate) struct Door {
    token: String,
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

impl Door {
    /// A new token, and a certificate for loopback.
    pub(crate) fn new() -> Result<Self, ServeError> {
        let key = rcgen::KeyPair::generate().map_err(ServeError::Certificate)?;
        let names = [
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        let parameters = rcgen::CertificateParams::new(names).map_err(ServeError::Certificate)?;
        let certificate = parameters
            .self_signed(&key)
            .map_err(ServeError::Certificate)?;
        let token =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        Ok(Self {
            token,
            certificate,
            key,
        })
    }

    pub(crate) fn kubeconfig(&self, address: SocketAddr) -> String {
        let ca = base64::engine::general_purpose::STANDARD.encode(self.certificate.pem());
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "kubezap-dev",
            "clusters": [{"name": "kubezap-dev", "cluster": {"server": format!("https://{address}"), "certificate-authority-data": ca}}],
            "users": [{"name": "kubezap-dev", "user": {"token": self.token}}],
            "contexts": [{"name": "kubezap-dev", "context": {"cluster": "kubezap-dev", "user": "kubezap-dev", "namespace": "default"}}],
        });
        format!("{config:#}\n")
    }

    fn tls(&self) -> Result<tokio_rustls::TlsAcceptor, ServeError> {
        let certificate = CertificateDer::from(self.certificate.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(ServeError::Tls)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(ServeError::Tls)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(tokio_rustls::TlsAcceptor::from(Arc::new(config)))
    }

    fn admits(&self, request: &Request<Incoming>) -> bool {
        let given = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let given = given
            .and_then(|value| value.strip_prefix("Bearer "))
            .unwrap_or_default();
        given.as_bytes().ct_eq(self.token.as_bytes()).into()
    }
}

/// Serves until it is told to stop.
pub(crate) async fn serve(
    service: Service,
    door: Arc<Door>,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let acceptor = door.tls()?;
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // One connection that broke before it was there.
                Err(_) => continue,
            },
        };
        let (acceptor, service, door, stop) = (
            acceptor.clone(),
            service.clone(),
            door.clone(),
            stop.clone(),
        );
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let handle = service_fn(move |request: Request<Incoming>| {
                let (mut service, admitted) = (service.clone(), door.admits(&request));
                async move {
                    if !admitted {
                        return Ok(refused(&Refusal::unauthorized()));
                    }
                    service.call(request).await
                }
            });
            let server = auto::Builder::new(TokioExecutor::new());
            let connection = server.serve_connection(TokioIo::new(stream), handle);
            tokio::select! {
                // A connection that breaks is the client's affair.
                _ = connection => {}
                () = stop.cancelled() => {}
            }
        });
    }
}
