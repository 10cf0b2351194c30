//! Mocks as the executor meets them.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubezap_executor::{Interceptor as _, Performer, PerformerConfig};
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse, Header, Limits, VERSION};
use tokio_util::sync::CancellationToken;

use super::{MockError, Mocks, Shown};

fn mocks(yaml: &str) -> Mocks {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mocks.yaml");
    std::fs::write(&path, yaml).unwrap();
    Mocks::load(&path).unwrap()
}

fn error(yaml: &str) -> (Option<u64>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mocks.yaml");
    std::fs::write(&path, yaml).unwrap();
    let MockError {
        file,
        line,
        message,
    } = Mocks::load(&path).err().unwrap();
    assert_eq!(Path::new(&file), path);
    (line, message)
}

fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> ExecuteRequest {
    ExecuteRequest {
        version: VERSION,
        execution_id: url.to_owned(),
        method: method.to_owned(),
        url: url.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| Header {
                name: (*name).to_owned(),
                value: (*value).to_owned(),
                sensitive: *name == "Authorization",
            })
            .collect(),
        body: (!body.is_empty()).then(|| body.as_bytes().to_vec()),
        timeout_millis: 10_000,
        limits: Limits::default(),
        max_redirects: 0,
        allow: Vec::new(),
        ca_bundle: None,
        client_certificate: None,
        discard_body: false,
    }
}

async fn ask(mocks: &Mocks, request: &ExecuteRequest) -> Option<ExecuteResponse> {
    mocks.intercept(request).await
}

async fn get(mocks: &Mocks, url: &str) -> ExecuteResponse {
    ask(mocks, &request("GET", url, &[], "")).await.unwrap()
}

#[track_caller]
fn parts(response: ExecuteResponse) -> (u16, Vec<(String, String)>, String) {
    match response {
        ExecuteResponse::Response {
            status,
            headers,
            body,
        } => (status, headers, String::from_utf8(body).unwrap()),
        ExecuteResponse::Failed { .. } => panic!("{response:?}"),
    }
}

#[track_caller]
fn failure(response: ExecuteResponse) -> (Code, String) {
    match response {
        ExecuteResponse::Failed { code, message } => (code, message),
        ExecuteResponse::Response { .. } => panic!("{response:?}"),
    }
}

const PAYMENTS: &str = r#"
mocks:
- host: payments.example.com
  routes:
  - match: {method: POST, path: /v1/charges, headers: {Authorization: "Bearer *"}, json: {amount: 1200, card: {country: DE}}}
    respond: {status: 201, headers: {X-Id: "7"}, json: {id: ch_1, status: paid}, delay: 20ms}
  - match: {path: /orders/*/lines?page=*}
    respond: {body: lines}
  - match: {method: get, path: /flaky}
    sequence: [{status: 503}, {fault: reset}, {fault: malformed}, {status: 200, body: ok}]
  - match: {path: /echo}
    respond: {echo: true}
"#;

fn charge(body: &str) -> ExecuteRequest {
    request(
        "POST",
        "https://payments.example.com/v1/charges",
        &[("Authorization", "Bearer s3cret")],
        body,
    )
}

#[tokio::test]
async fn a_request_that_matches_is_answered() {
    let mocks = mocks(PAYMENTS);
    let body = r#"{"amount": 1200.0, "card": {"country": "DE", "brand": "v"}, "note": "more"}"#;
    let begin = tokio::time::Instant::now();
    let (status, headers, body) = parts(ask(&mocks, &charge(body)).await.unwrap());
    assert!(begin.elapsed() >= Duration::from_millis(20));
    assert_eq!(status, 201);
    assert_eq!(body, r#"{"id":"ch_1","status":"paid"}"#);
    assert_eq!(
        headers,
        [
            ("x-id".to_owned(), "7".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned())
        ]
    );
}

#[tokio::test]
async fn other_hosts_go_out_as_usual() {
    let mocks = mocks(PAYMENTS);
    for url in [
        "https://example.com/v1/charges",
        "https://api.payments.example.com/",
        "https://payments.example.com.evil.example/",
        "https://payments.example.com@example.com/",
        "nonsense",
    ] {
        assert_eq!(
            ask(&mocks, &request("GET", url, &[], "")).await,
            None,
            "{url}"
        );
    }
    for url in [
        "http://payments.example.com:8080/flaky",
        "https://PAYMENTS.example.com./flaky",
        "https://user:pw@payments.example.com/flaky",
    ] {
        assert!(
            ask(&mocks, &request("GET", url, &[], "")).await.is_some(),
            "{url}"
        );
    }
}

#[tokio::test]
async fn a_sequence_is_answered_in_turn_and_its_last_repeats() {
    let mocks = mocks(PAYMENTS);
    let url = "https://payments.example.com/flaky?x=1";
    assert_eq!(parts(get(&mocks, url).await).0, 503);
    assert_eq!(
        failure(get(&mocks, url).await),
        (
            Code::Connect,
            "payments.example.com: connection reset (mock)".to_owned()
        )
    );
    assert_eq!(
        failure(get(&mocks, url).await),
        (
            Code::Connect,
            "payments.example.com answered with something that is not HTTP (mock)".to_owned()
        )
    );
    for _ in 0..3 {
        assert_eq!(
            parts(get(&mocks, url).await),
            (200, vec![], "ok".to_owned())
        );
    }
}

#[tokio::test]
async fn a_path_may_have_wildcards_and_speak_of_the_query() {
    let mocks = mocks(PAYMENTS);
    let lines = "https://payments.example.com/orders/7/lines";
    assert_eq!(
        parts(get(&mocks, &format!("{lines}?page=2")).await).2,
        "lines"
    );
    for url in [lines.to_owned(), format!("{lines}?size=1")] {
        assert_eq!(
            failure(get(&mocks, &url).await).0,
            Code::MockUnmatched,
            "{url}"
        );
    }
}

#[tokio::test]
async fn an_echo_is_the_requests_own_body_and_content_type() {
    let mocks = mocks(PAYMENTS);
    let request = request(
        "PUT",
        "https://payments.example.com/echo",
        &[("content-Type", "text/csv")],
        "a,b",
    );
    let (status, headers, body) = parts(ask(&mocks, &request).await.unwrap());
    assert_eq!((status, body.as_str()), (200, "a,b"));
    assert_eq!(
        headers,
        [("content-type".to_owned(), "text/csv".to_owned())]
    );
}

#[tokio::test]
async fn without_a_route_the_closest_is_named_with_what_differs() {
    let mocks = mocks(PAYMENTS);
    let place = {
        let hosts = mocks.hosts();
        hosts[0].routes[0].place.clone()
    };
    assert!(place.ends_with("mocks.yaml:5"), "{place}");
    let closest = format!("the closest is POST /v1/charges ({place}): ");
    let good = r#"{"amount": 1200, "card": {"country": "DE"}}"#;
    let mut other_path = charge(good);
    other_path.url = "https://payments.example.com/v1/charge?token=s3cret".to_owned();
    let mut no_header = charge(good);
    no_header.headers.clear();
    let mut other_header = charge(good);
    other_header.headers[0].value = "Basic s3cret".to_owned();
    let mut other_method = charge(good);
    other_method.method = "PUT".to_owned();
    for (request, asked, difference) in [
        (
            other_path,
            "POST /v1/charge",
            "path is /v1/charge, not /v1/charges",
        ),
        (
            no_header,
            "POST /v1/charges",
            "header Authorization is missing",
        ),
        (
            other_header,
            "POST /v1/charges",
            "header Authorization is not \"Bearer *\"",
        ),
        (other_method, "PUT /v1/charges", "method is PUT, not POST"),
        (charge("s3cret"), "POST /v1/charges", "the body is not JSON"),
        (charge("{}"), "POST /v1/charges", "json.amount is missing"),
        (
            charge(r#"{"amount": 1200, "card": {"country": "s3cret"}}"#),
            "POST /v1/charges",
            "json.card.country is not \"DE\"",
        ),
        (
            charge(r#"{"amount": "1200", "card": {"country": "DE"}}"#),
            "POST /v1/charges",
            "json.amount is not 1200",
        ),
    ] {
        let (code, message) = failure(ask(&mocks, &request).await.unwrap());
        assert_eq!(code, Code::MockUnmatched);
        let asked = format!("payments.example.com is mocked without a route for {asked}; ");
        assert_eq!(message, format!("{asked}{closest}{difference}"));
        assert!(!message.contains("s3cret"));
    }
}

#[tokio::test]
async fn lists_match_element_by_element() {
    let mocks = mocks(
        "mocks:\n- host: a.example\n  routes:\n  - match: {json: {list: [1, {a: 1}]}}\n    respond: {}\n",
    );
    let post = |body: &str| request("POST", "https://a.example/", &[], body);
    let yes = ask(&mocks, &post(r#"{"list": [1, {"a": 1, "b": 2}]}"#)).await;
    assert_eq!(parts(yes.unwrap()).0, 200);
    for (body, text) in [
        (r#"{"list": [1]}"#, "json.list has 1 elements, not 2"),
        (r#"{"list": [1, {"a": 2}]}"#, "json.list[1].a is not 1"),
        (r#"{"list": {}}"#, "json.list is not [1,{\"a\":1}]"),
    ] {
        let (_, message) = failure(ask(&mocks, &post(body)).await.unwrap());
        assert!(message.ends_with(text), "{message}");
    }
}

#[tokio::test]
async fn a_port_in_a_host_narrows_it() {
    let mocks = mocks(
        "mocks:
- host: a.example
  routes: [{respond: {body: any}}]
- host: a.example:8443
  routes: [{respond: {body: one}}]
- host: '[::1]:80'
  routes: [{respond: {body: six}}]
",
    );
    for (url, body) in [
        ("https://a.example/", "any"),
        ("https://a.example:8443/", "one"),
        ("http://[::1]/", "six"),
    ] {
        assert_eq!(parts(get(&mocks, url).await).2, body, "{url}");
    }
    assert_eq!(mocks.names(), ["a.example:8443", "[::1]:80", "a.example"]);
}

fn performer(mocks: &Mocks) -> Performer {
    Performer::new(PerformerConfig {
        interceptor: Some(Arc::new(mocks.clone())),
        ..PerformerConfig::default()
    })
}

#[tokio::test]
async fn a_mocked_timeout_lasts_until_the_steps_time_is_up() {
    let mocks = mocks(
        "mocks:\n- host: slow.example\n  routes:\n  - sequence: [{fault: timeout}, {delay: 1h}]\n",
    );
    let performer = performer(&mocks);
    for id in ["1", "2"] {
        let mut request = request("GET", "https://slow.example/", &[], "");
        request.execution_id = id.to_owned();
        request.timeout_millis = 50;
        let response = performer.perform(request, CancellationToken::new()).await;
        assert_eq!(
            failure(response),
            (
                Code::Timeout,
                "slow.example: no answer within 50ms".to_owned()
            )
        );
    }
}

#[tokio::test]
async fn limits_and_the_guard_hold_for_mocks_as_for_targets() {
    let mocks = mocks(
        "mocks:
- host: localhost
  routes:
  - match: {path: /large}
    respond: {body: too large}
  - match: {path: /away}
    respond: {status: 302, headers: {Location: 'http://10.0.0.1/'}}
",
    );
    let performer = performer(&mocks);
    let mut large = request("GET", "http://localhost/large", &[], "");
    large.limits.response_bytes = 8;
    let response = performer.perform(large, CancellationToken::new()).await;
    assert_eq!(failure(response).0, Code::ResponseTooLarge);
    // A host that is mocked needs no allow-list; where it redirects to does.
    let mut away = request("GET", "http://localhost/away", &[], "");
    away.max_redirects = 1;
    let response = performer.perform(away, CancellationToken::new()).await;
    assert_eq!(failure(response).0, Code::EgressDenied);
}

#[tokio::test]
async fn every_exchange_can_be_shown_without_credentials() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&shown);
    let mocks = mocks(PAYMENTS).showing(move |exchange| {
        sink.lock().unwrap().push(exchange.clone());
    });
    let mut matched = charge(r#"{"amount": 1200, "card": {"country": "DE"}}"#);
    matched.url = "https://user:s3cret@payments.example.com/v1/charges".to_owned();
    ask(&mocks, &matched).await;
    get(&mocks, "https://payments.example.com/unknown").await;
    let shown = shown.lock().unwrap();
    assert!(!format!("{shown:?}").contains("s3cret"), "{shown:?}");
    assert_eq!(shown[0].url, "https://payments.example.com/v1/charges");
    assert_eq!(
        shown[0].headers,
        [("Authorization".to_owned(), "[REDACTED]".to_owned())]
    );
    assert!(matches!(
        shown[0].answer,
        Shown::Response { status: 201, .. }
    ));
    assert!(shown[0].route.as_ref().unwrap().ends_with("mocks.yaml:5"));
    assert_eq!(shown[1].route, None);
    assert!(matches!(&shown[1].answer, Shown::Failure(text) if text.contains("closest")));
}

#[tokio::test]
async fn a_changed_file_takes_over() {
    let held = mocks("mocks:\n- host: a.example\n  routes: [{respond: {body: old}}]\n");
    let newer = mocks("mocks:\n- host: a.example\n  routes: [{respond: {body: new}}]\n");
    let shared = held.clone();
    held.replace(&newer);
    assert_eq!(parts(get(&shared, "https://a.example/").await).2, "new");
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_line() {
    let host = |rest: &str| format!("mocks:\n- host: a.example\n  routes:\n{rest}");
    for (yaml, line, text) in [
        ("mock: []\n".to_owned(), 1, "unknown field `mock`"),
        (
            "mocks:\n- hosts: a\n".to_owned(),
            2,
            "unknown field `hosts`",
        ),
        (
            "mocks:\n- host: a.example\n".to_owned(),
            2,
            "missing field `routes`",
        ),
        (
            host("  - respond: {}\n    match:\n      url: /\n"),
            6,
            "unknown field `url`",
        ),
        (
            host("  - respond:\n      stauts: 200\n"),
            5,
            "unknown field `stauts`",
        ),
        (host("  - respond: {status: many}\n"), 4, "invalid"),
        (
            host("  - sequence: [{fault: crash}]\n"),
            4,
            "unknown variant",
        ),
        (
            host("  - match: {path: /}\n"),
            4,
            "the route has neither respond nor sequence",
        ),
        (
            host("  - respond: {}\n    sequence: [{}]\n"),
            4,
            "the route has both respond and sequence",
        ),
        (host("  - sequence: []\n"), 4, "sequence is empty"),
        (
            host("  - respond:\n      body: a\n      json: {}\n"),
            5,
            "body, json and echo exclude each other",
        ),
        (
            host("  - respond: {fault: reset, status: 200}\n"),
            4,
            "a fault has no status, headers or body",
        ),
        (
            host("  - respond: {}\n  - sequence:\n    - {}\n    - {status: 99}\n"),
            7,
            "status 99 is not one from 200 to 599",
        ),
        (host("  - respond: {delay: soon}\n"), 4, "delay \"soon\": "),
        (
            host("  - match:\n      path: charges\n    respond: {}\n"),
            5,
            "path \"charges\" does not begin with /",
        ),
        (
            host("  - respond: {headers: {'bad name': x}}\n"),
            4,
            "header \"bad name\" is not one that HTTP allows",
        ),
        (
            host("  - respond: {}\n- host: A.example.\n  routes: []\n"),
            5,
            "A.example. is mocked twice",
        ),
        (
            "mocks:\n- host: https://a.example\n  routes: []\n".to_owned(),
            2,
            "host \"https://a.example\" ",
        ),
        (
            "mocks:\n- host: '*.example'\n  routes: []\n".to_owned(),
            2,
            "host \"*.example\" is not",
        ),
        ("mocks: [\n".to_owned(), 1, "unclosed bracket"),
    ] {
        let (found, message) = error(&yaml);
        assert_eq!(found, Some(line), "{yaml}\n{message}");
        assert!(message.contains(text), "{yaml}\n{message}");
        assert!(
            !message.contains(" line "),
            "the line stands in front: {message}"
        );
    }
    let missing = Mocks::load(Path::new("/nowhere/mocks.yaml")).err().unwrap();
    assert_eq!(missing.line, None);
    assert!(
        missing
            .to_string()
            .starts_with("/nowhere/mocks.yaml: cannot be read: "),
        "{missing}"
    );
}
