//! What a run may hold, at each limit and one byte beyond.

use jiff::Timestamp;
use kubezap_engine::flow::{FlowDraft, OnFailure};
use kubezap_engine::run::{Run, RunPhase, StepPhase, limits, reason};
use serde_json::{Value, json};

use crate::draft::{Words, flow, http, transform};
use crate::world::{World, answer, no_answer};

const KIB: usize = 1024;

/// The status as the store has it, times and numbers as long as they get.
fn status_bytes(run: &Run) -> usize {
    fn drop_nulls(value: &mut Value) {
        if let Value::Object(fields) = value {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        } else if let Value::Array(items) = value {
            items.iter_mut().for_each(drop_nulls);
        }
    }
    let time = |time: Option<Timestamp>| time.map(|_| "2026-12-01T08:00:00.123456Z");
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "False", "reason": run.reason, "message": run.message,
            "observedGeneration": i64::MAX, "lastTransitionTime": "2026-12-01T08:00:00Z",
        })
    };
    let steps: Vec<_> = run
        .steps
        .iter()
        .map(|step| {
            let results: Vec<_> = step
                .results
                .iter()
                .map(|result| json!({"name": result.name, "value": result.value}))
                .collect();
            json!({
                "name": step.name.as_str(), "phase": step.phase.as_str(),
                "startTime": time(step.start_time), "completionTime": time(step.completion_time),
                "durationMillis": u32::MAX, "attempts": step.attempts, "message": step.message,
                "reason": step.reason, "results": results, "resumeAfter": time(step.resume_after),
                "executionID": step.execution_id,
            })
        })
        .collect();
    let mut status = json!({
        "observedGeneration": i64::MAX, "phase": run.phase.as_str(),
        "startTime": time(run.start_time), "completionTime": time(run.completion_time),
        "durationMillis": i64::MAX, "duration": "2562047h47m16.854s", "message": run.message,
        "flowRevision": "f".repeat(253), "steps": steps,
        "conditions": [condition("Succeeded"), condition("Running")],
    });
    drop_nulls(&mut status);
    serde_json::to_string(&status).unwrap().len()
}

/// A Flow of `count` calls whose bodies something refers to, each failure absorbed.
fn keepers(count: usize) -> FlowDraft {
    let name = |index: usize| format!("s{index}");
    let steps = (0..count).map(|index| http(&name(index)));
    let last = transform("last", &[("none", "")]).when(&format!(
        "[{}] == []",
        (0..count)
            .map(|index| format!("steps.{}.results.body", name(index)))
            .collect::<Vec<_>>()
            .join(", ")
    ));
    FlowDraft {
        failure_policy: OnFailure::Continue,
        ..flow(steps.chain([last]))
    }
}

/// Lets the targets of the first calls answer with these bodies.
fn answered(bodies: &[&str]) -> World {
    const NAMES: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
    let mut world = World::new(keepers(bodies.len()));
    world.play(
        bodies
            .iter()
            .zip(NAMES)
            .map(|(body, name)| answer(1.0, name, 200, body)),
    );
    assert!(world.is_over());
    world
}

#[test]
fn one_result_may_have_64_kib() {
    let most = "x".repeat(64 * KIB);
    let world = answered(&[&most]);
    assert_eq!(world.result("s0", "body"), Some(most.as_str()));

    let more = "x".repeat(64 * KIB + 1);
    let world = answered(&[&more]);
    let state = world.step("s0");
    assert_eq!(state.phase, StepPhase::Failed);
    assert_eq!(state.reason, reason::RESULT_TOO_LARGE);
    assert_eq!(
        state.message,
        "result body has 65537 bytes, the limit is 65536"
    );
    assert!(state.results.is_empty());
}

#[test]
fn all_results_together_may_have_256_kib() {
    let full = "x".repeat(64 * KIB);
    let world = answered(&[&full, &full, &full, &full]);
    assert!(
        world
            .run()
            .steps
            .iter()
            .all(|step| step.phase != StepPhase::Failed)
    );

    let world = answered(&[&full, &full, &full, &full, "x"]);
    let state = world.step("s4");
    assert_eq!(state.phase, StepPhase::Failed);
    assert_eq!(state.reason, reason::RESULT_TOO_LARGE);
    assert_eq!(
        state.message,
        "with result body of 1 bytes all results of the run have 262145 bytes, the limit is 262144"
    );
    assert!(status_bytes(world.run()) <= limits::MAX_STATUS_BYTES);
}

#[test]
fn the_status_may_have_384_kib_as_json() {
    // A line break is one byte and takes two in JSON.
    let lines = "\n".repeat(64 * KIB);
    let world = answered(&[&lines, &lines, &lines]);
    let state = world.step("s2");
    assert_eq!(state.reason, reason::RESULT_TOO_LARGE);
    assert!(
        state
            .message
            .starts_with("with result body of 65536 bytes the run's status would have ")
            && state.message.ends_with(" bytes, the limit is 393216"),
        "{}",
        state.message
    );
    assert_eq!(world.step("s1").phase, StepPhase::Succeeded);
    assert!(status_bytes(world.run()) <= limits::MAX_STATUS_BYTES);
}

#[test]
fn a_failed_calls_answer_is_kept_as_far_as_it_fits() {
    let mut world = World::new(FlowDraft {
        failure_policy: OnFailure::Continue,
        ..flow([
            http("a"),
            transform(
                "b",
                &[("x", "$(steps.a.results.status) [$(steps.a.results.body)]")],
            ),
        ])
    });
    world.play([answer(1.0, "a", 500, &"x".repeat(64 * KIB + 1))]);
    assert_eq!(world.step("a").reason, reason::HTTP_STATUS);
    assert_eq!(world.result("b", "x"), Some("500 []"));
}

#[test]
fn a_transforms_results_are_bounded_too() {
    let mut world = World::new(flow([
        http("a"),
        transform(
            "b",
            &[("x", "$(steps.a.results.body)$(steps.a.results.body)")],
        ),
    ]));
    world.play([answer(1.0, "a", 200, &"x".repeat(32 * KIB))]);
    assert_eq!(world.result("b", "x").map(str::len), Some(64 * KIB));

    let mut world = World::new(flow([
        http("a"),
        transform(
            "b",
            &[("x", "$(steps.a.results.body)$(steps.a.results.body)!")],
        ),
    ]));
    world.play([answer(1.0, "a", 200, &"x".repeat(32 * KIB))]);
    world.assert(
        "0s call a#1
        1s Failed StepFailed: step b failed: result x has 65537 bytes, the limit is 65536
        a Succeeded
        b Failed ResultTooLarge: result x has 65537 bytes, the limit is 65536",
    );
}

#[test]
fn a_message_is_cut_at_1_kib_and_says_so() {
    let failed = |message: &str| -> String {
        let mut world = World::new(flow([http("a")]));
        world.play([no_answer(1.0, "a", reason::CONNECT, message)]);
        assert!(world.run().message.len() <= KIB);
        world.step("a").message.clone()
    };
    let most = "x".repeat(KIB);
    assert_eq!(failed(&most), most);
    let cut = failed(&"x".repeat(KIB + 1));
    assert_eq!(cut, format!("{}...", "x".repeat(KIB - 3)));
    let wide = failed(&"\u{20ac}".repeat(KIB));
    assert_eq!(wide, format!("{}...", "\u{20ac}".repeat(340)));
}

#[test]
fn messages_of_128_failed_steps_fit_however_they_are_written() {
    for c in ["x", "\n", "\u{1}", "\u{1f600}"] {
        let steps = (0..128).map(|index| http(&longest_name(index)));
        let mut world = World::new(FlowDraft {
            failure_policy: OnFailure::Continue,
            ..flow(steps)
        });
        world.live = kubezap_engine::advance::LiveRun::new(
            &world.flow,
            &world.spec,
            None,
            "abcdefghijklmnop",
        );
        world.turn(&[]);
        let ids: Vec<_> = world
            .calls
            .iter()
            .map(|call| call.execution_id.clone())
            .collect();
        for execution_id in ids {
            world.turn(&[kubezap_engine::observation::Observation::CallFinished {
                execution_id,
                outcome: crate::world::failure(reason::EXECUTOR_UNAVAILABLE, &c.repeat(2 * KIB)),
            }]);
        }
        assert_eq!(world.run().phase, RunPhase::Succeeded);
        let bytes = status_bytes(world.run());
        assert!(bytes <= limits::MAX_STATUS_BYTES, "{c:?}: {bytes}");
        for step in &world.run().steps {
            assert!(step.message.ends_with("..."));
            assert!(step.message.len() > 20, "{}", step.message);
        }
    }
}

fn longest_name(index: usize) -> String {
    format!("{}{index:03}", "s".repeat(60))
}

#[test]
fn a_run_of_128_steps_with_the_largest_results_reaches_its_end() {
    for (unit, fails) in [("x", false), ("\"", false), ("x", true), ("\u{1}", true)] {
        let steps = (0..128usize).map(|index| {
            let step = http(&longest_name(index));
            match index {
                0 => step,
                _ => step.body(&format!(
                    "$(steps.{}.results.body)",
                    longest_name(index - 1)
                )),
            }
        });
        let mut world = World::new(FlowDraft {
            failure_policy: OnFailure::Continue,
            ..flow(steps)
        });
        world.turn(&[]);
        let mut answers = 0;
        while !world.is_over() {
            let call = world.calls[0].clone();
            answers += 1;
            let body = unit.repeat(64 * KIB / unit.len());
            let outcome = if fails && call.step % 2 == 1 {
                crate::world::failure(reason::CONNECT, &unit.repeat(4 * KIB))
            } else {
                crate::world::response(200, &[], &body)
            };
            world.turn(&[kubezap_engine::observation::Observation::CallFinished {
                execution_id: call.execution_id,
                outcome,
            }]);
        }
        assert_eq!(answers, 128);
        let bytes = status_bytes(world.run());
        assert!(bytes <= limits::MAX_STATUS_BYTES, "{bytes}");
    }
}

#[test]
fn a_step_may_have_64_results() {
    let names: Vec<_> = (0..64).map(|index| format!("r{index:02}")).collect();
    let mappings: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "$(steps.a.results.body)"))
        .collect();
    // The body itself is a result too: 65 times.
    for (size, phase) in [
        (256 * KIB / 65, StepPhase::Succeeded),
        (256 * KIB / 65 + 1, StepPhase::Failed),
    ] {
        let mut world = World::new(flow([http("a"), transform("b", &mappings)]));
        world.play([answer(1.0, "a", 200, &"x".repeat(size))]);
        assert_eq!(world.step("b").phase, phase, "{size}");
    }
}

#[test]
fn results_that_were_stored_before_a_crash_count() {
    let full = "x".repeat(64 * KIB);
    let mut world = World::new(keepers(5));
    world.play(["s0", "s1", "s2", "s3"].map(|name| answer(1.0, name, 200, &full)));
    world.restart();
    world.play([answer(2.0, "s4", 200, "x")]);
    assert_eq!(world.step("s4").reason, reason::RESULT_TOO_LARGE);
}
