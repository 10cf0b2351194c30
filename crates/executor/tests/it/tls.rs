//! TLS towards targets: whom a call trusts, and what it presents to whom.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kubezap_executor::{Performer, PerformerConfig};
use kubezap_step_protocol::{ClientCertificate, Code, ExecuteRequest};
use kubezap_testing::identity::Identity;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Script, Server, body_of, failure_of, get, perform, performer, status_of, within,
};

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn config(
    (certificate, key): (String, String),
    clients: Option<&Identity>,
    alpn: &[&str],
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(identity.ca_pem()));
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let mut config = builder
        .with_single_cert(certificates(&certificate), key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Answers with the HTTP version and whether the client showed a certificate; `/hang` never answers, and tells when its
/// caller has gone.
async fn serve(config: Arc<ServerConfig>) -> (Server, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = Server::start(move |stream| {
        let acceptor = TlsAcceptor::from(Arc::clone(&config));
        let sender = sender.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let presented = stream.get_ref().1.peer_certificates().is_some();
            let service = service_fn(move |request: Request<Incoming>| {
                let sender = sender.clone();
                async move {
                    if request.uri().path() == "/hang" {
                        sender.send("hanging").unwrap();
                        let _gone = Gone(sender);
                        std::future::pending::<()>().await;
                    }
                    if let Some(size) = request.uri().path().strip_prefix("/header/") {
                        let response = Response::builder()
                            .header("x", "a".repeat(size.parse().unwrap()))
                            .body(Full::default());
                        return Ok(response.unwrap());
                    }
                    if let Some(location) = request.uri().query() {
                        let response = Response::builder()
                            .status(307)
                            .header("location", location)
                            .body(Full::default());
                        return Ok(response.unwrap());
                    }
                    let text = format!("{:?} {presented}", request.version());
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text))))
                }
            });
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    })
    .await;
    (server, receiver)
}

struct Gone(mpsc::UnboundedSender<&'static str>);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.0.send("gone");
    }
}

fn request(server: &Server, path: &str, identity: Option<&Identity>) -> ExecuteRequest {
    let mut request = get(format!("https://{}{path}", server.address));
    request.ca_bundle = identity.map(|identity| identity.ca_pem().to_owned());
    request
}

fn presenting(mut request: ExecuteRequest, (certificate, key): (String, String)) -> ExecuteRequest {
    request.client_certificate = Some(ClientCertificate { certificate, key });
    request
}

const BOTH: &[&str] = &["h2", "http/1.1"];

#[tokio::test]
async fn a_target_of_the_given_ca_is_called_in_the_newest_version_it_speaks() {
    let identity = Identity::new("target");
    for (alpn, expected) in [
        (BOTH, "HTTP/2.0 false"),
        (&["http/1.1"], "HTTP/1.1 false"),
        (&[], "HTTP/1.1 false"),
    ] {
        let config = config(identity.server(&["127.0.0.1"]), None, alpn);
        let (server, _events) = serve(config).await;
        let response = perform(&performer(), request(&server, "/", Some(&identity))).await;
        assert_eq!(body_of(&response), expected.as_bytes(), "{alpn:?}");
    }
}

#[tokio::test]
async fn a_target_by_name_must_show_that_name() {
    let identity = Identity::new("target");
    let config = config(identity.server(&["api.example.com"]), None, BOTH);
    let (server, _events) = serve(config).await;
    let script = Script::new(&[
        ("api.example.com", &[&["127.0.0.1"]]),
        ("other.example.com", &[&["127.0.0.1"]]),
    ]);
    let performer = Performer::new(PerformerConfig {
        resolver: script,
        ..PerformerConfig::default()
    });
    let call = |host: &str| {
        let mut request = request(&server, "/", Some(&identity));
        request.url = format!("https://{host}:{}/", server.address.port());
        let performer = performer.clone();
        async move { perform(&performer, request).await }
    };
    assert_eq!(status_of(&call("api.example.com").await), 200);
    assert_eq!(status_of(&call("API.example.com.").await), 200);
    let response = call("other.example.com").await;
    let (code, message) = failure_of(&response);
    assert_eq!(code, Code::Tls);
    assert!(message.starts_with("other.example.com:"), "{message}");
    let by_address = perform(&performer, request(&server, "/", Some(&identity))).await;
    assert_eq!(failure_of(&by_address).0, Code::Tls);
}

#[tokio::test]
async fn a_target_of_another_ca_is_not_called_even_after_a_call_that_trusted_it() {
    let (right, wrong) = (Identity::new("right"), Identity::new("wrong"));
    let config = config(right.server(&["127.0.0.1"]), None, BOTH);
    let (server, _events) = serve(config).await;
    let performer = performer();
    let trusted = perform(&performer, request(&server, "/", Some(&right))).await;
    assert_eq!(status_of(&trusted), 200);
    for other in [Some(&wrong), None] {
        let response = perform(&performer, request(&server, "/", other)).await;
        let (code, message) = failure_of(&response);
        assert_eq!(code, Code::Tls, "{message}");
        assert!(message.contains("UnknownIssuer"), "{message}");
    }
}

#[tokio::test]
async fn a_target_that_speaks_no_tls_is_a_tls_failure() {
    let server = Server::answering(|_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).await;
    let identity = Identity::new("target");
    let mut request = request(&server, "/", Some(&identity));
    request.timeout_millis = 5_000;
    let plain = Server::start(|mut stream| async move {
        crate::support::write(&mut stream, b"220 mail.example.com\r\n").await;
    })
    .await;
    request.url = format!("https://{}/", plain.address);
    let response = perform(&performer(), request).await;
    assert_eq!(failure_of(&response).0, Code::Tls);
}

#[tokio::test]
async fn a_client_certificate_is_presented_where_one_is_given() {
    let identity = Identity::new("target");
    let config = config(identity.server(&["127.0.0.1"]), Some(&identity), BOTH);
    let (server, _events) = serve(config).await;
    let performer = performer();
    let with = presenting(
        request(&server, "/", Some(&identity)),
        identity.issue("spiffe://target/client"),
    );
    assert_eq!(body_of(&perform(&performer, with).await), b"HTTP/2.0 true");
    let without = perform(&performer, request(&server, "/", Some(&identity))).await;
    let (code, message) = failure_of(&without);
    assert_eq!(code, Code::Tls, "{message}");
    let stranger = presenting(
        request(&server, "/", Some(&identity)),
        Identity::new("stranger").issue("spiffe://target/client"),
    );
    assert_eq!(
        failure_of(&perform(&performer, stranger).await).0,
        Code::Tls
    );
}

#[tokio::test]
async fn a_client_certificate_is_not_shown_to_another_origin() {
    let identity = Identity::new("target");
    let (first, _) = serve(config(
        identity.server(&["127.0.0.1"]),
        Some(&identity),
        BOTH,
    ))
    .await;
    let (second, _) = serve(config(
        identity.server(&["127.0.0.1"]),
        Some(&identity),
        BOTH,
    ))
    .await;
    let mut request = presenting(
        request(
            &first,
            &format!("/?https://{}/", second.address),
            Some(&identity),
        ),
        identity.issue("spiffe://target/client"),
    );
    request.max_redirects = 1;
    // The second target asks for a certificate, gets none, and refuses.
    let response = perform(&performer(), request).await;
    let (code, message) = failure_of(&response);
    assert_eq!(code, Code::Tls, "{message}");
    assert!(
        message.starts_with(&second.address.to_string()),
        "{message}"
    );
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_refused_without_being_quoted() {
    let identity = Identity::new("target");
    let (certificate, key) = identity.issue("spiffe://target/client");
    let (_, other_key) = identity.issue("spiffe://target/client");
    let cases = [
        ("s3cret".to_owned(), key.clone(), "not PEM certificates"),
        (
            certificate.clone(),
            "s3cret".to_owned(),
            "not a PEM private key",
        ),
        (certificate, other_key, "do not belong together"),
    ];
    for (certificate, key, text) in cases {
        let request = presenting(get("https://127.0.0.1:1/"), (certificate, key));
        let response = perform(&performer(), request).await;
        let (code, message) = failure_of(&response);
        assert_eq!(code, Code::InvalidRequest);
        assert!(message.contains(text), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[tokio::test]
async fn a_cancelled_call_resets_its_stream_and_leaves_the_others_alone() {
    let identity = Identity::new("target");
    let (server, mut events) = serve(config(identity.server(&["127.0.0.1"]), None, BOTH)).await;
    let performer = performer();
    // One call first, so that the rest share its connection.
    perform(&performer, request(&server, "/", Some(&identity))).await;
    let cancel = CancellationToken::new();
    let hanging = tokio::spawn({
        let (performer, cancel) = (performer.clone(), cancel.clone());
        let request = request(&server, "/hang", Some(&identity));
        async move { performer.perform(request, cancel).await }
    });
    assert_eq!(within(events.recv()).await, Some("hanging"));
    cancel.cancel();
    assert_eq!(
        failure_of(&within(hanging).await.unwrap()).0,
        Code::Canceled
    );
    assert_eq!(within(events.recv()).await, Some("gone"));
    let response = perform(&performer, request(&server, "/", Some(&identity))).await;
    assert_eq!(status_of(&response), 200);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn headers_beyond_the_limit_are_an_error_in_http_2_too() {
    let identity = Identity::new("target");
    let (server, _events) = serve(config(identity.server(&["127.0.0.1"]), None, BOTH)).await;
    for (size, passes) in [(60 << 10, true), (64 << 10, false), (200 << 10, false)] {
        let request = request(&server, &format!("/header/{size}"), Some(&identity));
        let response = perform(&performer(), request).await;
        if passes {
            assert_eq!(status_of(&response), 200);
        } else {
            assert_eq!(failure_of(&response).0, Code::ResponseTooLarge, "{size}");
        }
    }
}
