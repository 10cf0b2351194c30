//! When another attempt starts, and when none does.

use std::time::Duration;

use kubezap_engine::advance::WriteNeed;
use kubezap_engine::retry::{Backoff, RetryPolicy};
use kubezap_engine::run::{StepPhase, reason};

use crate::draft::{Words, fixed, flow, http, transform};
use crate::world::{What, World, answer, check, no_answer, not_delivered, response};

#[test]
fn without_a_policy_there_is_one_attempt() {
    check(
        flow([http("a")]),
        [no_answer(1.0, "a", "Connect", "connect: refused")],
        "0s call a#1
        1s Failed StepFailed: step a failed: connect: refused
        a Failed Connect: connect: refused",
    );
}

#[test]
fn compatibility_without_retry_on_any_status_but_2xx_is_retried() {
    check(
        flow([http("a").retry(fixed(2))]),
        [
            answer(1.0, "a", 500, ""),
            answer(4.0, "a", 404, ""),
            answer(7.0, "a", 418, ""),
        ],
        "0s call a#1
        3s call a#2
        6s call a#3
        7s Failed StepFailed: step a failed: the target answered HTTP 418 (after 3 attempts)
        a Failed x3 HTTPStatus: the target answered HTTP 418 (after 3 attempts)",
    );
}

#[test]
fn between_two_attempts_people_see_why() {
    let world = check(
        flow([http("a").retry(fixed(2))]),
        [answer(1.0, "a", 500, "")],
        "0s call a#1
        Running
        a Running Retrying: attempt 1 of 3 failed: the target answered HTTP 500",
    );
    let state = world.step("a");
    assert_eq!(world.seconds(state.resume_after.unwrap()), 3.0);
    assert_eq!(state.execution_id, None);
    assert_eq!(world.wake, state.resume_after);
}

#[test]
fn an_attempt_that_succeeds_leaves_no_trace_but_the_number() {
    check(
        flow([http("a").retry(fixed(2))]),
        [answer(1.0, "a", 500, ""), answer(4.0, "a", 200, "")],
        "0s call a#1
        3s call a#2
        4s Succeeded Completed
        a Succeeded x2",
    );
}

#[test]
fn delays_are_fixed_linear_or_exponential_and_capped() {
    for (backoff, starts) in [
        (Backoff::Fixed, ["0s", "2s", "4s", "6s", "8s"]),
        (Backoff::Linear, ["0s", "2s", "6s", "12s", "19s"]),
        (Backoff::Exponential, ["0s", "2s", "8s", "15s", "22s"]),
    ] {
        let policy = RetryPolicy {
            max_retries: 4,
            backoff,
            initial_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(7),
            multiplier: 3.0,
        };
        let mut world = World::new(flow([http("a").retry(policy)]));
        world.play([]);
        while !world.is_over() {
            let now = world.seconds(world.now);
            world.play([answer(now, "a", 500, "")]);
            if let Some(resume_after) = world.step("a").resume_after {
                world.to(world.seconds(resume_after));
            }
        }
        let calls: Vec<_> = starts
            .iter()
            .enumerate()
            .map(|(index, at)| format!("{at} call a#{}", index + 1))
            .collect();
        assert_eq!(world.log, calls, "{backoff:?}");
    }
}

#[test]
fn retry_after_is_honoured_within_the_longest_delay() {
    for (value, next) in [
        ("10", 11.0),
        ("1", 3.0),
        ("3600", 61.0),
        ("Tue, 01 Dec 2026 08:00:21 GMT", 21.0),
    ] {
        let mut world = World::new(flow([http("a").retry(fixed(1))]));
        let busy = response(429, &[("retry-after", value)], "");
        world.play([(1.0, What::Ends("a", busy))]);
        let resume_after = world.step("a").resume_after.unwrap();
        assert_eq!(world.seconds(resume_after), next, "{value}");
    }
}

#[test]
fn what_cannot_end_otherwise_is_never_retried() {
    for why in [
        reason::EGRESS_DENIED,
        reason::INVALID_REQUEST,
        reason::EVAL_ERROR,
        reason::RESULT_TOO_LARGE,
        reason::REFERENCE_NOT_FOUND,
        reason::MOCK_UNMATCHED,
    ] {
        let mut world = World::new(flow([http("a").retry(fixed(5))]));
        world.play([no_answer(1.0, "a", why, "why: it is so")]);
        let state = world.step("a");
        assert_eq!((state.phase, state.attempts), (StepPhase::Failed, 1));
        assert_eq!(
            (state.reason.as_str(), state.message.as_str()),
            (why, "why: it is so")
        );
    }
    check(
        flow([http("a").result("x", "$.x").retry(fixed(5))]),
        [answer(1.0, "a", 200, "<html>")],
        "0s call a#1
        1s Failed StepFailed: step a failed: result x: the response body is not JSON, so the result mapping '$.x' cannot be applied
        a Failed EvalError: result x: the response body is not JSON, so the result mapping '$.x' cannot be applied",
    );
}

#[test]
fn compatibility_without_retry_on_every_failed_attempt_is_retried() {
    for why in [
        reason::DNS,
        reason::CONNECT,
        reason::TLS,
        reason::TIMED_OUT,
        reason::RESPONSE_TOO_LARGE,
        reason::EXECUTOR_LOST,
        reason::EXECUTOR_UNAVAILABLE,
        reason::CANCELED,
        reason::HTTP_STATUS,
    ] {
        let mut world = World::new(flow([http("a").retry(fixed(1))]));
        world.play([
            no_answer(1.0, "a", why, "it is so"),
            answer(4.0, "a", 200, ""),
        ]);
        assert_eq!(world.step("a").phase, StepPhase::Succeeded, "{why}");
    }
}

#[test]
fn a_transform_is_not_retried() {
    check(
        flow([transform("a", &[("x", "$(1 / 0)")]).retry(fixed(5))]),
        [],
        "0s Failed StepFailed: step a failed: mapping x: $(1 / 0): division by zero
        a Failed EvalError: mapping x: $(1 / 0): division by zero",
    );
}

#[test]
fn an_executor_that_was_lost_is_a_failed_attempt() {
    check(
        flow([http("a").retry(fixed(1))]),
        [
            no_answer(
                1.0,
                "a",
                reason::EXECUTOR_LOST,
                "executor_lost: connection reset",
            ),
            no_answer(
                4.0,
                "a",
                reason::EXECUTOR_LOST,
                "executor_lost: connection reset",
            ),
        ],
        "0s call a#1
        3s call a#2
        4s Failed StepFailed: step a failed: executor_lost: connection reset (after 2 attempts)
        a Failed x2 ExecutorLost: executor_lost: connection reset (after 2 attempts)",
    );
}

#[test]
fn what_was_not_delivered_is_handed_out_again_without_counting_an_attempt() {
    check(
        flow([http("a")]),
        [
            not_delivered(0.0, "a"),
            not_delivered(0.1, "a"),
            not_delivered(0.5, "a"),
            answer(1.0, "a", 200, ""),
        ],
        "0s call a#1
        0.1s call a#1
        0.3s call a#1
        0.9s call a#1
        1s Succeeded Completed
        a Succeeded",
    );
}

#[test]
fn not_delivered_until_the_steps_time_is_up_is_a_failed_attempt() {
    let mut world = World::new(flow([http("a")
        .call_timeout(20)
        .timeout(3)
        .retry(fixed(1))]));
    world.play([]);
    let mut at = 0.0;
    while world.step("a").resume_after.is_none() {
        world.play([not_delivered(at, "a")]);
        if let Some(wake) = world.wake.filter(|_| world.calls.is_empty()) {
            at = world.seconds(wake);
            if world.step("a").resume_after.is_none() {
                world.to(at);
            }
        }
    }
    world.assert(
        "0s call a#1
        0.1s call a#1
        0.3s call a#1
        0.7s call a#1
        1.5s call a#1
        Running
        a Running Retrying: attempt 1 of 2 failed: no executor took the call within 3s: connection refused",
    );
    assert_eq!(at, 3.5, "the backoff begins when the time would be up");
}

#[test]
fn the_time_in_a_queue_does_not_count_as_not_delivered() {
    let mut world = World::new(flow([http("a")]));
    world.calls_leave = false;
    world.play([(300.0, What::Nothing), not_delivered(300.0, "a")]);
    assert_eq!(world.step("a").phase, StepPhase::Running);
    world.to(300.1);
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn a_visible_backoff_is_stored_at_once_and_a_short_one_needs_no_write() {
    for (millis, write) in [(999, WriteNeed::None), (1000, WriteNeed::Now)] {
        let policy = RetryPolicy {
            initial_delay: Duration::from_millis(millis),
            ..fixed(1)
        };
        let mut world = World::new(flow([http("a").retry(policy)]));
        world.play([answer(1.0, "a", 500, "")]);
        assert_eq!(world.write, write, "{millis} ms");
    }
}

#[test]
fn while_the_next_attempt_runs_people_see_why_it_does() {
    check(
        flow([http("a").retry(fixed(2))]),
        [answer(1.0, "a", 500, ""), (3.0, What::Nothing)],
        "0s call a#1
        3s call a#2
        Running
        a Running x2: attempt 1 of 3 failed: the target answered HTTP 500",
    );
}

#[test]
fn each_attempt_has_its_own_time_to_be_delivered() {
    let mut world = World::new(flow([http("a").timeout(10).retry(fixed(1))]));
    world.play([
        not_delivered(0.0, "a"),
        answer(9.0, "a", 500, ""),
        not_delivered(20.0, "a"),
        (20.2, What::Nothing),
    ]);
    world.assert(
        "0s call a#1
        0.1s call a#1
        11s call a#2
        20.1s call a#2
        Running
        a Running x2: attempt 1 of 2 failed: the target answered HTTP 500",
    );
}

#[test]
fn a_call_that_was_not_delivered_has_no_id_and_keeps_its_start() {
    let mut world = World::new(flow([http("a")]));
    world.play([(0.0, What::Nothing), not_delivered(1.0, "a")]);
    assert_eq!(world.step("a").execution_id, None);
    world.to(5.0);
    assert_eq!(world.seconds(world.step("a").start_time.unwrap()), 0.0);
}

#[test]
fn a_call_is_not_handed_out_again_when_its_time_would_be_up() {
    for (at, phase) in [(2.899, StepPhase::Running), (2.9, StepPhase::Failed)] {
        let mut world = World::new(flow([http("a").timeout(3)]));
        world.play([not_delivered(at, "a")]);
        assert_eq!(world.step("a").phase, phase, "{at}");
    }
}
