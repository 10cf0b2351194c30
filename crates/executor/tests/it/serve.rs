//! `/execute` over mutual TLS: who gets in, and how the server ends.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kubezap_executor::{ServerTls, serve};
use kubezap_step_protocol::identity::{controller_uri, executor_uri, presents};
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse};
use kubezap_testing::identity::Identity;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Server, body_of, closed, failure_of, get, ok, performer, receive, status_of, within, write,
};

const INSTALLATION: &str = "test";

/// Accepts the executor of namespace `shop` and nobody else, as a controller does.
#[derive(Debug)]
struct OnlyExecutor(RootCertStore);

impl ServerCertVerifier for OnlyExecutor {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(leaf)?,
            &self.0,
            intermediates,
            now,
            aws_lc_rs::default_provider()
                .signature_verification_algorithms
                .all,
        )?;
        assert!(presents(leaf, &executor_uri(INSTALLATION, "shop")));
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        panic!("the executor speaks TLS 1.3 only")
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap()
}

/// A connection of whoever holds `certificate`, or of nobody in particular.
pub(crate) async fn connect(
    address: SocketAddr,
    ca_pem: &str,
    certificate: Option<(String, String)>,
) -> Result<SendRequest<Full<Bytes>>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(ca_pem));
    let builder = ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OnlyExecutor(roots)));
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                certificates(&certificate),
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| error.to_string())?;
    let name = ServerName::try_from("executor").unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| error.to_string())?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(sender)
}

pub(crate) async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), String> {
    let response = within(sender.send_request(request))
        .await
        .map_err(|error| error.to_string())?;
    let status = response.status();
    let body = within(response.into_body().collect())
        .await
        .map_err(|error| error.to_string())?;
    Ok((status, body.to_bytes()))
}

pub(crate) fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post("/execute")
        .header("host", "executor")
        .body(Full::new(body.into()))
        .unwrap()
}

pub(crate) async fn execute(
    sender: &mut SendRequest<Full<Bytes>>,
    request: &ExecuteRequest,
) -> ExecuteResponse {
    let (status, body) = send(sender, post(serde_json::to_vec(request).unwrap()))
        .await
        .unwrap();
    assert_eq!(status, StatusCode::OK, "{body:?}");
    serde_json::from_slice(&body).unwrap()
}

struct Running {
    identity: Identity,
    address: SocketAddr,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), kubezap_executor::ServeError>>,
}

async fn running() -> Running {
    let identity = Identity::new(INSTALLATION);
    let (certificate, key) = identity.executor("shop");
    let tls = ServerTls::from_pem(&certificate, &key, identity.ca_pem(), INSTALLATION).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve(listener, performer(), tls, shutdown.clone()));
    Running {
        identity,
        address,
        shutdown,
        task,
    }
}

impl Running {
    async fn controller(&self) -> SendRequest<Full<Bytes>> {
        let certificate = self.identity.controller();
        connect(self.address, self.identity.ca_pem(), Some(certificate))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn the_controllers_calls_are_carried_out() {
    let target = Server::answering(|received| ok(received.line.as_bytes())).await;
    let running = running().await;
    let mut controller = running.controller().await;
    for path in ["/a", "/b"] {
        let response = execute(&mut controller, &get(target.url(path))).await;
        assert_eq!(body_of(&response), format!("GET {path}").as_bytes());
    }
    let refused = execute(&mut controller, &get("http://10.0.0.1/")).await;
    assert_eq!(failure_of(&refused).0, Code::EgressDenied);
}

#[tokio::test]
async fn nobody_but_the_controller_gets_past_the_handshake() {
    let running = running().await;
    let other_ca = Identity::new(INSTALLATION);
    let issue = |uri: &str| Some(running.identity.issue(uri));
    let strangers = [
        ("nobody", None),
        ("another CA's controller", Some(other_ca.controller())),
        ("an executor", issue(&executor_uri(INSTALLATION, "shop"))),
        (
            "a gateway",
            issue("spiffe://test/ns/shop/gateway/kubezap-webhook-gateway"),
        ),
        (
            "another installation's controller",
            issue(&controller_uri("other")),
        ),
        (
            "a path that only begins right",
            issue("spiffe://test/controller/x"),
        ),
        (
            "a server without any URI",
            Some(running.identity.server(&["controller"])),
        ),
    ];
    for (who, certificate) in strangers {
        // In TLS 1.3 a client learns of its refusal when it first reads.
        let outcome = match connect(running.address, running.identity.ca_pem(), certificate).await {
            Err(error) => Err(error),
            Ok(mut sender) => send(&mut sender, post("{}")).await,
        };
        assert!(outcome.is_err(), "{who} got {outcome:?}");
    }
    // The server is there all the same.
    running.controller().await;
}

#[tokio::test]
async fn a_caller_that_hangs_up_cancels_its_call() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let target = Server::start(move |mut stream| {
        let sender = sender.clone();
        async move {
            receive(&mut stream).await;
            sender.send("received").unwrap();
            closed(&mut stream).await;
            sender.send("closed").unwrap();
        }
    })
    .await;
    let running = running().await;
    let mut controller = running.controller().await;
    let body = serde_json::to_vec(&get(target.url("/"))).unwrap();
    let call = tokio::spawn(async move { send(&mut controller, post(body)).await });
    assert_eq!(within(events.recv()).await, Some("received"));
    call.abort();
    assert_eq!(within(events.recv()).await, Some("closed"));
}

#[tokio::test]
async fn on_shutdown_what_is_in_flight_finishes_and_what_is_new_is_turned_away() {
    let release = Arc::new(Notify::new());
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let target = Server::start({
        let release = Arc::clone(&release);
        move |mut stream| {
            let (release, sender) = (Arc::clone(&release), sender.clone());
            async move {
                receive(&mut stream).await;
                sender.send(()).unwrap();
                release.notified().await;
                write(&mut stream, &ok(b"finished")).await;
            }
        }
    })
    .await;
    let running = running().await;
    let mut controller = running.controller().await;
    let mut idle = running.controller().await;
    let request = get(target.url("/"));
    let in_flight = tokio::spawn(async move { execute(&mut controller, &request).await });
    within(arrived.recv()).await.unwrap();

    running.shutdown.cancel();
    let late = serde_json::to_vec(&get(target.url("/"))).unwrap();
    // The flag follows the token at once, but in a task of its own.
    kubezap_testing::wait::until("503", crate::support::PATIENCE, || async {
        let mut controller = running.controller().await;
        let (status, _) = send(&mut controller, post("{}")).await.unwrap();
        (status == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
    let (status, body) = send(&mut idle, post(late)).await.unwrap();
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(String::from_utf8_lossy(&body).contains("nothing was sent"));
    assert_eq!(target.connections(), 1);
    assert!(!running.task.is_finished());

    release.notify_one();
    let response = within(in_flight).await.unwrap();
    assert_eq!(status_of(&response), 200);
    assert_eq!(body_of(&response), b"finished");
    within(running.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test]
async fn what_is_not_a_call_is_answered_as_such() {
    let running = running().await;
    let mut controller = running.controller().await;
    let plain = |method: &str, path: &str| {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "executor")
            .body(Full::default())
            .unwrap()
    };
    for (request, status, text) in [
        (plain("POST", "/other"), 404, "the only path is /execute"),
        (plain("GET", "/execute"), 405, "the only method is POST"),
        (post("nonsense"), 400, "line 1 column 2"),
        (
            post(r#"{"version": 1}"#),
            400,
            "is not what the protocol says",
        ),
        (
            post(r#"{"version": 7}"#),
            400,
            "protocol version 7 is not understood here",
        ),
    ] {
        let (given, body) = send(&mut controller, request).await.unwrap();
        assert_eq!(given.as_u16(), status);
        let body = String::from_utf8_lossy(&body).into_owned();
        assert!(body.contains(text), "{body}");
    }
    let (given, _) = send(&mut controller, post(vec![b' '; (8 << 20) + 1]))
        .await
        .unwrap();
    assert_eq!(given, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn replaced_certificates_are_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let store = |identity: &Identity| {
        let (certificate, key) = identity.executor("shop");
        std::fs::write(file("tls.crt"), certificate).unwrap();
        std::fs::write(file("tls.key"), key).unwrap();
        std::fs::write(file("ca.crt"), identity.ca_pem()).unwrap();
    };
    let (old, new) = (Identity::new(INSTALLATION), Identity::new(INSTALLATION));
    store(&old);
    let tls = ServerTls::from_files(
        file("tls.crt"),
        file("tls.key"),
        file("ca.crt"),
        INSTALLATION,
    )
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(serve(listener, performer(), tls.clone(), shutdown.clone()));
    let connects = |identity: &Identity| {
        let (ca_pem, certificate) = (identity.ca_pem().to_owned(), identity.controller());
        async move {
            match connect(address, &ca_pem, Some(certificate)).await {
                Ok(mut sender) => send(&mut sender, post("{}")).await.is_ok(),
                Err(_) => false,
            }
        }
    };
    assert!(connects(&old).await);
    assert!(!connects(&new).await);
    assert!(!tls.reload().unwrap(), "nothing has changed");

    store(&new);
    std::fs::write(file("tls.key"), "half written").unwrap();
    assert!(tls.reload().is_err());
    assert!(connects(&old).await, "the last good ones stay");

    store(&new);
    assert!(tls.reload().unwrap());
    assert!(connects(&new).await);
    assert!(!connects(&old).await);
    shutdown.cancel();
    within(task).await.unwrap().unwrap();
}
