//! Someone cancels a run.

use kubezap_engine::observation::Observation;

use crate::draft::{Words, fixed, flow, http, transform, wait};
use crate::world::{What, World, answer, check};

#[test]
fn cancel_aborts_calls_and_starts_nothing_new() {
    check(
        flow([
            http("done"),
            http("out"),
            http("resting").retry(fixed(1)),
            wait("pause", 60),
            http("later").after(&["out"]),
        ]),
        [
            answer(1.0, "done", 200, ""),
            answer(2.0, "resting", 500, ""),
            (3.0, What::Cancel),
        ],
        "0s call done#1
        0s call out#1
        0s call resting#1
        3s abort out#1
        3s Cancelled Cancelled: cancelled by the annotation kubezap.io/cancel
        done Succeeded
        out Failed Canceled: the run was cancelled while the call was out
        resting Failed HTTPStatus: attempt 1 of 2 failed: the target answered HTTP 500
        pause Skipped NotReached: the run ended before the wait did
        later Skipped NotReached",
    );
}

#[test]
fn a_run_cancelled_before_it_starts_starts_nothing() {
    let mut world = World::new(flow([http("a"), transform("b", &[("x", "1")])]));
    world.turn(&[Observation::CancelRequested]);
    world.assert(
        "0s Cancelled Cancelled: cancelled by the annotation kubezap.io/cancel
        a Skipped NotReached
        b Skipped NotReached",
    );
}

#[test]
fn a_call_that_had_not_left_was_not_reached() {
    let mut world = World::new(flow([http("a"), http("again").retry(fixed(1))]));
    world.play([answer(1.0, "again", 500, "")]);
    world.calls_leave = false;
    world.to(3.0);
    world.turn(&[Observation::CancelRequested]);
    world.assert(
        "0s call a#1
        0s call again#1
        3s call again#2
        3s abort a#1
        3s abort again#2
        3s Cancelled Cancelled: cancelled by the annotation kubezap.io/cancel
        a Failed Canceled: the run was cancelled while the call was out
        again Failed HTTPStatus: attempt 1 of 2 failed: the target answered HTTP 500",
    );
    let mut world = World::new(flow([http("a")]));
    world.calls_leave = false;
    world.play([(1.0, What::Cancel)]);
    world.assert(
        "0s call a#1
        1s abort a#1
        1s Cancelled Cancelled: cancelled by the annotation kubezap.io/cancel
        a Skipped NotReached",
    );
    assert_eq!(world.step("a").execution_id, None);
}

#[test]
fn cancel_after_a_crash_fails_what_was_in_flight() {
    let mut world = World::new(flow([http("a"), http("b").after(&["a"])]));
    world.play([]);
    let stored = world.run().clone();
    let mut world = World::new(flow([http("a"), http("b").after(&["a"])]));
    world.live =
        kubezap_engine::advance::LiveRun::new(&world.flow, &world.spec, Some(stored), "i2");
    world.turn(&[Observation::CancelRequested]);
    world.assert(
        "0s Cancelled Cancelled: cancelled by the annotation kubezap.io/cancel
        a Failed Canceled: the run was cancelled while the call was out
        b Skipped NotReached",
    );
}

#[test]
fn a_call_that_could_not_be_delivered_was_not_reached() {
    let mut world = World::new(flow([http("a")]));
    world.play([
        (0.0, What::Nothing),
        crate::world::not_delivered(1.0, "a"),
        (1.05, What::Cancel),
    ]);
    world.assert(
        "0s call a#1
        1.05s Cancelled Cancelled: cancelled by the annotation kubezap.io/cancel
        a Skipped NotReached",
    );
    assert_eq!(world.step("a").attempts, 0);
}
