//! Which texts are references.

use super::*;

fn reference(text: &str) -> Reference {
    match parse(text) {
        Some(Ok(Parsed::Reference(reference))) => reference,
        other => panic!("{text}: {other:?}"),
    }
}

fn step(step: &str, field: &str) -> Reference {
    Reference::Step {
        step: step.to_owned(),
        field: field.to_owned(),
    }
}

#[test]
fn segments_hold_letters_digits_hyphen_underscore_at_and_index() {
    assert_eq!(
        reference("trigger.body.items[0].@id"),
        Reference::Trigger("body.items[0].@id".to_owned())
    );
    assert_eq!(
        reference("steps.charge-card.results.payment_id"),
        step("charge-card", "results.payment_id")
    );
    for text in [
        "trigger.body.a b",
        "trigger.body.",
        "trigger..body",
        "trigger.body.a[x]",
        "trigger.body.a[]",
        "trigger.body.a()",
        "a - b",
        "1.5",
        "",
        "-a",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn a_secrets_name_ends_at_the_first_dot() {
    assert_eq!(
        reference("secrets.tls-pair.tls.crt"),
        Reference::Secret(KeyRef {
            name: "tls-pair".to_owned(),
            key: "tls.crt".to_owned(),
        })
    );
}

#[test]
fn unknown_roots_are_told_from_known_ones() {
    for text in ["date", "env.HOME", "item.x", "triggers.body"] {
        assert_eq!(parse(text), Some(Ok(Parsed::UnknownRoot)), "{text}");
    }
    for text in [
        "true",
        "null",
        "trigger",
        "params",
        "trigger.headers",
        "trigger.bodyFields",
    ] {
        assert_eq!(parse(text), Some(Ok(Parsed::Cel)), "{text}");
    }
}

#[test]
fn a_field_that_cannot_exist_is_refused_with_what_does() {
    for (text, message) in [
        (
            "trigger.boddy",
            "'trigger.boddy' does not exist: trigger has headers, bodyFields, body",
        ),
        (
            "trigger.method.x",
            "trigger.method is text and has no fields",
        ),
        (
            "steps.a",
            "'steps.a' needs a field: results.NAME, status, message or attempts",
        ),
        ("steps.a.results", "write steps.a.results.NAME"),
        (
            "steps.a.result.x",
            "a step has results.NAME, status, message and attempts",
        ),
        ("steps.a.outputs.x", "use steps.a.results"),
        ("run.id", "run has name, namespace, uid"),
        ("secrets.a", "write secrets.a.KEY"),
        ("configmaps", "write configmaps.NAME.KEY"),
    ] {
        match parse(text) {
            Some(Err(error)) => assert!(error.message.contains(message), "{text}: {error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
