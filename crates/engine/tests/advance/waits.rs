//! Steps that wait.

use std::time::Duration;

use kubezap_engine::advance::WriteNeed;
use kubezap_engine::flow::{FlowDraft, OnFailure};
use kubezap_engine::run::StepPhase;

use crate::draft::{Words, flow, http, transform, wait};
use crate::world::{What, World, answer, check};

#[test]
fn compatibility_only_dependents_of_a_wait_wait_and_its_end_is_stored() {
    let mut world = check(
        flow([
            wait("pause", 60),
            http("after").after(&["pause"]),
            http("beside"),
        ]),
        [answer(1.0, "beside", 200, "")],
        "0s call beside#1
        Running
        pause Waiting Waiting
        after Pending
        beside Succeeded",
    );
    let state = world.step("pause");
    assert_eq!(world.seconds(state.resume_after.unwrap()), 60.0);
    assert_eq!(world.write, WriteNeed::Now);
    world.to(60.0);
    world.assert(
        "0s call beside#1
        60s call after#1
        Running
        pause Succeeded
        after Running
        beside Succeeded",
    );
    assert_eq!(world.step("pause").resume_after, None);
}

#[test]
fn the_end_of_a_wait_needs_a_write_soon() {
    let mut world = World::new(flow([
        wait("pause", 5),
        http("a"),
        http("b").after(&["pause"]),
    ]));
    world.play([]);
    world.write = WriteNeed::None;
    world.to(5.0);
    assert_eq!(world.write, WriteNeed::Soon);
}

#[test]
fn a_restart_never_lengthens_a_wait() {
    let mut world = World::new(flow([
        wait("pause", 60),
        transform("after", &[("t", "$(string(now()))")]).after(&["pause"]),
    ]));
    world.play([(10.0, What::Restart)]);
    let stored = world.run().clone();
    assert_eq!(world.seconds(world.wake.unwrap()), 60.0);
    world.wake = None;
    world.to(100.0);
    world.restart_from(stored);
    let state = world.step("pause");
    assert_eq!(world.seconds(state.completion_time.unwrap()), 60.0);
    assert_eq!(world.result("after", "t"), Some("2026-12-01T08:01:00Z"));
    world.assert(
        "10s restart
        100s restart
        100s Succeeded Completed
        pause Succeeded
        after Succeeded",
    );
}

#[test]
fn a_wait_as_long_as_the_runs_timeout_ends_in_time() {
    let draft = FlowDraft {
        timeout: Duration::from_secs(60),
        ..flow([wait("pause", 60)])
    };
    check(
        draft,
        [(60.0, What::Nothing)],
        "60s Succeeded Completed
        pause Succeeded",
    );
}

#[test]
fn a_wait_that_ended_in_time_has_ended_whenever_that_is_noticed() {
    let draft = FlowDraft {
        timeout: Duration::from_secs(60),
        ..flow([wait("pause", 50)])
    };
    let mut world = World::new(draft);
    world.play([]);
    world.wake = None;
    world.to(3600.0);
    world.restart();
    assert_eq!(world.step("pause").phase, StepPhase::Succeeded);
    assert_eq!(
        world.seconds(world.step("pause").completion_time.unwrap()),
        50.0
    );
}

#[test]
fn a_wait_ends_while_a_stopping_run_finishes_its_calls() {
    check(
        flow([
            wait("pause", 5),
            http("a"),
            http("b"),
            http("c").after(&["pause"]),
        ]),
        [answer(1.0, "a", 500, ""), answer(9.0, "b", 200, "")],
        "0s call a#1
        0s call b#1
        9s Failed StepFailed: step a failed: the target answered HTTP 500
        pause Succeeded
        a Failed HTTPStatus: the target answered HTTP 500
        b Succeeded
        c Skipped NotReached",
    );
}

#[test]
fn a_wait_longer_than_its_steps_timeout_fails_when_that_is_up() {
    let world = check(
        flow([wait("pause", 60).timeout(5).on_failure(OnFailure::Continue)]),
        [(100.0, What::Nothing)],
        "5s Succeeded Completed
        pause Failed TimedOut: timeout: the wait is longer than the step's 5s",
    );
    assert_eq!(world.flow.warnings.len(), 1);
}

#[test]
fn a_step_that_timed_out_while_it_waited_did_so_at_that_instant() {
    let mut world = World::new(flow([
        wait("pause", 60).timeout(5).on_failure(OnFailure::Continue),
        http("a"),
    ]));
    world.play([(1.0, What::Nothing)]);
    world.wake = None;
    world.to(9.0);
    world.write = WriteNeed::None;
    world.turn(&[]);
    let state = world.step("pause");
    assert_eq!(state.phase, StepPhase::Failed);
    assert_eq!(world.seconds(state.completion_time.unwrap()), 5.0);
    assert_eq!(world.write, WriteNeed::Soon);
}

#[test]
fn a_wait_that_would_end_after_the_run_has_not_ended() {
    let draft = FlowDraft {
        timeout: Duration::from_secs(60),
        ..flow([http("a"), wait("pause", 30).after(&["a"])])
    };
    let mut world = World::new(draft);
    world.play([answer(29.0, "a", 200, ""), (30.0, What::Nothing)]);
    let mut late = world.run().clone();
    late.steps[1].resume_after = Some(world.spec.created + Duration::from_secs(70));
    world.wake = None;
    world.to(3600.0);
    world.restart_from(late);
    world.assert(
        "0s call a#1
        3600s restart
        3600s Failed TimedOut: the run took longer than its timeout of 60s
        a Succeeded
        pause Skipped NotReached: the run ended before the wait did",
    );
}
