//! Where parameters get their values from.

use std::sync::Arc;

use kubezap_engine::event::{Encoding, Event};
use kubezap_engine::flow::{FlowDraft, Param};
use kubezap_engine::run::{RunPhase, RunSpec};

use crate::draft::{flow, param, transform};
use crate::world::World;

/// The value of the parameter `p`, or the run's reason and message when it failed.
fn value(declared: Param, change: impl FnOnce(&mut RunSpec)) -> Result<String, String> {
    let name = declared.name.clone();
    let draft = FlowDraft {
        params: vec![declared],
        ..flow([transform("t", &[("v", &format!("$(params.{name})"))])])
    };
    let mut world = World::with(draft, change);
    world.turn(&[]);
    let run = world.run();
    match run.phase {
        RunPhase::Succeeded => Ok(world.result("t", "v").unwrap().to_owned()),
        _ => Err(format!("{}: {}", run.reason, run.message)),
    }
}

fn body(body: &'static str) -> impl FnOnce(&mut RunSpec) {
    move |spec| {
        spec.event = Arc::new(Event {
            body: body.to_owned(),
            ..Event::default()
        });
    }
}

fn given(spec: &mut RunSpec, text: &str) {
    spec.params.insert("p".to_owned(), text.to_owned());
}

#[test]
fn the_runs_value_comes_first_then_the_body_then_the_default_then_nothing() {
    let p = |default| param("p", false, default);
    let both = |spec: &mut RunSpec| {
        body(r#"{"p": "body"}"#)(spec);
        given(spec, "run");
    };
    assert_eq!(value(p(Some("default")), both), Ok("run".to_owned()));
    assert_eq!(
        value(p(Some("default")), body(r#"{"p": "body"}"#)),
        Ok("body".to_owned())
    );
    assert_eq!(
        value(p(Some("default")), body(r#"{"q": 1}"#)),
        Ok("default".to_owned())
    );
    assert_eq!(value(p(None), body("{}")), Ok(String::new()));
}

#[test]
fn a_required_parameter_without_a_value_fails_the_run() {
    assert_eq!(
        value(param("p", true, None), body("{}")),
        Err(
            "ParamMissing: parameter p: is required, and neither the run's params nor the event's body give it a value"
                .to_owned()
        )
    );
    assert_eq!(
        value(param("p", true, Some("default")), body("{}")),
        Ok("default".to_owned())
    );
    assert_eq!(
        value(param("p", true, None), body(r#"{"p": ""}"#)),
        Ok(String::new())
    );
}

#[test]
fn a_body_field_is_taken_as_its_text_and_null_is_nothing() {
    for (body_text, expected) in [
        (r#"{"p": 4850.00}"#, "4850"),
        (r#"{"p": true}"#, "true"),
        (r#"{"p": {"a": [1, null]}}"#, r#"{"a":[1,null]}"#),
        (r#"{"p": null}"#, "default"),
        (r#"[{"p": "x"}]"#, "default"),
        (r#"{"p": "$(run.name) $(1 + 1)"}"#, "$(run.name) $(1 + 1)"),
    ] {
        assert_eq!(
            value(param("p", false, Some("default")), body(body_text)),
            Ok(expected.to_owned()),
            "{body_text}"
        );
    }
    let form = |spec: &mut RunSpec| {
        spec.event = Arc::new(Event {
            body: "p=J%C3%BCrgen".to_owned(),
            content_type: "application/x-www-form-urlencoded".to_owned(),
            ..Event::default()
        });
    };
    assert_eq!(
        value(param("p", false, None), form),
        Ok("J\u{fc}rgen".to_owned())
    );
    let binary = |spec: &mut RunSpec| {
        spec.event = Arc::new(Event {
            body: "eyJwIjogMX0=".to_owned(),
            body_encoding: Encoding::Base64,
            ..Event::default()
        });
    };
    assert_eq!(value(param("p", false, None), binary), Ok(String::new()));
}

#[test]
fn only_top_level_fields_of_the_body_count() {
    assert_eq!(
        value(
            param("a.b", false, Some("default")),
            body(r#"{"a": {"b": 1}}"#)
        ),
        Ok("default".to_owned())
    );
    assert_eq!(
        value(param("a.b", false, None), body(r#"{"a.b": 1}"#)),
        Ok("1".to_owned())
    );
}

#[test]
fn what_a_person_wrote_is_a_template() {
    let manual = |text: &'static str| {
        move |spec: &mut RunSpec| {
            spec.trigger = None;
            given(spec, text);
        }
    };
    let p = || param("p", false, None);
    assert_eq!(
        value(p(), manual("$(run.name)/$(1 + 1)")),
        Ok("shop-1/2".to_owned())
    );
    assert_eq!(
        value(p(), manual("$(date)")),
        Ok("$(date)".to_owned()),
        "an unknown root stays text"
    );
    for (text, error) in [
        (
            "$(params.p)",
            "EvalError: parameter p: may refer to trigger and run only",
        ),
        (
            "$(steps.t.results.v)",
            "EvalError: parameter p: may refer to trigger and run only",
        ),
    ] {
        assert_eq!(value(p(), manual(text)), Err(error.to_owned()), "{text}");
    }
    let secret = value(p(), manual("$(secrets.crm.token)")).unwrap_err();
    assert!(
        secret.contains("the secret crm cannot be used here"),
        "{secret}"
    );
    let unclosed = value(p(), manual("$(run.name")).unwrap_err();
    assert!(
        unclosed.starts_with("EvalError: parameter p: "),
        "{unclosed}"
    );
}

#[test]
fn compatibility_what_an_event_brought_is_literal() {
    assert_eq!(
        value(param("p", false, None), |spec| given(
            spec,
            "$(secrets.crm.token)"
        )),
        Ok("$(secrets.crm.token)".to_owned())
    );
}

#[test]
fn compatibility_defaults_are_literal_and_undeclared_parameters_are_ignored() {
    assert_eq!(
        value(param("p", false, Some("$(run.name)")), |spec| {
            spec.params.insert("other".to_owned(), "$(".to_owned());
        }),
        Ok("$(run.name)".to_owned())
    );
}

#[test]
fn a_run_without_a_value_for_a_parameter_reaches_no_step() {
    let draft = FlowDraft {
        params: vec![param("p", true, None)],
        ..flow([crate::draft::http("a")])
    };
    let mut world = World::new(draft);
    world.turn(&[]);
    world.assert(
        "0s Failed ParamMissing: parameter p: is required, and neither the run's params nor the event's body give it a value
        a Skipped NotReached",
    );
}
