//! A scope with something of everything in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubezap_engine::effect::{Call, KeyRef, References};
use kubezap_engine::event::{Event, Source};
use kubezap_engine::expression::{EvalError, Scope, StepView, Target, Template};
use kubezap_engine::flow::{HttpAction, StepName};
use kubezap_engine::render::{Request, render};
use kubezap_engine::secret::{Credentials, Secret};

/// A body with every JSON type in it.
pub(crate) const BODY: &str = r#"{
  "event": "order \"new\"", "total": 4850.00, "big": 9007199254740993, "none": null, "yes": true, "empty": "",
  "items": [{"sku": "A1", "qty": 2}, {"sku": "B2"}], "nested": {"b": 1.50, "a": [1, "x"]}, "json": "{\"k\": 1}",
  "first-name": "Ada", "@id": "7", "evil": "$(secrets.crm.token) $(params.p) $(1 + 1)"
}"#;

pub(crate) fn scope() -> Scope {
    let results = [
        ("id", "pay_1"),
        ("order-id", "A-1"),
        ("status", "201"),
        ("json", "[1, 2]"),
        ("text", "it's \"so\""),
    ];
    let step = StepView {
        status: "Succeeded".to_owned(),
        message: "done".to_owned(),
        attempts: 2,
        results: results
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    Scope {
        event: Arc::new(Event {
            source: Source::Webhook,
            method: "POST".to_owned(),
            path: "/hooks/orders".to_owned(),
            headers: [
                ("Content-Type".to_owned(), "application/json".to_owned()),
                ("X-Github-Event".to_owned(), "push".to_owned()),
            ]
            .into(),
            body: BODY.to_owned(),
            content_type: "application/json".to_owned(),
            ..Event::default()
        }),
        trigger_name: "orders".to_owned(),
        trigger_type: "webhook".to_owned(),
        run_name: "orders-x1".to_owned(),
        run_namespace: "shop".to_owned(),
        run_uid: "uid-1".to_owned(),
        params: Arc::new(params(&[("p", "a/b c"), ("a-b", "hyphen")])),
        steps: Arc::new([(StepName::parse("charge-card").unwrap(), Arc::new(step))].into()),
        now: "2026-01-02T03:04:05Z".parse().unwrap(),
        ..Scope::default()
    }
}

pub(crate) fn params(params: &[(&str, &str)]) -> BTreeMap<String, String> {
    params
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

pub(crate) fn key(name: &str, key: &str) -> KeyRef {
    KeyRef {
        name: name.to_owned(),
        key: key.to_owned(),
    }
}

pub(crate) fn credentials() -> Credentials {
    let secret = |value: &str| Secret::new(value.as_bytes().to_vec());
    Credentials {
        secrets: [
            (key("crm", "token"), secret("s3cr3t-\"token\"")),
            (
                key("crm", "url"),
                secret("https://crm.example:8443/api?key=s3cr3t-key"),
            ),
            (key("crm", "lines"), secret("two\r\nlines")),
            (key("tls", "tls.crt"), secret("certificate")),
        ]
        .into(),
        configmaps: [(key("app", "host.name"), "crm.example".to_owned())].into(),
    }
}

/// Renders a template for a target.
pub(crate) fn rendered(text: &str, target: Target) -> Result<String, EvalError> {
    rendered_in(text, target, &scope())
}

pub(crate) fn rendered_in(text: &str, target: Target, scope: &Scope) -> Result<String, EvalError> {
    let template = Template::parse(text, target).unwrap_or_else(|error| panic!("{text}: {error}"));
    let rendered = template.render(scope, &credentials())?;
    Ok(String::from_utf8(rendered.expose().to_vec()).unwrap())
}

/// An http step's call.
pub(crate) struct CallOf<'t> {
    pub(crate) url: &'t str,
    pub(crate) headers: &'t [(&'t str, &'t str)],
    pub(crate) body: Option<&'t str>,
}

impl CallOf<'_> {
    pub(crate) fn render(&self) -> Result<Request, EvalError> {
        self.render_in(scope())
    }

    pub(crate) fn render_in(&self, scope: Scope) -> Result<Request, EvalError> {
        let template = |text: &str, target| Template::parse(text, target).unwrap();
        let action = HttpAction {
            url: template(self.url, Target::Url),
            method: "post".to_owned(),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), template(value, Target::Header)))
                .collect(),
            body: self.body.map(|body| template(body, Target::Body)),
            timeout: Duration::from_secs(1),
            result_mappings: Vec::new(),
        };
        let call = Call {
            step: 0,
            attempt: 1,
            execution_id: "x-1".to_owned(),
            idempotency_key: "uid-1/notify".to_owned(),
            timeout: Duration::from_secs(1),
            action: Arc::new(action),
            scope,
            references: References::default(),
        };
        render(&call, &credentials())
    }
}

pub(crate) fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))
        .map(|header| std::str::from_utf8(header.value.expose()).unwrap())
}

pub(crate) fn text(secret: &Secret) -> &str {
    std::str::from_utf8(secret.expose()).unwrap()
}
