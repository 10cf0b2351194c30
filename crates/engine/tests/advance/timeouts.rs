//! What happens when time is up.

use std::time::Duration;

use kubezap_engine::flow::{FlowDraft, OnFailure};
use kubezap_engine::observation::Observation;
use kubezap_engine::run::RunPhase;

use crate::draft::{Words, fixed, flow, http, transform, wait};
use crate::world::{What, World, answer, check};

fn within(seconds: u64, draft: FlowDraft) -> FlowDraft {
    FlowDraft {
        timeout: Duration::from_secs(seconds),
        ..draft
    }
}

#[test]
fn the_steps_timeout_bounds_an_attempt() {
    check(
        flow([http("a").timeout(5).retry(fixed(1))]),
        [(100.0, What::Nothing)],
        "0s call a#1
        5s abort a#1
        7s call a#2
        12s abort a#2
        12s Failed StepFailed: step a failed: timeout: no answer within 5s (after 2 attempts)
        a Failed x2 TimedOut: timeout: no answer within 5s (after 2 attempts)",
    );
}

#[test]
fn a_call_may_take_the_smaller_of_both_timeouts() {
    for (step, call, smaller) in [(5, 9, 5), (9, 5, 5)] {
        let mut world = World::new(flow([http("a").timeout(step).call_timeout(call)]));
        world.play([]);
        assert_eq!(world.call("a").timeout, Duration::from_secs(smaller));
        world.to(20.0);
        assert_eq!(world.seconds(world.step("a").completion_time.unwrap()), 5.0);
    }
}

#[test]
fn an_answer_at_the_last_instant_counts() {
    check(
        flow([http("a").timeout(5)]),
        [answer(4.999, "a", 200, "")],
        "0s call a#1
        4.999s Succeeded Completed
        a Succeeded",
    );
}

#[test]
fn the_time_of_a_call_runs_from_when_it_leaves() {
    let mut world = World::new(flow([http("a").timeout(5)]));
    world.calls_leave = false;
    world.play([(60.0, What::Nothing)]);
    let execution_id = world.call("a").execution_id.clone();
    world.turn(&[Observation::CallStarted { execution_id }]);
    assert_eq!(world.seconds(world.step("a").start_time.unwrap()), 60.0);
    assert_eq!(world.seconds(world.run().start_time.unwrap()), 60.0);
    world.to(64.9);
    assert_eq!(world.run().phase, RunPhase::Running);
    world.to(65.0);
    assert_eq!(world.run().phase, RunPhase::Failed);
}

#[test]
fn a_run_that_waits_for_its_first_turn_does_not_time_out() {
    let mut world = World::new(within(10, flow([http("a")])));
    world.calls_leave = false;
    world.play([(3600.0, What::Nothing)]);
    assert_eq!(world.run().phase, RunPhase::Running);
    let execution_id = world.call("a").execution_id.clone();
    world.turn(&[Observation::CallStarted { execution_id }]);
    world.to(3611.0);
    world.assert(
        "0s call a#1
        3610s abort a#1
        3610s Failed TimedOut: the run took longer than its timeout of 10s
        a Failed TimedOut: timeout: the run's time was up while the call was out",
    );
}

#[test]
fn the_runs_timeout_aborts_what_is_in_flight() {
    check(
        within(
            10,
            flow([
                http("a"),
                http("b").after(&["a"]).on_failure(OnFailure::Continue),
                http("c").after(&["a"]).retry(fixed(3)),
                wait("d", 8).after(&["a"]),
                http("e").after(&["b"]),
            ]),
        ),
        [
            answer(3.0, "a", 200, ""),
            answer(9.0, "c", 500, ""),
            (20.0, What::Nothing),
        ],
        "0s call a#1
        3s call b#1
        3s call c#1
        10s abort b#1
        10s Failed TimedOut: the run took longer than its timeout of 10s
        a Succeeded
        b Failed TimedOut: timeout: the run's time was up while the call was out
        c Failed HTTPStatus: attempt 1 of 4 failed: the target answered HTTP 500
        d Skipped NotReached: the run ended before the wait did
        e Skipped NotReached",
    );
}

#[test]
fn a_run_that_was_left_alone_beyond_its_timeout_fails() {
    check(
        within(10, flow([http("a"), http("b").after(&["a"])])),
        [answer(1.0, "a", 200, ""), (2.0, What::Restart)],
        "0s call a#1
        1s call b#1
        2s restart
        2s call b#2
        Running
        a Succeeded
        b Running x2",
    )
    .to(10.0);
    let mut world = World::new(within(10, flow([http("a")])));
    world.play([]);
    let stored = world.run().clone();
    world.wake = None;
    world.to(3600.0);
    world.restart_from(stored);
    world.assert(
        "0s call a#1
        3600s restart
        3600s Failed TimedOut: the run took longer than its timeout of 10s
        a Failed TimedOut: timeout: the run's time was up while the call was out",
    );
}

#[test]
fn a_step_that_waits_for_configmaps_is_bounded_by_the_run() {
    check(
        within(10, flow([transform("a", &[("x", "$(configmaps.c.k)")])])),
        [(20.0, What::Nothing)],
        "0s read for a
        10s Failed TimedOut: the run took longer than its timeout of 10s
        a Skipped NotReached",
    );
}
