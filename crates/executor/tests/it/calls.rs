//! One call: what goes out, what comes back, and every way it can fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use kubezap_chassis::metrics::Metrics;
use kubezap_executor::{Performer, PerformerConfig};
use kubezap_step_protocol::{Code, ExecuteResponse, Limits, VERSION};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::support::{
    Received, Server, body_of, closed, failure_of, get, header, ok, perform, performer, post,
    receive, status_of, within, write,
};

/// A server that passes on what it receives and answers 200.
async fn recording() -> (Server, mpsc::UnboundedReceiver<Received>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = Server::answering(move |received| {
        sender.send(received.clone()).unwrap();
        ok(b"")
    })
    .await;
    (server, receiver)
}

#[tokio::test]
async fn an_answer_comes_back_whole() {
    let server = Server::answering(|_| {
        b"HTTP/1.1 418 Odd\r\nContent-Length: 3\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Odd: caf\xc3\xa9\r\n\r\n\x00\xff\n"
            .to_vec()
    })
    .await;
    let response = perform(&performer(), get(server.url("/"))).await;
    let ExecuteResponse::Response {
        status,
        headers,
        body,
    } = response
    else {
        panic!("{response:?}")
    };
    assert_eq!(status, 418);
    assert_eq!(body, b"\x00\xff\n");
    let pairs: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    for pair in [
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("x-odd", "café"),
    ] {
        assert!(pairs.contains(&pair), "{pairs:?}");
    }
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_given() {
    let (server, mut received) = recording().await;
    let mut request = post(server.url("/a%20b/c?q=1&r=%2F#fragment"), b"\x00body");
    request.headers = vec![
        header("Content-Type", "application/octet-stream", false),
        header("X-Twice", "1", false),
        header("X-Twice", "2", false),
        header("Authorization", "Bearer t", true),
    ];
    assert_eq!(status_of(&perform(&performer(), request).await), 200);
    let received = received.recv().await.unwrap();
    assert_eq!(received.line, "POST /a%20b/c?q=1&r=%2F");
    assert_eq!(received.body, b"\x00body");
    assert_eq!(
        received.header("host"),
        Some(server.address.to_string().as_str())
    );
    assert_eq!(received.header("authorization"), Some("Bearer t"));
    let twice: Vec<&str> = received
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("x-twice"))
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(twice, ["1", "2"]);
    assert!(
        received
            .header("user-agent")
            .unwrap()
            .starts_with("kubezap/")
    );
    assert_eq!(received.header("accept-encoding"), None);
}

#[tokio::test]
async fn headers_of_the_connection_are_not_the_steps_to_set() {
    let (server, mut received) = recording().await;
    let mut request = post(server.url("/"), b"body");
    request.headers = vec![
        header("Content-Length", "400", false),
        header("Transfer-Encoding", "chunked", false),
        header("Connection", "X-Kept", false),
        header("Keep-Alive", "timeout=1", false),
        header("X-Kept", "yes", false),
        header("User-Agent", "mine", false),
        header("Host", "virtual.example.com", false),
    ];
    assert_eq!(status_of(&perform(&performer(), request).await), 200);
    let received = received.recv().await.unwrap();
    assert_eq!(received.header("content-length"), Some("4"));
    for name in ["transfer-encoding", "connection", "keep-alive"] {
        assert_eq!(received.header(name), None, "{name}");
    }
    assert_eq!(received.header("x-kept"), Some("yes"));
    assert_eq!(received.header("user-agent"), Some("mine"));
    assert_eq!(received.header("host"), Some("virtual.example.com"));
}

#[tokio::test]
async fn user_information_becomes_a_basic_credential_unless_the_step_has_its_own() {
    let (server, mut received) = recording().await;
    let url = format!("http://us%40er:p%3Aw@{}/", server.address);
    perform(&performer(), get(url.as_str())).await;
    let first = received.recv().await.unwrap();
    assert_eq!(first.header("authorization"), Some("Basic dXNAZXI6cDp3"));
    assert_eq!(first.line, "GET /");
    let mut request = get(url);
    request.headers = vec![header("authorization", "Bearer t", true)];
    perform(&performer(), request).await;
    let second = received.recv().await.unwrap();
    assert_eq!(second.header("authorization"), Some("Bearer t"));
}

#[tokio::test]
async fn a_post_without_a_body_says_so() {
    let (server, mut received) = recording().await;
    let mut request = post(server.url("/"), b"");
    request.body = None;
    perform(&performer(), request).await;
    assert_eq!(
        received.recv().await.unwrap().header("content-length"),
        Some("0")
    );
    perform(&performer(), get(server.url("/"))).await;
    assert_eq!(
        received.recv().await.unwrap().header("content-length"),
        None
    );
}

#[tokio::test]
async fn a_body_of_the_limit_passes_and_one_byte_more_does_not() {
    for chunked in [false, true] {
        let server = Server::answering(move |received| {
            let size: usize = received.line.trim_start_matches("GET /").parse().unwrap();
            if chunked {
                let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
                answer.extend(format!("{size:x}\r\n").bytes());
                answer.extend(vec![b'a'; size]);
                answer.extend(b"\r\n0\r\n\r\n");
                answer
            } else {
                ok(&vec![b'a'; size])
            }
        })
        .await;
        for (asked, limit) in [(1000, 1000), (10 << 20, 1 << 20)] {
            let call = |size: usize| {
                let mut request = get(server.url(&format!("/{size}")));
                request.limits.response_bytes = asked;
                async { perform(&performer(), request).await }
            };
            assert_eq!(
                body_of(&call(limit).await).len(),
                limit,
                "chunked: {chunked}"
            );
            let too_large = call(limit + 1).await;
            let (code, message) = failure_of(&too_large);
            assert_eq!(code, Code::ResponseTooLarge);
            assert_eq!(
                message,
                format!("{} answered with more than {limit} bytes", server.address)
            );
        }
    }
}

#[tokio::test]
async fn an_endless_body_is_given_up_at_the_limit() {
    let (gone, seen) = oneshot::channel();
    let gone = std::sync::Mutex::new(Some(gone));
    let server = Server::start(move |mut stream| {
        let gone = gone.lock().unwrap().take();
        async move {
            receive(&mut stream).await;
            write(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b'a'; 4096]).await.is_ok() {}
            gone.unwrap().send(()).unwrap();
        }
    })
    .await;
    let response = perform(&performer(), get(server.url("/"))).await;
    assert_eq!(failure_of(&response).0, Code::ResponseTooLarge);
    within(seen).await.unwrap();
}

#[tokio::test]
async fn a_body_that_nothing_reads_may_have_any_size() {
    let server = Server::answering(|received| match received.line.as_str() {
        "GET /large" => ok(&vec![b'a'; 8 << 20]),
        _ => ok(b"small"),
    })
    .await;
    let performer = performer();
    for path in ["/small", "/small", "/large"] {
        let mut request = get(server.url(path));
        request.discard_body = true;
        let response = perform(&performer, request).await;
        assert_eq!(status_of(&response), 200);
        assert_eq!(body_of(&response), b"");
    }
    assert_eq!(
        server.connections(),
        1,
        "a small body is drained and its connection kept"
    );
}

#[tokio::test]
async fn headers_beyond_the_limit_are_an_error() {
    let server = Server::answering(|received| {
        let size: usize = received.line.trim_start_matches("GET /").parse().unwrap();
        let value = "a".repeat(size);
        format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {value}\r\n\r\n").into_bytes()
    })
    .await;
    // What each header counts: its name, its value, and the four bytes around them.
    let others = "content-length".len() + "0".len() + 4 + "x".len() + 4;
    for limit in [1000, 64 << 10] {
        let call = |size: usize| {
            let mut request = get(server.url(&format!("/{size}")));
            request.limits.header_bytes = limit as u64;
            async { perform(&performer(), request).await }
        };
        assert_eq!(status_of(&call(limit - others).await), 200);
        let too_large = call(limit - others + 1).await;
        assert_eq!(failure_of(&too_large).0, Code::ResponseTooLarge);
        // Beyond what the parser takes, too.
        let huge = call(1 << 20).await;
        assert_eq!(failure_of(&huge).0, Code::ResponseTooLarge);
    }
}

/// A server that reads a request, then holds its breath until the peer closes.
async fn silent() -> (Server, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, events) = mpsc::unbounded_channel();
    let server = Server::start(move |mut stream| {
        let sender = sender.clone();
        async move {
            if receive(&mut stream).await.is_some() {
                sender.send("received").unwrap();
            }
            closed(&mut stream).await;
            // The test may have seen enough.
            let _ = sender.send("closed");
        }
    })
    .await;
    (server, events)
}

#[tokio::test]
async fn a_call_ends_at_its_time_limit_and_closes_its_socket() {
    let (server, mut events) = silent().await;
    let mut request = get(server.url("/"));
    request.timeout_millis = 300;
    let start = Instant::now();
    let response = perform(&performer(), request).await;
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(
        failure_of(&response),
        (
            Code::Timeout,
            format!("{}: no answer within 300ms", server.address).as_str()
        )
    );
    assert_eq!(within(events.recv()).await, Some("received"));
    assert_eq!(within(events.recv()).await, Some("closed"));
}

#[tokio::test]
async fn a_body_that_trickles_does_not_outlast_the_time_limit() {
    let server = Server::start(|mut stream| async move {
        receive(&mut stream).await;
        write(
            &mut stream,
            b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        )
        .await;
        let mut interval = tokio::time::interval(Duration::from_millis(20));
        while stream.write_all(b"a").await.is_ok() {
            interval.tick().await;
        }
    })
    .await;
    let mut request = get(server.url("/"));
    request.timeout_millis = 300;
    let response = perform(&performer(), request).await;
    assert_eq!(failure_of(&response).0, Code::Timeout);
}

#[tokio::test]
async fn a_cancelled_call_closes_its_socket() {
    let (server, mut events) = silent().await;
    let cancel = CancellationToken::new();
    let call = tokio::spawn({
        let (performer, request, cancel) = (performer(), get(server.url("/")), cancel.clone());
        async move { performer.perform(request, cancel).await }
    });
    assert_eq!(within(events.recv()).await, Some("received"));
    cancel.cancel();
    let response = within(call).await.unwrap();
    assert_eq!(failure_of(&response).0, Code::Canceled);
    assert_eq!(within(events.recv()).await, Some("closed"));
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_socket() {
    let (server, mut events) = silent().await;
    let call = tokio::spawn({
        let (performer, request) = (performer(), get(server.url("/")));
        async move { performer.perform(request, CancellationToken::new()).await }
    });
    assert_eq!(within(events.recv()).await, Some("received"));
    call.abort();
    assert_eq!(within(events.recv()).await, Some("closed"));
}

#[tokio::test]
async fn a_call_cancelled_while_its_body_arrives_closes_its_socket() {
    let (sender, mut events) = mpsc::unbounded_channel();
    let server = Server::start(move |mut stream| {
        let sender = sender.clone();
        async move {
            receive(&mut stream).await;
            write(
                &mut stream,
                b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na",
            )
            .await;
            sender.send("half").unwrap();
            closed(&mut stream).await;
            sender.send("closed").unwrap();
        }
    })
    .await;
    let cancel = CancellationToken::new();
    let call = tokio::spawn({
        let (performer, request, cancel) = (performer(), get(server.url("/")), cancel.clone());
        async move { performer.perform(request, cancel).await }
    });
    assert_eq!(within(events.recv()).await, Some("half"));
    cancel.cancel();
    assert_eq!(failure_of(&within(call).await.unwrap()).0, Code::Canceled);
    assert_eq!(within(events.recv()).await, Some("closed"));
}

#[tokio::test]
async fn a_call_cancelled_before_it_began_sends_nothing() {
    let (server, _events) = silent().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let response = within(performer().perform(get(server.url("/")), cancel)).await;
    assert_eq!(failure_of(&response).0, Code::Canceled);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_broken_exchange_says_how_it_broke() {
    for (answer, text) in [
        (
            &b""[..],
            "closed the connection before its answer was complete",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Le",
            "closed the connection before its answer was complete",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
            "closed the connection before its answer was complete",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "closed the connection before its answer was complete",
        ),
        (
            b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
            "answered with something that is not HTTP",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
            "answered with something that is not HTTP",
        ),
    ] {
        let server = Server::start(move |mut stream| async move {
            receive(&mut stream).await;
            write(&mut stream, answer).await;
        })
        .await;
        let response = perform(&performer(), get(server.url("/"))).await;
        let (code, message) = failure_of(&response);
        assert_eq!(code, Code::Connect, "{answer:?}");
        assert_eq!(message, format!("{} {text}", server.address), "{answer:?}");
    }
}

#[tokio::test]
async fn a_reset_and_a_closed_port_are_connection_failures() {
    let server = Server::start(|mut stream| async move {
        receive(&mut stream).await;
        // Dropping a socket with linger zero resets it.
        stream.set_zero_linger().unwrap();
    })
    .await;
    let response = perform(&performer(), get(server.url("/"))).await;
    assert_eq!(
        failure_of(&response),
        (
            Code::Connect,
            format!("{}: connection reset", server.address).as_str()
        )
    );
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = unused.local_addr().unwrap();
    drop(unused);
    let response = perform(&performer(), get(format!("http://{address}/"))).await;
    assert_eq!(
        failure_of(&response),
        (
            Code::Connect,
            format!("{address}: connection refused").as_str()
        )
    );
}

#[tokio::test]
async fn an_execution_id_is_carried_out_once() {
    let release = Arc::new(Notify::new());
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let server = Server::start({
        let release = Arc::clone(&release);
        move |mut stream| {
            let (release, sender) = (Arc::clone(&release), sender.clone());
            async move {
                receive(&mut stream).await;
                sender.send(()).unwrap();
                release.notified().await;
                write(&mut stream, &ok(b"once")).await;
            }
        }
    })
    .await;
    let performer = performer();
    let request = get(server.url("/"));
    let first = tokio::spawn({
        let (performer, request) = (performer.clone(), request.clone());
        async move { performer.perform(request, CancellationToken::new()).await }
    });
    within(arrived.recv()).await.unwrap();
    let during = perform(&performer, request.clone()).await;
    let (code, message) = failure_of(&during);
    assert_eq!(code, Code::InvalidRequest);
    assert!(message.contains("in flight already"), "{message}");
    release.notify_one();
    assert_eq!(body_of(&within(first).await.unwrap()), b"once");
    let after = perform(&performer, request).await;
    let (code, message) = failure_of(&after);
    assert_eq!(code, Code::InvalidRequest);
    assert!(message.contains("less than 5 minutes ago"), "{message}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn calls_reuse_connections_only_where_they_could_have_opened_them() {
    let server = Server::answering(|_| ok(b"")).await;
    let performer = performer();
    for _ in 0..5 {
        perform(&performer, get(server.url("/"))).await;
    }
    assert_eq!(server.connections(), 1);
    let mut request = get(server.url("/"));
    request.allow = vec!["127.0.0.1/32".to_owned()];
    perform(&performer, request).await;
    assert_eq!(server.connections(), 2);
    let mut request = get(server.url("/"));
    request.allow = Vec::new();
    let response = perform(&performer, request).await;
    assert_eq!(failure_of(&response).0, Code::EgressDenied);
}

#[tokio::test]
async fn calls_to_one_host_are_capped_and_the_rest_wait() {
    let open = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let (open, most) = (Arc::clone(&open), Arc::clone(&most));
        move |mut stream| {
            let (open, most) = (Arc::clone(&open), Arc::clone(&most));
            async move {
                while receive(&mut stream).await.is_some() {
                    let now = open.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    // Gives calls beyond the cap every chance to show themselves.
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                    write(&mut stream, &ok(b"")).await;
                }
            }
        }
    })
    .await;
    for (max_calls, max_calls_per_host, expected) in [(100, 3, 3), (2, 100, 2)] {
        most.store(0, Ordering::SeqCst);
        let performer = Performer::new(PerformerConfig {
            max_calls,
            max_calls_per_host,
            ..PerformerConfig::default()
        });
        let calls = (0..12).map(|_| perform(&performer, get(server.url("/"))));
        for response in join_all(calls).await {
            assert_eq!(status_of(&response), 200);
        }
        assert_eq!(most.load(Ordering::SeqCst), expected);
    }
}

#[tokio::test]
async fn a_call_that_never_got_its_turn_says_so() {
    let (server, mut events) = silent().await;
    let performer = Performer::new(PerformerConfig {
        max_calls_per_host: 1,
        ..PerformerConfig::default()
    });
    let holder = tokio::spawn({
        let (performer, request) = (performer.clone(), get(server.url("/")));
        async move { performer.perform(request, CancellationToken::new()).await }
    });
    assert_eq!(within(events.recv()).await, Some("received"));
    let mut request = get(server.url("/"));
    request.timeout_millis = 100;
    let response = perform(&performer, request).await;
    let (code, message) = failure_of(&response);
    assert_eq!(code, Code::Timeout);
    assert_eq!(
        message,
        format!(
            "{}: not sent within 100ms, too many calls are running",
            server.address
        )
    );
    holder.abort();
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_is_dialled() {
    let (server, _events) = silent().await;
    let url = server.url("/");
    type Change = fn(&mut kubezap_step_protocol::ExecuteRequest);
    let cases: [(Change, &str); 12] = [
        (|r| r.version = VERSION + 1, "protocol version"),
        (|r| r.version = 0, "protocol version 0"),
        (|r| r.execution_id.clear(), "an execution id has 1 to"),
        (
            |r| r.execution_id = "a".repeat(2000),
            "an execution id has 1 to",
        ),
        (|r| r.method = "CONNECT".into(), "the method"),
        (|r| r.method = "G ET".into(), "the method"),
        (|r| r.url = "/relative".into(), "the URL cannot be read"),
        (
            |r| r.url = "http://exa\tmple.com/".into(),
            "the URL holds a control character",
        ),
        (
            |r| r.headers = vec![header("bad name", "v", false)],
            "\"bad name\" is not a header name",
        ),
        (
            |r| r.headers = vec![header("X-Token", "s3cret\r\nX-Injected: 1", true)],
            "the value of header \"X-Token\"",
        ),
        (
            |r| r.allow = vec!["10.0.0.1/8".into()],
            "egress allow-list entry",
        ),
        (
            |r| r.ca_bundle = Some("nonsense".into()),
            "the CA bundle holds no certificate",
        ),
    ];
    for (change, text) in cases {
        let mut request = get(url.as_str());
        change(&mut request);
        let response = perform(&performer(), request).await;
        let (code, message) = failure_of(&response);
        assert_eq!(code, Code::InvalidRequest, "{message}");
        assert!(message.starts_with(text), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn no_message_holds_what_may_be_a_credential() {
    let (silent, _events) = silent().await;
    let garbage = Server::start(|mut stream| async move {
        receive(&mut stream).await;
        write(&mut stream, b"s3cret s3cret\r\n\r\n").await;
    })
    .await;
    let plain = Server::answering(|_| ok(b"s3cret")).await;
    let paths = "user-s3cret:s3cret@";
    for (host, scheme) in [
        (silent.address.to_string(), "http"),
        (garbage.address.to_string(), "http"),
        (plain.address.to_string(), "https"),
        (plain.address.to_string(), "http"),
        ("127.0.0.1:1".to_owned(), "http"),
        ("10.0.0.1".to_owned(), "http"),
        ("localhost".to_owned(), "http"),
        (plain.address.to_string(), "ftp"),
    ] {
        let mut request = get(format!("{scheme}://{paths}{host}/s3cret?s3cret=s3cret"));
        request.headers = vec![header("X-Key", "s3cret", true)];
        request.body = Some(b"s3cret".to_vec());
        request.timeout_millis = 500;
        request.limits = Limits {
            response_bytes: 1,
            header_bytes: 1000,
        };
        let response = perform(&performer(), request).await;
        let (_, message) = failure_of(&response);
        assert!(!message.contains("s3cret"), "{message}");
    }
}

#[tokio::test]
async fn calls_and_refusals_are_counted() {
    let server = Server::answering(|_| ok(b"")).await;
    let metrics = Metrics::new();
    let performer = Performer::new(PerformerConfig {
        metrics: metrics.clone(),
        ..PerformerConfig::default()
    });
    perform(&performer, get(server.url("/"))).await;
    perform(&performer, get("http://10.0.0.1/")).await;
    perform(&performer, get("http://intranet/")).await;
    let text = metrics.encode();
    for line in [
        "kubezap_executor_requests_total{code=\"ok\"} 1",
        "kubezap_executor_requests_total{code=\"egress_denied\"} 2",
        "kubezap_egress_denied_total{reason=\"private\"} 1",
        "kubezap_egress_denied_total{reason=\"name\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
