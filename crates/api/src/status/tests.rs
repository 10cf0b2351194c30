use jiff::Timestamp;
use kubezap_engine::flow::StepName;
use kubezap_engine::run::{self, Run, RunPhase, StepPhase, StepState};
use proptest::prelude::*;

use super::{from_status, report, to_status};
use crate::conditions::find;
use crate::flow_run::{FlowRun, FlowRunSpec, FlowRunStatus};
use crate::lower::flow_run_degraded;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A run with something in every field.
fn full() -> Run {
    Run {
        phase: RunPhase::Failed,
        reason: run::reason::STEP_FAILED.to_owned(),
        message: "step pay: connect: refused".to_owned(),
        start_time: Some(at("2026-12-01T10:00:00.000001Z")),
        completion_time: Some(at("2026-12-01T10:00:03.250002Z")),
        revision: Some("orders-0123456789".to_owned()),
        steps: vec![
            StepState {
                name: StepName::parse("pay").unwrap(),
                phase: StepPhase::Failed,
                start_time: Some(at("2026-12-01T10:00:00.000001Z")),
                completion_time: Some(at("2026-12-01T10:00:03.25Z")),
                attempts: 3,
                message: "connect: refused".to_owned(),
                reason: run::reason::CONNECT.to_owned(),
                results: vec![run::StepResult {
                    name: "id".to_owned(),
                    value: "{\"a\": \"ü\"}".to_owned(),
                }],
                resume_after: Some(at("2026-12-01T10:00:02.999999Z")),
                execution_id: Some("uid/pay/3/abc".to_owned()),
            },
            StepState {
                name: StepName::parse("tell").unwrap(),
                phase: StepPhase::Skipped,
                reason: run::reason::NOT_REACHED.to_owned(),
                ..StepState::default()
            },
        ],
    }
}

fn stored(status: &FlowRunStatus) -> FlowRunStatus {
    serde_json::from_str(&serde_json::to_string(status).unwrap()).unwrap()
}

#[test]
fn a_run_survives_the_store_with_its_microseconds() {
    let status = to_status(&full(), Some(7), at("2026-12-01T09:59:59Z"));
    assert_eq!(stored(&status), status);
    assert_eq!(from_status(&stored(&status)), full());
}

#[test]
fn a_status_reads_as_people_expect() {
    let status = to_status(&full(), Some(7), at("2026-12-01T09:59:59Z"));
    let value = serde_json::to_value(&status).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "observedGeneration": 7,
            "phase": "Failed",
            "startTime": "2026-12-01T10:00:00.000001Z",
            "completionTime": "2026-12-01T10:00:03.250002Z",
            "durationMillis": 3250,
            "duration": "3.2s",
            "message": "step pay: connect: refused",
            "flowRevision": "orders-0123456789",
            "steps": [
                {
                    "name": "pay",
                    "phase": "Failed",
                    "startTime": "2026-12-01T10:00:00.000001Z",
                    "completionTime": "2026-12-01T10:00:03.250000Z",
                    "durationMillis": 3249,
                    "attempts": 3,
                    "message": "connect: refused",
                    "reason": "Connect",
                    "results": [{"name": "id", "value": "{\"a\": \"ü\"}"}],
                    "resumeAfter": "2026-12-01T10:00:02.999999Z",
                    "executionID": "uid/pay/3/abc",
                },
                {"name": "tell", "phase": "Skipped", "reason": "NotReached"},
            ],
            "conditions": [
                {
                    "type": "Succeeded",
                    "status": "False",
                    "reason": "StepFailed",
                    "message": "step pay: connect: refused",
                    "observedGeneration": 7,
                    "lastTransitionTime": "2026-12-01T10:00:03Z",
                },
                {
                    "type": "Running",
                    "status": "False",
                    "reason": "StepFailed",
                    "message": "",
                    "observedGeneration": 7,
                    "lastTransitionTime": "2026-12-01T10:00:03Z",
                },
            ],
        })
    );
}

#[test]
fn conditions_follow_the_phase() {
    let created = at("2026-12-01T10:00:00Z");
    let start = at("2026-12-01T10:00:01Z");
    let end = at("2026-12-01T10:00:02Z");
    for (phase, start, end, succeeded, running, reason) in [
        (
            RunPhase::Pending,
            None,
            None,
            ("Unknown", created),
            ("False", created),
            "Pending",
        ),
        (
            RunPhase::Running,
            Some(start),
            None,
            ("Unknown", created),
            ("True", start),
            "Running",
        ),
        (
            RunPhase::Succeeded,
            Some(start),
            Some(end),
            ("True", end),
            ("False", end),
            "Unspecified",
        ),
        (
            RunPhase::Failed,
            None,
            Some(end),
            ("False", end),
            ("False", end),
            "Unspecified",
        ),
        (
            RunPhase::Cancelled,
            None,
            None,
            ("False", created),
            ("False", created),
            "Unspecified",
        ),
    ] {
        let run = Run {
            phase,
            start_time: start,
            completion_time: end,
            ..Run::default()
        };
        let status = to_status(&run, None, created);
        let found: Vec<_> = status
            .conditions
            .iter()
            .map(|c| {
                (
                    c.type_.as_str(),
                    c.status.as_str(),
                    c.last_transition_time.0,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("Succeeded", succeeded.0, succeeded.1),
                ("Running", running.0, running.1)
            ]
        );
        assert_eq!(status.conditions[0].reason, reason);
        assert_eq!(from_status(&status), run);
    }
}

#[test]
fn a_status_of_an_earlier_program_is_read() {
    let object: FlowRun = serde_json::from_value(serde_json::json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "FlowRun",
        "metadata": {"name": "old"},
        "spec": {"flowRef": {"name": "orders"}},
        "status": {
            "phase": "Succeeded",
            "startTime": "2026-12-01T10:00:00Z",
            "completionTime": "2026-12-01T10:00:00.123456789Z",
            "steps": [{"name": "Old_Name", "phase": "Succeeded", "results": [{"name": "id"}]}],
        },
    }))
    .unwrap();
    let run = from_status(object.status.as_ref().unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded);
    assert_eq!(run.completion_time, Some(at("2026-12-01T10:00:00.123456Z")));
    assert_eq!(run.steps[0].name, StepName::default());
    assert_eq!(run.steps[0].results[0].value, "");
}

#[test]
fn what_has_no_effect_is_said_beside_the_run_and_not_read_as_part_of_it() {
    let created = at("2026-12-01T09:59:59Z");
    let spec = FlowRunSpec {
        ttl_after_finished: Some("1h".to_owned()),
        ..FlowRunSpec::default()
    };
    let mut status = to_status(&full(), Some(7), created);
    report(&mut status, &flow_run_degraded(&spec), created);
    let degraded = find(&status.conditions, "Degraded").unwrap();
    assert_eq!(degraded.status, "True");
    assert_eq!(degraded.reason, "NoEffect");
    assert_eq!(
        degraded.message,
        "spec.ttlAfterFinished: has no effect yet: the FlowRun is kept"
    );
    assert_eq!(degraded.observed_generation, Some(7));
    assert_eq!(degraded.last_transition_time.0, created);
    assert_eq!(from_status(&stored(&status)), full());

    let mut plain = to_status(&full(), Some(7), created);
    report(
        &mut plain,
        &flow_run_degraded(&FlowRunSpec::default()),
        created,
    );
    assert_eq!(plain, to_status(&full(), Some(7), created));
}

#[test]
fn an_empty_step_takes_few_bytes() {
    let run = Run {
        steps: vec![StepState {
            name: StepName::parse("a").unwrap(),
            ..StepState::default()
        }],
        ..Run::default()
    };
    let status = to_status(&run, None, at("2026-12-01T10:00:00Z"));
    assert_eq!(
        serde_json::to_string(&status.steps).unwrap(),
        r#"[{"name":"a","phase":"Pending"}]"#
    );
}

fn time() -> impl Strategy<Value = Option<Timestamp>> {
    // Year 1 to year 9999, in microseconds.
    proptest::option::of(
        (-62_135_596_800_000_000_i64..253_402_207_200_000_000)
            .prop_map(|micros| Timestamp::from_microsecond(micros).unwrap()),
    )
}

fn step() -> impl Strategy<Value = StepState> {
    let phase = proptest::sample::select(vec![
        StepPhase::Pending,
        StepPhase::Running,
        StepPhase::Waiting,
        StepPhase::Succeeded,
        StepPhase::Failed,
        StepPhase::Skipped,
    ]);
    (
        ("[a-z][a-z0-9-]{0,20}", phase, time(), time(), time()),
        (
            any::<u32>(),
            ".{0,20}",
            "[A-Za-z]{0,10}",
            proptest::option::of("[a-z/0-9]{1,20}"),
        ),
        proptest::collection::vec(("[a-z]{1,5}", ".{0,20}"), 0..3),
    )
        .prop_map(
            |((name, phase, start, end, resume), (attempts, message, reason, id), results)| {
                StepState {
                    name: StepName::parse(&name).unwrap(),
                    phase,
                    start_time: start,
                    completion_time: end,
                    attempts,
                    message,
                    reason,
                    results: results
                        .into_iter()
                        .map(|(name, value)| run::StepResult { name, value })
                        .collect(),
                    resume_after: resume,
                    execution_id: id,
                }
            },
        )
}

proptest! {
    #[test]
    fn any_run_survives_the_store(
        phase in proptest::sample::select(vec![
            RunPhase::Pending,
            RunPhase::Running,
            RunPhase::Succeeded,
            RunPhase::Failed,
            RunPhase::Cancelled,
        ]),
        reason in proptest::sample::select(vec!["", "Queued", "Completed", "Cancelled", "TimedOut", "StepFailed"]),
        message in ".{0,40}",
        start in time(),
        end in time(),
        revision in proptest::option::of("[a-z]{1,20}"),
        steps in proptest::collection::vec(step(), 0..4),
    ) {
        let run = Run {
            phase,
            reason: reason.to_owned(),
            message,
            start_time: start,
            completion_time: end,
            revision,
            steps,
        };
        let status = to_status(&run, Some(1), Timestamp::UNIX_EPOCH);
        prop_assert_eq!(from_status(&stored(&status)), run);
    }
}
