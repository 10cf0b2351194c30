//! Redirects: who is followed, with what, and what stays behind.

use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse};
use tokio::sync::mpsc;

use crate::support::{
    Received, Server, body_of, failure_of, get, header, ok, perform, performer, post, status_of,
};

fn to(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\nbody")
        .into_bytes()
}

/// A server whose `/final` answers, and whose every other path redirects to where its name says, `/<status>/<url>`.
async fn hopping() -> (Server, mpsc::UnboundedReceiver<Received>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = Server::answering(move |received| {
        // Not every test looks.
        let _ = sender.send(received.clone());
        let (_, path) = received.line.split_once(' ').unwrap();
        match path.trim_start_matches('/').split_once('/') {
            Some((status, location)) => to(status.parse().unwrap(), location),
            None => ok(b"final"),
        }
    })
    .await;
    (server, receiver)
}

fn credentials(request: &mut ExecuteRequest) {
    request.headers = vec![
        header("Authorization", "Bearer t", false),
        header("Cookie", "c=1", false),
        header("X-Api-Key", "k", false),
        header("X-Signature", "from-a-secret", true),
        header("X-Plain", "plain", false),
        header("Content-Type", "text/plain", false),
        header("Host", "virtual.example.com", false),
    ];
}

#[tokio::test]
async fn a_redirect_is_the_answer_where_none_is_followed() {
    let (server, _received) = hopping().await;
    let response = perform(&performer(), get(server.url("/302//final"))).await;
    assert_eq!(status_of(&response), 302);
    assert_eq!(body_of(&response), b"body");
    let ExecuteResponse::Response { headers, .. } = response else {
        panic!()
    };
    assert!(headers.contains(&("location".to_owned(), "/final".to_owned())));
}

#[tokio::test]
async fn as_many_redirects_are_followed_as_the_step_allows() {
    let (server, mut received) = hopping().await;
    for (allowed, status) in [(2, 302), (3, 200), (10, 200)] {
        let mut request = get(server.url("/302//307//308//final"));
        request.max_redirects = allowed;
        let response = perform(&performer(), request).await;
        let expected = if status == 200 { 200 } else { 308 };
        assert_eq!(status_of(&response), expected, "{allowed}");
        let hops = std::iter::from_fn(|| received.try_recv().ok()).count();
        assert_eq!(hops, 3 + usize::from(status == 200), "{allowed}");
    }
}

#[tokio::test]
async fn a_loop_ends_at_the_limit() {
    let server = Server::answering(|_| to(302, "/again")).await;
    let mut request = get(server.url("/"));
    request.max_redirects = 5;
    assert_eq!(status_of(&perform(&performer(), request).await), 302);
}

#[tokio::test]
async fn the_same_origin_gets_everything_again() {
    let (server, mut received) = hopping().await;
    for status in [307, 308] {
        let mut request = post(server.url(&format!("/{status}//final?x=1")), b"payload");
        credentials(&mut request);
        request.max_redirects = 1;
        assert_eq!(body_of(&perform(&performer(), request).await), b"final");
        let first = received.recv().await.unwrap();
        let second = received.recv().await.unwrap();
        assert_eq!(second.line, "POST /final?x=1");
        assert_eq!(second.body, b"payload");
        assert_eq!(second.headers, first.headers);
    }
}

#[tokio::test]
async fn another_origin_gets_neither_credentials_nor_body() {
    let (first, _) = hopping().await;
    let (second, mut received) = hopping().await;
    for status in [301, 302, 303, 307, 308] {
        let mut request = post(
            first.url(&format!("/{status}/{}", second.url("/final"))),
            b"payload",
        );
        credentials(&mut request);
        request.max_redirects = 1;
        assert_eq!(body_of(&perform(&performer(), request).await), b"final");
        let received = received.recv().await.unwrap();
        assert_eq!(received.body, b"", "{status}");
        for name in [
            "authorization",
            "cookie",
            "x-api-key",
            "x-signature",
            "content-type",
        ] {
            assert_eq!(received.header(name), None, "{status} {name}");
        }
        assert_eq!(received.header("x-plain"), Some("plain"));
        assert_eq!(
            received.header("host"),
            Some(second.address.to_string().as_str())
        );
        let method = if status < 307 { "GET" } else { "POST" };
        assert_eq!(received.line, format!("{method} /final"));
    }
}

#[tokio::test]
async fn credentials_do_not_come_back_when_the_way_leads_back() {
    let (first, mut at_first) = hopping().await;
    let (second, _) = hopping().await;
    let there_and_back = format!(
        "/302/{}",
        second.url(&format!("/302/{}", first.url("/final")))
    );
    let mut request = get(first.url(&there_and_back));
    credentials(&mut request);
    request.max_redirects = 2;
    assert_eq!(body_of(&perform(&performer(), request).await), b"final");
    assert!(
        at_first
            .recv()
            .await
            .unwrap()
            .header("authorization")
            .is_some()
    );
    assert_eq!(at_first.recv().await.unwrap().header("authorization"), None);
}

#[tokio::test]
async fn methods_change_as_the_standard_says() {
    let (server, mut received) = hopping().await;
    for (method, status, expected) in [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 301, "PUT"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("DELETE", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("HEAD", 301, "HEAD"),
    ] {
        let mut request = get(server.url(&format!("/{status}//final")));
        request.method = method.to_owned();
        if ["POST", "PUT"].contains(&method) {
            request.body = Some(b"payload".to_vec());
            request.headers = vec![header("Content-Type", "text/plain", false)];
        }
        request.max_redirects = 1;
        let performer = performer();
        // These raw servers do not know that an answer to HEAD has no body, so the connection ends up of no use.
        assert_eq!(status_of(&perform(&performer, request).await), 200);
        received.recv().await.unwrap();
        let second = received.recv().await.unwrap();
        assert_eq!(
            second.line,
            format!("{expected} /final"),
            "{method} {status}"
        );
        let kept = expected == method && method != "HEAD";
        assert_eq!(second.body, if kept { &b"payload"[..] } else { b"" });
        assert_eq!(second.header("content-type").is_some(), kept);
    }
}

#[tokio::test]
async fn every_hop_is_judged_like_a_call_of_its_own() {
    let (server, _received) = hopping().await;
    for location in [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://2852039166/",
        "//10.0.0.1/",
        "http://localhost/",
        "http://kubernetes.default.svc/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
    ] {
        let mut request = get(server.url(&format!("/302/{location}")));
        request.max_redirects = 3;
        let response = perform(&performer(), request).await;
        assert_eq!(failure_of(&response).0, Code::EgressDenied, "{location}");
    }
}

#[tokio::test]
async fn a_redirect_to_nonsense_says_who_sent_it() {
    let server = Server::answering(|_| to(302, "http://[nonsense?s3cret")).await;
    let mut request = get(server.url("/"));
    request.max_redirects = 1;
    let response = perform(&performer(), request).await;
    let (code, message) = failure_of(&response);
    assert_eq!(code, Code::InvalidRequest);
    assert!(message.starts_with("127.0.0.1 redirects to something that is not a URL"));
    assert!(!message.contains("s3cret"), "{message}");
}

#[tokio::test]
async fn a_redirect_without_a_location_is_an_answer() {
    let server =
        Server::answering(|_| b"HTTP/1.1 302 Found\r\nContent-Length: 4\r\n\r\nhere".to_vec())
            .await;
    let mut request = get(server.url("/"));
    request.max_redirects = 1;
    assert_eq!(body_of(&perform(&performer(), request).await), b"here");
}
