//! What a failed step does to the run.

use kubezap_engine::flow::{FlowDraft, OnFailure};
use kubezap_engine::observation::Observation;

use crate::draft::{Words, fixed, flow, http, transform, wait};
use crate::world::{What, World, answer, check, no_answer, response};

#[test]
fn compatibility_what_a_failed_run_never_started_is_skipped_as_not_reached() {
    check(
        flow([http("a"), http("b").after(&["a"])]),
        [answer(1.0, "a", 404, "")],
        "0s call a#1
        1s Failed StepFailed: step a failed: the target answered HTTP 404
        a Failed HTTPStatus: the target answered HTTP 404
        b Skipped NotReached",
    );
}

#[test]
fn steps_in_flight_finish_and_nothing_new_starts() {
    check(
        flow([
            http("a"),
            http("b"),
            http("c").after(&["b"]),
            http("d").on_failure(OnFailure::Fail),
        ]),
        [
            answer(1.0, "a", 500, ""),
            answer(2.0, "b", 200, ""),
            answer(3.0, "d", 503, ""),
        ],
        "0s call a#1
        0s call b#1
        0s call d#1
        3s Failed StepFailed: step a failed: the target answered HTTP 500
        a Failed HTTPStatus: the target answered HTTP 500
        b Succeeded
        c Skipped NotReached
        d Failed HTTPStatus: the target answered HTTP 503",
    );
}

#[test]
fn the_failure_that_came_first_is_the_one_that_the_run_names() {
    check(
        flow([http("a"), http("b")]),
        [
            no_answer(1.0, "b", "DNS", "dns: b.example.com does not resolve"),
            answer(2.0, "a", 500, ""),
        ],
        "0s call a#1
        0s call b#1
        2s Failed StepFailed: step b failed: dns: b.example.com does not resolve
        a Failed HTTPStatus: the target answered HTTP 500
        b Failed DNS: dns: b.example.com does not resolve",
    );
}

#[test]
fn a_stopping_run_retries_nothing() {
    check(
        flow([
            http("a"),
            http("failing").retry(fixed(3)),
            http("resting").retry(fixed(3)),
            wait("pause", 60),
        ]),
        [
            answer(0.5, "resting", 503, ""),
            answer(1.0, "a", 500, ""),
            answer(4.0, "failing", 502, ""),
        ],
        "0s call a#1
        0s call failing#1
        0s call resting#1
        4s Failed StepFailed: step a failed: the target answered HTTP 500
        a Failed HTTPStatus: the target answered HTTP 500
        failing Failed HTTPStatus: the target answered HTTP 502
        resting Failed HTTPStatus: attempt 1 of 4 failed: the target answered HTTP 503
        pause Skipped NotReached: the run ended before the wait did",
    );
}

#[test]
fn continue_leaves_the_step_failed_and_lets_dependents_run() {
    let world = check(
        flow([
            http("a").on_failure(OnFailure::Continue),
            transform("b", &[("why", "$(steps.a.status): $(steps.a.message)")]).after(&["a"]),
        ]),
        [answer(1.0, "a", 500, "")],
        "0s call a#1
        1s Succeeded Completed
        a Failed HTTPStatus: the target answered HTTP 500
        b Succeeded",
    );
    assert_eq!(
        world.result("b", "why"),
        Some("Failed: the target answered HTTP 500")
    );
}

#[test]
fn skip_marks_the_step_skipped_and_keeps_the_error_in_the_message() {
    check(
        flow([
            http("a").on_failure(OnFailure::Skip),
            http("b").after(&["a"]),
        ]),
        [answer(1.0, "a", 500, "")],
        "0s call a#1
        1s Succeeded Completed
        a Skipped HTTPStatus: the target answered HTTP 500
        b Skipped DependencySkipped: every step it runs after was skipped",
    );
}

#[test]
fn failure_policy_continue_is_the_default_for_steps_without_on_failure() {
    let draft = FlowDraft {
        failure_policy: OnFailure::Continue,
        ..flow([
            http("a"),
            http("b").after(&["a"]),
            http("c").after(&["b"]).on_failure(OnFailure::Fail),
        ])
    };
    check(
        draft,
        [
            answer(1.0, "a", 500, ""),
            answer(2.0, "b", 500, ""),
            answer(3.0, "c", 500, ""),
        ],
        "0s call a#1
        1s call b#1
        2s call c#1
        3s Failed StepFailed: step c failed: the target answered HTTP 500
        a Failed HTTPStatus: the target answered HTTP 500
        b Failed HTTPStatus: the target answered HTTP 500
        c Failed HTTPStatus: the target answered HTTP 500",
    );
}

#[test]
fn the_run_succeeds_when_every_failure_was_absorbed() {
    let draft = FlowDraft {
        failure_policy: OnFailure::Continue,
        ..flow([http("a"), http("b").on_failure(OnFailure::Skip)])
    };
    check(
        draft,
        [answer(1.0, "a", 500, ""), answer(1.0, "b", 500, "")],
        "0s call a#1
        0s call b#1
        1s Succeeded Completed
        a Failed HTTPStatus: the target answered HTTP 500
        b Skipped HTTPStatus: the target answered HTTP 500",
    );
}

#[test]
fn a_transform_that_fails_fails_its_step() {
    check(
        flow([transform("a", &[("x", "1"), ("y", "$(1 / 0)")])]),
        [],
        "0s Failed StepFailed: step a failed: mapping y: $(1 / 0): division by zero
        a Failed EvalError: mapping y: $(1 / 0): division by zero",
    );
}

#[test]
fn only_2xx_is_success() {
    for status in [100, 199, 300, 301, 304, 400, 404, 499, 500, 599] {
        let world = check(
            flow([http("a")]),
            [answer(1.0, "a", status, "")],
            &format!(
                "0s call a#1
                1s Failed StepFailed: step a failed: the target answered HTTP {status}
                a Failed HTTPStatus: the target answered HTTP {status}"
            ),
        );
        assert!(world.is_over());
    }
}

#[test]
fn a_call_that_waits_for_the_store_or_its_turn_does_not_leave_a_stopping_run() {
    let mut world = World::new(flow([
        http("a"),
        http("b"),
        http("c").after(&["a"]),
        http("d").after(&["a"]),
    ]));
    world.play([]);
    world.calls_leave = false;
    world.play([answer(1.0, "a", 200, "")]);
    let (c, b) = (
        world.call("c").execution_id.clone(),
        world.call("b").execution_id.clone(),
    );
    world.turn(&[Observation::CallStarted {
        execution_id: c.clone(),
    }]);
    world.turn(&[Observation::CallFinished {
        execution_id: b,
        outcome: response(500, &[], ""),
    }]);
    world.assert(
        "0s call a#1
        0s call b#1
        1s call c#1
        1s call d#1
        1s abort d#1
        Running
        a Succeeded
        b Failed HTTPStatus: the target answered HTTP 500
        c Running
        d Running",
    );
    world.turn(&[Observation::CallFinished {
        execution_id: c,
        outcome: response(200, &[], ""),
    }]);
    world.assert(
        "0s call a#1
        0s call b#1
        1s call c#1
        1s call d#1
        1s abort d#1
        1s Failed StepFailed: step b failed: the target answered HTTP 500
        a Succeeded
        b Failed HTTPStatus: the target answered HTTP 500
        c Succeeded
        d Skipped NotReached",
    );
    assert_eq!(
        (world.step("d").attempts, world.step("d").start_time),
        (0, None)
    );
}

#[test]
fn a_stopping_run_takes_in_nothing_that_was_read_for_a_step_that_will_not_start() {
    let mut world = World::new(flow([
        http("a"),
        http("b"),
        transform("c", &[("x", "$(configmaps.c.k)")]),
    ]));
    world.play([
        answer(1.0, "a", 500, ""),
        (
            2.0,
            What::Read("c", Err("configmap c does not exist".to_owned())),
        ),
        answer(3.0, "b", 200, ""),
    ]);
    world.assert(
        "0s call a#1
        0s call b#1
        0s read for c
        3s Failed StepFailed: step a failed: the target answered HTTP 500
        a Failed HTTPStatus: the target answered HTTP 500
        b Succeeded
        c Skipped NotReached",
    );
}
