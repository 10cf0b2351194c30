//! What manifests written for kubezap-operator rely on.

use std::sync::Arc;

use kubezap_engine::event::{Encoding, Event, Source};
use kubezap_engine::expression::{Condition, Reference, Scope, Target, Template};
use kubezap_engine::run::reason;

use crate::setup::{CallOf, header, key, rendered, rendered_in, scope, text};

fn plain(template: &str) -> String {
    Template::parse(template, Target::Text)
        .unwrap_or_else(|error| panic!("{template}: {error}"))
        .render_text(&scope())
        .unwrap_or_else(|error| panic!("{template}: {error}"))
}

#[test]
fn compatibility_content_of_the_form_root_segment_is_a_reference() {
    for (template, expected) in [
        ("$(trigger.body.items.0.sku)", "A1"),
        ("$(trigger.body.items[1].sku)", "B2"),
        ("$(trigger.body.first-name)", "Ada"),
        ("$(trigger.body.@id)", "7"),
        ("$(trigger.body.nested.a[1])", "x"),
        ("$(trigger.headers.x-github-event)", "push"),
        ("$(trigger.headers.Content-Type)", "application/json"),
        ("$(steps.charge-card.results.order-id)", "A-1"),
        ("$(steps.charge_card.results.order_id)", "A-1"),
        (
            "$(steps.charge-card.status)/$(steps.charge-card.attempts)",
            "Succeeded/2",
        ),
        ("$(params.p)|$(params.a-b)", "a/b c|hyphen"),
        (
            "$(run.namespace)/$(run.name)#$(run.uid)",
            "shop/orders-x1#uid-1",
        ),
        (
            "$(trigger.name) $(trigger.type) $(trigger.namespace)",
            "orders webhook shop",
        ),
        (
            "$(trigger.method) $(trigger.path) $(trigger.source)",
            "POST /hooks/orders webhook",
        ),
    ] {
        assert_eq!(plain(template), expected, "{template}");
    }
}

#[test]
fn compatibility_a_minus_in_cel_needs_spaces() {
    assert_eq!(plain("$(params.a-b)"), "hyphen");
    assert_eq!(plain("$(3 - 1)"), "2");
    assert_eq!(plain("$(trigger.bodyFields.total - 1.0)"), "4849");
}

#[test]
fn compatibility_an_unknown_root_stays_as_text_with_a_warning() {
    for text in [
        "$(date)",
        "$(env.HOME)",
        "a $(env.X) b $(whoami)",
        "$(raw(env.X))",
    ] {
        let template = Template::parse(text, Target::Text).unwrap();
        assert_eq!(template.render_text(&scope()).unwrap(), text);
        assert!(
            template.warnings()[0].contains("stays as it is written"),
            "{:?}",
            template.warnings()
        );
        assert_eq!(template.literal(), Some(text));
    }
}

#[test]
fn compatibility_there_is_no_double_dollar_escape_and_a_literal_is_a_cel_string() {
    assert_eq!(plain("$$(params.a-b)"), "$hyphen");
    assert_eq!(plain("$(\"$(\")params.p)"), "$(params.p)");
    assert_eq!(plain("costs $5 ($ (x))"), "costs $5 ($ (x))");
}

#[test]
fn compatibility_a_missing_reference_is_empty() {
    for reference in [
        "trigger.body.missing.deeper",
        "trigger.body.items.9",
        "trigger.headers.none",
        "trigger.topic",
        "steps.charge-card.results.none",
        "steps.other.results.x",
        "params.none",
    ] {
        assert_eq!(plain(&format!("<$({reference})>")), "<>", "{reference}");
    }
}

#[test]
fn compatibility_a_body_that_is_exactly_one_reference_is_sent_as_its_text() {
    let body = |template: &str| rendered(template, Target::Body).unwrap();
    assert_eq!(body("$(trigger.body)"), scope().event.body);
    assert_eq!(body("$(trigger.body.event)"), "order \"new\"");
    assert_eq!(body("$(trigger.body.nested)"), r#"{"b":1.5,"a":[1,"x"]}"#);
    assert_eq!(body("$(secrets.crm.token)"), "s3cr3t-\"token\"");
    assert_eq!(body("$(trigger.body.none)"), "");
    assert_eq!(body("$(trigger.body.event)\n"), "order \"new\"\n");
}

#[test]
fn compatibility_values_in_a_json_body_are_escaped_inside_and_typed_outside_strings() {
    let body = |template: &str| rendered(template, Target::Body).unwrap();
    for (template, expected) in [
        (
            r#"{"a": "$(trigger.body.event)"}"#,
            r#"{"a": "order \"new\""}"#,
        ),
        (
            r#"{"a": $(trigger.body.event)}"#,
            r#"{"a": "order \"new\""}"#,
        ),
        (r#"{"a": $(trigger.body.total)}"#, r#"{"a": 4850}"#),
        (
            r#"{"a": $(trigger.body.nested)}"#,
            r#"{"a": {"b":1.5,"a":[1,"x"]}}"#,
        ),
        (
            r#"{"a": "$(trigger.body.nested.a)"}"#,
            r#"{"a": "[1,\"x\"]"}"#,
        ),
        (r#"{"a": $(trigger.body.yes)}"#, r#"{"a": true}"#),
        (
            r#"{"a": $(steps.charge-card.results.json)}"#,
            r#"{"a": [1, 2]}"#,
        ),
        (
            r#"{"a": $(steps.charge-card.results.text)}"#,
            r#"{"a": "it's \"so\""}"#,
        ),
        (r#"{"a": $(steps.charge-card.attempts)}"#, r#"{"a": 2}"#),
        (r#"{"$(params.a-b)": 1}"#, r#"{"hyphen": 1}"#),
        (
            r#"{"a": "x\"$(trigger.body.event)\\"}"#,
            r#"{"a": "x\"order \"new\"\\"}"#,
        ),
        (
            r#"{"a": $(secrets.crm.token)}"#,
            r#"{"a": "s3cr3t-\"token\""}"#,
        ),
        (
            r#"{"a": "$(secrets.crm.lines)"}"#,
            r#"{"a": "two\r\nlines"}"#,
        ),
        (
            r#"[$(trigger.bodyFields.items.map(i, i.sku))]"#,
            r#"[["A1","B2"]]"#,
        ),
        (
            r#"{"a": $(trigger.body.missing), "b": "$(trigger.body.missing)"}"#,
            r#"{"a": "", "b": ""}"#,
        ),
        (r#"{"a": 1$(raw(params.more))}"#, r#"{"a": 1}"#),
    ] {
        assert_eq!(body(template), expected, "{template}");
    }
}

#[test]
fn compatibility_a_string_whose_whole_text_is_one_json_value_is_inserted_as_that() {
    let body = |template: &str| rendered(template, Target::Body).unwrap();
    assert_eq!(body(r#"{"a": $(trigger.body.json)}"#), r#"{"a": {"k": 1}}"#);
    assert_eq!(
        body(r#"{"a": "$(trigger.body.json)"}"#),
        r#"{"a": "{\"k\": 1}"}"#
    );
}

#[test]
fn compatibility_url_values_are_encoded_for_where_they_stand() {
    let url = |template: &str, value: &str| {
        let scope = Scope {
            params: Arc::new(crate::setup::params(&[("v", value)])),
            ..scope()
        };
        rendered_in(template, Target::Url, &scope)
    };
    for (template, value, expected) in [
        // In the path `/ : @` and the sub-delimiters stay, the rest is encoded.
        (
            "https://h/a/$(params.v)",
            "b/c:d@e!$&'()*+,;=f",
            "https://h/a/b/c:d@e!$&'()*+,;=f",
        ),
        (
            "https://h/a/$(params.v)",
            "x y?z#%\u{e4}\"<>",
            "https://h/a/x%20y%3Fz%23%25%C3%A4%22%3C%3E",
        ),
        ("https://h/$(params.v)/z", "x\\y", "https://h/x%5Cy/z"),
        (
            "https://h/?q=$(params.v)",
            "a&b=c/d e",
            "https://h/?q=a%26b%3Dc%2Fd%20e",
        ),
        ("https://h?q=$(params.v)", "/../", "https://h?q=%2F..%2F"),
        ("https://h/p#$(params.v)", "a#b", "https://h/p#a%23b"),
        (
            "https://$(params.v)/x",
            "h.example:8080",
            "https://h.example:8080/x",
        ),
        (
            "https://$(params.v)/x",
            "evil/@h?#",
            "https://evil%2F%40h%3F%23/x",
        ),
        ("$(params.v)/x", "https://h:1/a", "https://h:1/a/x"),
        ("https://h/$(raw(params.v))", "a?b=c", "https://h/a?b=c"),
        ("https://h/a.$(params.v)/x", "b", "https://h/a.b/x"),
        ("https://h/a/../$(params.v)", "b", "https://h/a/../b"),
        ("https://h/$(params.v)/..", "b", "https://h/b/.."),
    ] {
        assert_eq!(
            url(template, value),
            Ok(expected.to_owned()),
            "{template} {value}"
        );
    }
}

#[test]
fn compatibility_a_value_that_makes_a_dot_segment_fails_the_step() {
    for (template, value) in [
        ("https://h/a/$(params.v)/b", ".."),
        ("https://h/a/$(params.v)", "."),
        ("https://h/a/$(params.v)", "x/../../y"),
        ("https://h/a/.$(params.v)/b", "."),
        ("https://h/a/%2e$(params.v)?q", "."),
        ("https://h/a/$(params.v)#f", ".."),
    ] {
        let scope = Scope {
            params: Arc::new(crate::setup::params(&[("v", value)])),
            ..scope()
        };
        let error = rendered_in(template, Target::Url, &scope).unwrap_err();
        assert_eq!(error.reason, reason::INVALID_REQUEST, "{template}");
        assert!(error.message.contains("'.' or '..' segment"), "{error}");
    }
}

#[test]
fn compatibility_secrets_and_configmaps_are_inserted_in_a_url_as_written() {
    let url = |template: &str| rendered(template, Target::Url).unwrap();
    assert_eq!(
        url("$(secrets.crm.url)&id=$(params.p)"),
        "https://crm.example:8443/api?key=s3cr3t-key&id=a%2Fb%20c"
    );
    assert_eq!(
        url("https://$(configmaps.app.host.name)/x"),
        "https://crm.example/x"
    );
}

#[test]
fn compatibility_values_render_as_shortest_decimal_compact_json_and_nothing_for_null() {
    for (template, expected) in [
        ("$(trigger.body.total)", "4850"),
        ("$(trigger.bodyFields.total)", "4850"),
        ("$(trigger.body.big)", "9007199254740993"),
        ("$(trigger.body.nested)", r#"{"b":1.5,"a":[1,"x"]}"#),
        ("<$(trigger.body.none)>", "<>"),
        ("$(trigger.body.yes)", "true"),
        ("$(now())", "2026-01-02T03:04:05Z"),
        ("$(b'\\xff\\x00')", "/wA="),
    ] {
        assert_eq!(plain(template), expected, "{template}");
    }
    assert_eq!(
        rendered(
            r#"{"a": $(trigger.body.none), "b": "$(trigger.body.none)"}"#,
            Target::Body
        ),
        Ok(r#"{"a": null, "b": ""}"#.to_owned())
    );
}

#[test]
fn compatibility_binary_bodies_and_keys_are_their_base64_text() {
    let scope = Scope {
        event: Arc::new(Event {
            body: "/wA=".to_owned(),
            body_encoding: Encoding::Base64,
            key: "AAE=".to_owned(),
            key_encoding: "base64".to_owned(),
            ..Event::default()
        }),
        ..scope()
    };
    let template = "$(trigger.body) $(trigger.bodyEncoding) $(trigger.key) $(trigger.keyEncoding)";
    assert_eq!(
        Template::parse(template, Target::Text)
            .unwrap()
            .render_text(&scope),
        Ok("/wA= base64 AAE= base64".to_owned())
    );
}

#[test]
fn compatibility_json_is_tried_on_every_body_that_is_not_a_form() {
    let with = |content_type: &str, body: &str| Scope {
        event: Arc::new(Event {
            content_type: content_type.to_owned(),
            body: body.to_owned(),
            ..Event::default()
        }),
        ..scope()
    };
    let template = Template::parse("$(trigger.body.a)", Target::Text).unwrap();
    for content_type in ["", "text/plain", "application/octet-stream"] {
        let scope = with(content_type, r#"{"a": "b"}"#);
        assert_eq!(
            template.render_text(&scope),
            Ok("b".to_owned()),
            "{content_type}"
        );
    }
    let form = with("application/x-www-form-urlencoded", "a=b+c&d=%7B");
    assert_eq!(template.render_text(&form), Ok("b c".to_owned()));
    let condition = Condition::parse("trigger.bodyFields.d == '{'").unwrap();
    assert_eq!(condition.evaluate(&form), Ok(true));
}

#[test]
fn compatibility_secrets_in_a_transform_are_refused_when_read() {
    let error = Template::parse("x $(secrets.crm.token)", Target::Text).unwrap_err();
    assert!(
        error.message.contains("the secret crm cannot be used here"),
        "{error}"
    );
    for target in [Target::Text, Target::Body, Target::Url, Target::Header] {
        let error = Template::parse("$(secrets.crm.token + 'x')", target).unwrap_err();
        assert!(
            error.message.contains("cannot be read in a CEL expression"),
            "{error}"
        );
    }
}

#[test]
fn compatibility_sources_have_their_words() {
    let words: Vec<&str> = [
        Source::Webhook,
        Source::Cron,
        Source::Kafka,
        Source::KubernetesEvent,
        Source::Plugin,
        Source::Amqp,
        Source::Nats,
        Source::Manual,
    ]
    .map(Source::as_str)
    .into();
    assert_eq!(
        words,
        [
            "webhook",
            "cron",
            "kafka",
            "kubernetes-event",
            "plugin",
            "amqp",
            "nats",
            "manual"
        ]
    );
}

#[test]
fn compatibility_a_steps_own_idempotency_key_wins_and_an_empty_one_turns_it_off() {
    let key = |headers| {
        let call = CallOf {
            url: "https://h/",
            headers,
            body: None,
        };
        let request = call.render().unwrap();
        header(&request, "idempotency-key").map(str::to_owned)
    };
    assert_eq!(key(&[]).as_deref(), Some("uid-1/notify"));
    assert_eq!(
        key(&[("idempotency-key", "own-$(run.uid)")]).as_deref(),
        Some("own-uid-1")
    );
    assert_eq!(key(&[("Idempotency-Key", "")]), None);
}

#[test]
fn references_are_listed_sorted_and_once() {
    let template = Template::parse(
        "$(secrets.tls.tls.crt)$(trigger.body.a)$(trigger.body.a) $(size(params.p) > 1 ? steps.a.results.x : '')",
        Target::Body,
    )
    .unwrap();
    let mut expected = vec![
        Reference::Secret(key("tls", "tls.crt")),
        Reference::Trigger("body.a".to_owned()),
        Reference::Param("p".to_owned()),
        Reference::Step {
            step: "a".to_owned(),
            field: "results.x".to_owned(),
        },
    ];
    expected.sort();
    assert_eq!(template.references(), expected);
}

#[test]
fn templates_that_do_not_parse_say_where_and_why() {
    for (template, message) in [
        (
            "a $(trigger.body",
            "the '$(' at character 3 has no matching ')'",
        ),
        (
            "$(date +%s)",
            "$(date +%s): 'date +%s' is not a CEL expression",
        ),
        ("$(1 + x)", "unknown variable 'x'"),
        ("$(trigger.boddy)", "'trigger.boddy' does not exist"),
        ("$()", "$(): the expression is empty"),
        ("$(secrets.crm)", "write secrets.crm.KEY"),
        ("$(now(1))", "'now' takes 0 arguments, not 1"),
    ] {
        let error = Template::parse(template, Target::Text).expect_err(template);
        assert!(error.message.contains(message), "{template}: {error}");
    }
}

#[test]
fn an_expression_that_fails_names_its_hole() {
    let error = Template::parse("a $(1 / 0)", Target::Text)
        .unwrap()
        .render_text(&scope())
        .unwrap_err();
    assert_eq!(error.reason, reason::EVAL_ERROR);
    assert!(error.message.starts_with("$(1 / 0): "), "{error}");
}

#[test]
fn a_body_is_placed_as_its_content_type_and_text_say() {
    let body = |headers, body| {
        let call = CallOf {
            url: "https://h/",
            headers,
            body: Some(body),
        };
        text(call.render().unwrap().body.as_ref().unwrap()).to_owned()
    };
    let form: &[(&str, &str)] = &[("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(
        body(form, "a=$(params.p)&b=$(trigger.body.event)"),
        "a=a%2Fb%20c&b=order%20%22new%22"
    );
    let xml: &[(&str, &str)] = &[("content-type", "application/soap+xml; charset=utf-8")];
    assert_eq!(
        body(xml, "<a b='$(steps.charge-card.results.text)'/>"),
        "<a b='it&apos;s &quot;so&quot;'/>"
    );
    assert_eq!(
        body(&[], "<a>$(trigger.body.event)</a>"),
        "<a>order &quot;new&quot;</a>"
    );
    assert_eq!(
        body(&[], "event: $(trigger.body.event)"),
        "event: order \"new\""
    );
}

#[test]
fn what_begins_like_json_and_is_not_is_warned_about() {
    let template = Template::parse(r#"{"a": "$(params.p)",}"#, Target::Body).unwrap();
    assert!(template.warnings()[0].contains("begins like JSON and is not"));
    let template = Template::parse(r#"{"a": "$(params.p)"}"#, Target::Body).unwrap();
    assert!(template.warnings().is_empty());
}
