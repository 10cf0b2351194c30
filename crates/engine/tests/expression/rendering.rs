//! A call becomes a request.

use kubezap_engine::run::reason;

use crate::setup::{CallOf, credentials, header, scope, text};

#[test]
fn a_request_has_method_url_headers_and_body() {
    let request = CallOf {
        url: "https://h/$(params.a-b)",
        headers: &[
            ("Authorization", "Bearer $(secrets.crm.token)"),
            ("X-Order", "$(steps.charge-card.results.id)"),
        ],
        body: Some(r#"{"event": "$(trigger.body.event)"}"#),
    }
    .render()
    .unwrap();
    assert_eq!(request.method, "POST");
    assert_eq!(text(&request.url), "https://h/hyphen");
    assert_eq!(
        header(&request, "authorization"),
        Some("Bearer s3cr3t-\"token\"")
    );
    assert_eq!(header(&request, "X-Order"), Some("pay_1"));
    assert_eq!(header(&request, "Idempotency-Key"), Some("uid-1/notify"));
    assert_eq!(header(&request, "Content-Type"), Some("application/json"));
    assert_eq!(
        text(request.body.as_ref().unwrap()),
        r#"{"event": "order \"new\""}"#
    );
    let sensitive: Vec<&str> = request
        .headers
        .iter()
        .filter(|header| header.sensitive)
        .map(|header| header.name.as_str())
        .collect();
    assert_eq!(sensitive, ["Authorization"]);
    assert!(!format!("{request:?}").contains("s3cr3t"), "{request:?}");
}

#[test]
fn a_json_body_gets_a_content_type_unless_the_step_sets_one() {
    let content_type = |headers, body| {
        let call = CallOf {
            url: "https://h/",
            headers,
            body,
        };
        header(&call.render().unwrap(), "content-type").map(str::to_owned)
    };
    assert_eq!(
        content_type(&[], Some("[1]")).as_deref(),
        Some("application/json")
    );
    assert_eq!(
        content_type(&[], Some("$(trigger.body)")).as_deref(),
        Some("application/json")
    );
    assert_eq!(content_type(&[], Some("plain")), None);
    assert_eq!(content_type(&[], Some("1")), None);
    assert_eq!(content_type(&[], None), None);
    assert_eq!(
        content_type(&[("content-type", "text/plain")], Some("{}")).as_deref(),
        Some("text/plain")
    );
}

#[test]
fn a_header_value_with_a_line_break_or_nul_fails_the_step() {
    for value in [
        "$(secrets.crm.lines)",
        "$('a\\nb')",
        "$('a\\rb')",
        "$('a\\x00b')",
    ] {
        let error = CallOf {
            url: "https://h/",
            headers: &[("X-A", value)],
            body: None,
        }
        .render()
        .unwrap_err();
        assert_eq!(error.reason, reason::INVALID_REQUEST, "{value}");
        assert!(error.message.starts_with("header X-A: "), "{error}");
        assert!(!error.message.contains("lines"), "{error}");
    }
}

#[test]
fn a_url_that_is_not_absolute_http_is_an_invalid_request() {
    for (url, message) in [
        ("/relative", "must be an absolute url"),
        ("ftp://h/", "must be an absolute url"),
        ("$(params.none)", "must be an absolute url"),
        ("https:///x", "has no host"),
        ("https://$(params.none)/x", "has no host"),
        ("https://:80/x", "has no host"),
        ("https://h/a b", "contains a space"),
        ("https://h/a\nb", "contains a line break"),
        ("https://h/$(raw(trigger.body))", "contains a"),
        ("$(secrets.crm.token)", "must be an absolute url"),
    ] {
        let error = CallOf {
            url,
            headers: &[],
            body: None,
        }
        .render()
        .unwrap_err();
        assert_eq!(error.reason, reason::INVALID_REQUEST, "{url}");
        assert!(error.message.starts_with("url: "), "{url}: {error}");
        assert!(error.message.contains(message), "{url}: {error}");
        assert!(!error.message.contains("s3cr3t"), "{error}");
    }
    for url in ["http://h", "HTTPS://h:1/x?y#z", "https://[::1]/"] {
        let call = CallOf {
            url,
            headers: &[],
            body: None,
        };
        assert_eq!(text(&call.render().unwrap().url), url);
    }
}

#[test]
fn a_missing_secret_fails_with_its_name() {
    let error = CallOf {
        url: "https://h/",
        headers: &[("Authorization", "Bearer $(secrets.other.token)")],
        body: None,
    }
    .render()
    .unwrap_err();
    assert_eq!(error.reason, reason::REFERENCE_NOT_FOUND);
    assert!(
        error.message.contains("secret other has no key token"),
        "{error}"
    );
}

#[test]
fn what_comes_back_is_masked() {
    let request = CallOf {
        url: "$(secrets.crm.url)",
        headers: &[],
        body: None,
    }
    .render()
    .unwrap();
    let redactor = request.redactor(&credentials());
    assert_eq!(
        redactor.mask(r#"{"echo": "https:\/\/crm.example:8443\/api?key=s3cr3t-key", "token": "s3cr3t-\"token\""}"#),
        r#"{"echo": "***", "token": "***"}"#
    );
}

#[test]
fn a_value_is_never_expanded_again() {
    let evil = "$(secrets.crm.token) $(params.p) $(1 + 1)";
    let request = CallOf {
        url: "https://h/?q=$(trigger.body.evil)",
        headers: &[("X-Evil", "$(trigger.body.evil)")],
        body: Some(r#"{"a": "$(trigger.body.evil)"}"#),
    }
    .render_in(scope())
    .unwrap();
    assert_eq!(header(&request, "X-Evil"), Some(evil));
    assert_eq!(
        text(request.body.as_ref().unwrap()),
        format!(r#"{{"a": "{evil}"}}"#)
    );
    assert!(!text(&request.url).contains("s3cr3t"));
}
