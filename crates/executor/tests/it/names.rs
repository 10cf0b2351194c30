//! Names: what is asked of the resolver, and that what was checked is what is dialled.

use std::sync::Arc;

use kubezap_executor::{Performer, PerformerConfig};
use kubezap_step_protocol::Code;

use crate::support::{Script, Server, body_of, failure_of, get, ok, perform, status_of};

fn performer(script: &Arc<Script>) -> Performer {
    Performer::new(PerformerConfig {
        resolver: Arc::clone(script) as _,
        ..PerformerConfig::default()
    })
}

/// Answers, and ends the connection, so that the next call resolves again.
async fn closing() -> Server {
    Server::answering(|received| {
        let host = received.header("host").unwrap().to_owned();
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{host}",
            host.len()
        );
        head.into_bytes()
    })
    .await
}

#[tokio::test]
async fn a_name_is_resolved_once_for_a_connection_and_its_address_dialled() {
    let server = closing().await;
    let script = Script::new(&[("api.example.com", &[&["127.0.0.1"]])]);
    let url = format!("http://api.example.com:{}/", server.address.port());
    let response = perform(&performer(&script), get(url)).await;
    let host = format!("api.example.com:{}", server.address.port());
    assert_eq!(body_of(&response), host.as_bytes());
    assert_eq!(script.asked(), ["api.example.com."]);
}

#[tokio::test]
async fn a_name_that_is_rebound_to_a_refused_address_is_refused() {
    let server = closing().await;
    let script = Script::new(&[(
        "api.example.com",
        &[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1"]],
    )]);
    let performer = performer(&script);
    let url = format!("http://api.example.com:{}/", server.address.port());
    assert_eq!(
        status_of(&perform(&performer, get(url.as_str())).await),
        200
    );
    let rebound = perform(&performer, get(url.as_str())).await;
    let (code, message) = failure_of(&rebound);
    assert_eq!(code, Code::EgressDenied);
    assert!(
        message.starts_with(
            "api.example.com resolves to 169.254.169.254, which is a cloud metadata address"
        ),
        "{message}"
    );
    assert_eq!(status_of(&perform(&performer, get(url)).await), 200);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn mixed_answers_are_refused_and_nothing_is_dialled() {
    let server = closing().await;
    for answers in [&["127.0.0.1", "10.0.0.1"][..], &["10.0.0.1", "127.0.0.1"]] {
        let script = Script::new(&[("api.example.com", &[answers])]);
        let url = format!("http://api.example.com:{}/", server.address.port());
        let response = perform(&performer(&script), get(url)).await;
        assert_eq!(failure_of(&response).0, Code::EgressDenied);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_refused_name_is_not_looked_up() {
    let script = Script::new(&[]);
    let performer = performer(&script);
    for url in [
        "http://localhost/",
        "http://intranet/",
        "http://kubernetes.default.svc/",
        "http://metadata.google.internal/",
        "http://a.cluster.local/",
    ] {
        let response = perform(&performer, get(url)).await;
        assert_eq!(failure_of(&response).0, Code::EgressDenied, "{url}");
    }
    assert_eq!(script.asked(), [""; 0]);
}

#[tokio::test]
async fn search_domains_are_for_names_that_the_operator_admitted() {
    let server = closing().await;
    let script = Script::new(&[("orders.shop.svc", &[&["127.0.0.1"]])]);
    let mut request = get(format!("http://orders.shop.svc:{}/", server.address.port()));
    request.allow.push("*.shop.svc:*".to_owned());
    assert_eq!(status_of(&perform(&performer(&script), request).await), 200);
    assert_eq!(script.asked(), ["orders.shop.svc"]);
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failure_of_its_own() {
    let script = Script::new(&[("empty.example.com", &[&[]])]);
    let performer = performer(&script);
    let response = perform(&performer, get("http://missing.example.com/")).await;
    assert_eq!(
        failure_of(&response),
        (Code::Dns, "missing.example.com: the name does not exist")
    );
    let response = perform(&performer, get("http://empty.example.com/")).await;
    assert_eq!(
        failure_of(&response),
        (Code::Dns, "empty.example.com: the name has no address")
    );
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_takes_no_connection() {
    let server = Server::answering(|_| ok(b"second")).await;
    let script = Script::new(&[("api.example.com", &[&["::1", "127.0.0.2", "127.0.0.1"]])]);
    let mut request = get(format!("http://api.example.com:{}/", server.address.port()));
    request.allow = ["::1", "127.0.0.2", "127.0.0.1"]
        .map(str::to_owned)
        .to_vec();
    let response = perform(&performer(&script), request).await;
    assert_eq!(body_of(&response), b"second");
}

#[tokio::test]
async fn localhost_is_loopback_where_the_operator_names_it() {
    let server = Server::answering(|_| ok(b"here")).await;
    let performer = Performer::new(PerformerConfig::default());
    for host in ["localhost", "LOCALHOST."] {
        let mut request = get(format!("http://{host}:{}/", server.address.port()));
        request.allow = vec!["localhost:*".to_owned()];
        assert_eq!(body_of(&perform(&performer, request).await), b"here");
    }
}
