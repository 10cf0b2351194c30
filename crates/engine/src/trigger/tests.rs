use super::*;

const ID: &str = "019aeb3c-6d2f-7c5e-9b1a-2f4d8e6a0c13";

fn trigger(name: &str) -> Trigger {
    Trigger {
        name: name.into(),
        namespace: "shop".into(),
        uid: "6f1c".into(),
        kind: "webhook".into(),
        flow: Some("my-flow".into()),
    }
}

fn event(body: &str) -> Event {
    Event {
        source: Source::Webhook,
        body: body.into(),
        ..Event::default()
    }
}

fn is_host_label(name: &str) -> bool {
    name.len() <= 63
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[test]
fn short_name_is_trigger_and_id() {
    let run = trigger("my-webhook").admit(event("{}"), "0abc");
    assert_eq!(run.name, "my-webhook-0abc");
}

#[test]
fn every_name_is_a_host_label() {
    for name in [
        "a",
        "a.b",
        &"x".repeat(253),
        &format!("{}.y", "q-".repeat(40)),
    ] {
        for id in [
            ID,
            "1",
            "",
            "UPPER",
            "-",
            "ends-",
            "pünkt",
            &"7".repeat(300),
        ] {
            let run = trigger(name).admit(event(""), id).name;
            assert!(is_host_label(&run), "{name} {id} gives {run}");
        }
    }
}

#[test]
fn shortened_names_of_two_triggers_differ() {
    let long = "x".repeat(60);
    let one = trigger(&format!("{long}a")).admit(event(""), ID).name;
    let other = trigger(&format!("{long}b")).admit(event(""), ID).name;
    assert_ne!(one, other);
    assert!(one.ends_with(ID));
    assert_ne!(
        trigger("a.b").admit(event(""), "1").name,
        trigger("a-b").admit(event(""), "1").name
    );
}

#[test]
fn shortened_name_depends_on_the_uid() {
    let mut other = trigger(&"x".repeat(60));
    other.uid = "77aa".into();
    assert_ne!(
        trigger(&"x".repeat(60)).admit(event(""), ID).name,
        other.admit(event(""), ID).name
    );
}

#[test]
fn labels_name_trigger_type_flow_and_slot() {
    let run = trigger("my-webhook").admit(event(""), ID);
    let labels: Vec<_> = run.labels.iter().map(|(k, v)| (&**k, &**v)).collect();
    let slot = slot_of("shop", "my-webhook").to_string();
    assert_eq!(
        labels,
        [
            ("kubezap.io/flow", "my-flow"),
            ("kubezap.io/slot", &*slot),
            ("kubezap.io/trigger", "my-webhook"),
            ("kubezap.io/trigger-type", "webhook"),
        ]
    );
}

#[test]
fn action_has_no_flow_label() {
    let mut trigger = trigger("t");
    trigger.flow = None;
    assert!(!trigger.admit(event(""), ID).labels.contains_key(LABEL_FLOW));
}

#[test]
fn long_label_values_are_shortened_and_stay_apart() {
    let long = "f".repeat(100);
    assert_eq!(label_value(&long).len(), 63);
    assert_ne!(label_value(&long), label_value(&"f".repeat(101)));
    assert_eq!(label_value("f"), "f");
    assert_eq!(label_value(&"f".repeat(63)), "f".repeat(63));
}

#[test]
fn event_hash_ignores_headers_and_sees_the_rest() {
    let hash =
        |event: Event| trigger("t").admit(event, "1").annotations[ANNOTATION_EVENT_HASH].clone();
    let mut with_header = event("a");
    with_header.headers.insert("X-Try".into(), "2".into());
    assert_eq!(hash(event("a")), hash(with_header));
    assert_ne!(hash(event("a")), hash(event("b")));
    let mut at = event("a");
    at.offset = "1".into();
    assert_ne!(hash(event("a")), hash(at));
    let (mut left, mut right) = (event("a"), event("a"));
    left.topic = "ab".into();
    right.topic = "a".into();
    right.partition = "b".into();
    assert_ne!(hash(left), hash(right), "fields do not run into each other");
}

#[test]
fn redelivered_event_is_the_same_run_and_another_gets_the_next_name() {
    let first = trigger("t").admit(event("a"), "p0-7");
    let again = trigger("t").admit(event("a"), "p0-7");
    let other = trigger("t").admit(event("b"), "p0-7");
    let stored = first
        .annotations
        .get(ANNOTATION_EVENT_HASH)
        .map(String::as_str);
    assert_eq!(again.name, first.name);
    assert_eq!(resolve_existing(&again, stored, 2), Existing::Same);
    assert_eq!(
        resolve_existing(&other, stored, 2),
        Existing::Next("t-p0-7-2".into())
    );
    assert_eq!(
        resolve_existing(&other, None, 3),
        Existing::Next("t-p0-7-3".into())
    );
}

#[test]
fn next_name_of_a_long_name_still_fits() {
    let run = trigger(&"x".repeat(200)).admit(event("a"), ID);
    assert_eq!(run.name.len(), 63);
    let Existing::Next(second) = resolve_existing(&run, None, 2) else {
        panic!("no hash is not the same event");
    };
    let Existing::Next(tenth) = resolve_existing(&run, None, 10) else {
        panic!("no hash is not the same event");
    };
    assert!(is_host_label(&second) && is_host_label(&tenth));
    assert!(second.ends_with("-2") && tenth.ends_with("-10") && second != tenth);
}

#[test]
fn credentials_in_headers_are_redacted() {
    let mut raw = event("{\"card\":1}");
    for name in [
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Set-Cookie",
        "X-Api-Key",
        "X-Auth-Token",
        "X-Webhook-Secret",
        "X-Hub-Signature",
        "X-Hub-Signature-256",
        "X-Amz-Security-Token",
        "X-Own",
        "Content-Type",
    ] {
        raw.headers.insert(name.into(), "v".into());
    }
    let kept = redact(raw.clone(), &["x-OWN"], false);
    let shown: Vec<_> = kept
        .headers
        .iter()
        .filter(|(_, value)| *value != REDACTED)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(shown, ["Content-Type"]);
    assert_eq!(kept.body, raw.body);
}

#[test]
fn redacted_body_is_the_marker_in_text() {
    let mut raw = event("AAEC");
    raw.body_encoding = Encoding::Base64;
    let kept = redact::<&str>(raw, &[], true);
    assert_eq!(
        (kept.body.as_str(), kept.body_encoding),
        ("[REDACTED]", Encoding::Utf8)
    );
}
