//! What must be stored when, and how a run goes on after a crash.

use kubezap_engine::advance::{LiveRun, WriteNeed, finished};
use kubezap_engine::flow::OnFailure;
use kubezap_engine::observation::Observation;
use kubezap_engine::run::{Run, RunPhase, StepPhase, reason};

use crate::draft::{Words, fixed, flow, http, transform, wait};
use crate::world::{What, World, answer, check, response};

/// How urgently the state has to be stored after each of the script's events.
fn writes<const N: usize>(world: &mut World, script: [(f64, What); N]) -> Vec<WriteNeed> {
    world.play([]);
    let mut needs = vec![std::mem::take(&mut world.write)];
    for event in script {
        world.play([event]);
        needs.push(std::mem::take(&mut world.write));
    }
    needs
}

#[test]
fn outcomes_are_stored_soon_and_the_end_at_once() {
    let mut world = World::new(flow([http("a"), http("b").after(&["a"])]));
    let needs = writes(
        &mut world,
        [answer(1.0, "a", 200, ""), answer(2.0, "b", 200, "")],
    );
    assert_eq!(needs, [WriteNeed::None, WriteNeed::Soon, WriteNeed::Now]);
}

#[test]
fn transforms_and_conditions_cost_no_write() {
    let mut world = World::new(flow([
        transform("a", &[("x", "1")]),
        transform("b", &[("x", "$(1 / 0)")]).on_failure(OnFailure::Continue),
        http("c").when("false"),
        http("d").after(&["c"]),
        http("e"),
    ]));
    assert_eq!(writes(&mut world, []), [WriteNeed::None]);
}

#[test]
fn what_was_read_from_the_cluster_is_stored_for_it_may_change() {
    let mut world = World::new(flow([
        transform("a", &[("x", "$(configmaps.c.k)")]),
        http("b").when("configmaps['c']['k'] == 'yes'"),
        http("c"),
    ]));
    let needs = writes(
        &mut world,
        [
            (1.0, What::Read("a", Ok(vec![("k", "yes")]))),
            (1.0, What::Read("b", Ok(vec![("k", "no")]))),
        ],
    );
    assert_eq!(needs, [WriteNeed::None, WriteNeed::Soon, WriteNeed::Soon]);
}

#[test]
fn a_wait_rides_on_the_outcome_that_starts_it() {
    let mut world = World::new(flow([
        http("a"),
        wait("b", 5).after(&["a"]),
        http("c").after(&["b"]),
    ]));
    let needs = writes(&mut world, [answer(1.0, "a", 200, "")]);
    assert_eq!(needs, [WriteNeed::None, WriteNeed::Now]);
    assert_eq!(world.step("a").phase, StepPhase::Succeeded);
    assert_eq!(world.step("b").phase, StepPhase::Waiting);
}

#[test]
fn a_call_needs_the_outcomes_of_all_calls_before_it_stored() {
    let draft = flow([
        http("a"),
        http("beside"),
        transform("b", &[("x", "$(steps.a.results.body)")]),
        wait("c", 1).after(&["b"]),
        http("d").after(&["c"]),
        http("skipped").when("false"),
        transform("read", &[("x", "$(configmaps.c.k)")]),
        http("e").after(&["d", "skipped", "read"]),
    ]);
    let world = check(
        draft,
        [
            answer(1.0, "a", 200, ""),
            answer(3.0, "d", 200, ""),
            (4.0, What::Read("read", Ok(vec![("k", "v")]))),
        ],
        "0s call a#1
        0s call beside#1
        0s read for read
        2s call d#1
        4s call e#1
        Running
        a Succeeded
        beside Running
        b Succeeded
        c Succeeded
        d Succeeded
        skipped Skipped ConditionFalse: false is false
        read Succeeded
        e Running",
    );
    let needs = |step: &str| -> Vec<_> {
        let set = world.live.must_be_stored(&world.flow, world.index(step));
        kubezap_engine::graph::members(set)
            .map(|step| world.flow.steps[step].name.to_string())
            .collect()
    };
    assert!(needs("a").is_empty());
    assert_eq!(needs("d"), ["a"]);
    assert_eq!(needs("e"), ["a", "d", "read"]);
}

#[test]
fn a_failed_call_that_counts_as_skipped_must_be_stored_all_the_same() {
    let mut world = World::new(flow([
        http("a").on_failure(OnFailure::Skip),
        http("b").body("$(steps.a.message)"),
    ]));
    world.play([answer(1.0, "a", 500, "")]);
    assert_eq!(world.live.must_be_stored(&world.flow, 1), 0b1);
}

#[test]
fn the_finished_steps_of_a_run_are_those_with_an_outcome() {
    let world = check(
        flow([
            http("a"),
            wait("b", 5),
            http("c").when("false"),
            http("d").after(&["b"]),
        ]),
        [answer(1.0, "a", 200, "")],
        "0s call a#1
        Running
        a Succeeded
        b Waiting Waiting
        c Skipped ConditionFalse: false is false
        d Pending",
    );
    assert_eq!(finished(world.run()), 0b101);
    assert_eq!(finished(&Run::default()), 0);
}

#[test]
fn what_is_stored_is_not_called_again_after_a_crash() {
    check(
        flow([http("a"), http("leaf"), http("b").after(&["a"])]),
        [
            answer(1.0, "a", 200, ""),
            answer(1.0, "leaf", 200, ""),
            (2.0, What::Restart),
            answer(3.0, "b", 200, ""),
        ],
        "0s call a#1
        0s call leaf#1
        1s call b#1
        2s restart
        2s call b#2
        3s Succeeded Completed
        a Succeeded
        leaf Succeeded
        b Succeeded x2",
    );
}

#[test]
fn a_call_that_was_out_in_a_crash_is_made_again_under_another_id_and_the_same_key() {
    let mut world = World::new(flow([http("a")]));
    world.play([]);
    let first = world.call("a").clone();
    world.restart();
    let second = world.call("a").clone();
    assert_ne!(first.execution_id, second.execution_id);
    assert!(first.execution_id.starts_with("i1-"));
    assert!(second.execution_id.starts_with("i2-"));
    assert_eq!(first.idempotency_key, second.idempotency_key);
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(
        world.step("a").execution_id.as_deref(),
        Some(second.execution_id.as_str())
    );
    let late = Observation::CallFinished {
        execution_id: first.execution_id,
        outcome: response(200, &[], ""),
    };
    world.turn(&[late]);
    assert_eq!(world.step("a").phase, StepPhase::Running);
}

#[test]
fn attempts_are_counted_on_after_a_crash() {
    check(
        flow([http("a").retry(fixed(2))]),
        [
            answer(1.0, "a", 500, ""),
            (2.0, What::Restart),
            (4.0, What::Restart),
            answer(5.0, "a", 500, ""),
        ],
        "0s call a#1
        2s restart
        3s call a#2
        4s restart
        4s call a#3
        5s Failed StepFailed: step a failed: the target answered HTTP 500 (after 3 attempts)
        a Failed x3 HTTPStatus: the target answered HTTP 500 (after 3 attempts)",
    );
}

#[test]
fn a_run_that_stops_does_not_repeat_what_a_crash_interrupted() {
    let mut world = World::new(flow([http("a"), http("b")]));
    world.play([answer(1.0, "b", 500, "")]);
    world.restart();
    world.assert(
        "0s call a#1
        0s call b#1
        1s restart
        1s Failed StepFailed: step b failed: the target answered HTTP 500
        a Failed Canceled: the run ended while the call was out
        b Failed HTTPStatus: the target answered HTTP 500",
    );
}

#[test]
fn a_run_stored_as_queued_begins_afresh() {
    let mut world = World::new(flow([http("a")]));
    let stored = Run {
        reason: reason::QUEUED.to_owned(),
        message: "waits for its turn".to_owned(),
        revision: Some("shop-1".to_owned()),
        ..world.run().clone()
    };
    world.restart_from(stored);
    let run = world.run();
    assert_eq!((run.phase, run.reason.as_str()), (RunPhase::Running, ""));
    assert_eq!(run.message, "");
    assert_eq!(run.revision.as_deref(), Some("shop-1"));
    assert_eq!(world.step("a").attempts, 1);
}

#[test]
fn steps_are_found_by_name_in_what_was_stored() {
    let world = World::new(flow([http("a"), http("b")]));
    let mut stored = world.run().clone();
    stored.steps.reverse();
    stored.steps[0].phase = StepPhase::Succeeded;
    stored.steps.push(Default::default());
    let live = LiveRun::new(&world.flow, &world.spec, Some(stored), "i2");
    assert_eq!(live.run.steps.len(), 2);
    assert_eq!(live.run.steps[1].phase, StepPhase::Succeeded);
    assert_eq!(live.run.steps[0].phase, StepPhase::Pending);
}

#[test]
fn a_terminal_run_that_was_stored_stays_as_it_is() {
    let mut world = check(
        flow([http("a")]),
        [answer(1.0, "a", 200, "")],
        "0s call a#1
        1s Succeeded Completed
        a Succeeded",
    );
    world.restart();
    world.assert(
        "0s call a#1
        1s restart
        1s Succeeded Completed
        a Succeeded",
    );
}

#[test]
fn transforms_recomputed_after_a_crash_give_the_same() {
    let draft = || {
        flow([
            transform("root", &[("t", "$(string(now()))")]),
            http("a"),
            transform("b", &[("t", "$(string(now())) $(steps.root.results.t)")]).after(&["a"]),
            http("c").after(&["b"]).body("$(string(now()))"),
        ])
    };
    let mut world = World::new(draft());
    world.play([answer(1.0, "a", 200, "")]);
    let expected = world.result("b", "t").unwrap().to_owned();
    let call = world.call("c").clone();

    // Only the outcome of the call was stored.
    let mut stored = world.run().clone();
    for name in ["root", "b", "c"] {
        let index = world.index(name);
        stored.steps[index] = kubezap_engine::run::StepState {
            name: stored.steps[index].name.clone(),
            ..Default::default()
        };
    }
    world.to(5.0);
    world.restart_from(stored);
    assert_eq!(world.result("b", "t"), Some(expected.as_str()));
    assert_eq!(world.call("c").scope.now, call.scope.now);
}
