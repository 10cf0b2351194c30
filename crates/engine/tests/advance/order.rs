//! Which step starts when, and which is skipped.

use kubezap_engine::flow::OnFailure;
use kubezap_engine::observation::Observation;
use kubezap_engine::run::{RunPhase, StepPhase};

use crate::draft::{Words, flow, http, transform, wait};
use crate::world::{What, World, answer, check, no_answer};

#[test]
fn a_chain_runs_one_step_after_the_other() {
    check(
        flow([http("a"), http("b").after(&["a"]), http("c").after(&["b"])]),
        [
            answer(1.0, "a", 200, ""),
            answer(2.5, "b", 201, ""),
            answer(3.0, "c", 299, ""),
        ],
        "0s call a#1
        1s call b#1
        2.5s call c#1
        3s Succeeded Completed
        a Succeeded
        b Succeeded
        c Succeeded",
    );
}

#[test]
fn compatibility_steps_without_run_after_run_in_parallel() {
    check(
        flow([http("a"), http("b"), http("c").after(&["a", "b"])]),
        [answer(1.0, "b", 200, ""), answer(2.0, "a", 200, "")],
        "0s call a#1
        0s call b#1
        2s call c#1
        Running
        a Succeeded
        b Succeeded
        c Running",
    );
}

#[test]
fn a_step_waits_for_what_its_expressions_refer_to() {
    let world = check(
        flow([
            http("late").body("$(steps.pay-card.results.id)"),
            http("pay-card").result("id", "$.id"),
            transform("sum", &[("n", "$(steps.pay_card.results.id + 'x')")]),
            http("told").when("steps.pay_card.status == 'Succeeded'"),
        ]),
        [answer(1.0, "pay-card", 200, r#"{"id": 7}"#)],
        "0s call pay-card#1
        1s call late#1
        1s call told#1
        Running
        late Running
        pay-card Succeeded
        sum Succeeded
        told Running",
    );
    assert_eq!(world.result("sum", "n"), Some("7x"));
}

#[test]
fn the_order_in_the_manifest_does_not_matter() {
    check(
        flow([
            http("c").after(&["b"]),
            transform("b", &[("x", "1")]).after(&["a"]),
            transform("a", &[("x", "1")]),
        ]),
        [],
        "0s call c#1
        Running
        c Running
        b Succeeded
        a Succeeded",
    );
}

#[test]
fn when_all_conditions_are_true_the_step_runs() {
    check(
        flow([http("a").when("true").when("trigger.body == ''")]),
        [],
        "0s call a#1
        Running
        a Running",
    );
}

#[test]
fn when_any_condition_is_false_the_step_is_skipped() {
    check(
        flow([http("a").when("true").when("trigger.body == 'x'")]),
        [],
        "0s Succeeded Completed
        a Skipped ConditionFalse: trigger.body == 'x' is false",
    );
}

#[test]
fn compatibility_a_condition_that_fails_fails_the_step_and_is_not_taken_for_false() {
    let world = check(
        flow([http("a").when("trigger.bodyFields.total > 1"), http("b")]),
        [],
        "0s Failed StepFailed: step a failed: when: 'trigger.bodyFields.total > 1': no such key: total; guard it with has() or .?
        a Failed EvalError: when: 'trigger.bodyFields.total > 1': no such key: total; guard it with has() or .?
        b Skipped NotReached",
    );
    assert_eq!(world.step("a").attempts, 0);
    assert_eq!(world.step("a").start_time, None);
}

#[test]
fn a_condition_beyond_its_budget_fails_the_step() {
    let slow = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, true)))))";
    let world = check_run(flow([http("a").when(slow)]));
    assert_eq!(world.step("a").phase, StepPhase::Failed);
    assert_eq!(world.step("a").reason, "EvalError");
}

fn check_run(draft: kubezap_engine::flow::FlowDraft) -> World {
    let mut world = World::new(draft);
    world.turn(&[]);
    world
}

#[test]
fn a_step_whose_run_after_is_all_skipped_is_skipped() {
    check(
        flow([
            http("a").when("false"),
            http("b").when("false"),
            http("c").after(&["a", "b"]),
            http("d").after(&["c"]),
        ]),
        [],
        "0s Succeeded Completed
        a Skipped ConditionFalse: false is false
        b Skipped ConditionFalse: false is false
        c Skipped DependencySkipped: every step it runs after was skipped
        d Skipped DependencySkipped: every step it runs after was skipped",
    );
}

#[test]
fn a_step_runs_when_one_of_its_run_after_succeeded() {
    check(
        flow([
            http("a").when("false"),
            http("b"),
            http("c").after(&["a", "b"]),
        ]),
        [answer(1.0, "b", 200, "")],
        "0s call b#1
        1s call c#1
        Running
        a Skipped ConditionFalse: false is false
        b Succeeded
        c Running",
    );
}

#[test]
fn a_step_runs_when_one_of_its_run_after_failed_and_was_absorbed() {
    check(
        flow([
            http("a").when("false"),
            http("b").on_failure(OnFailure::Continue),
            http("c").after(&["a", "b"]),
        ]),
        [answer(1.0, "b", 500, "")],
        "0s call b#1
        1s call c#1
        Running
        a Skipped ConditionFalse: false is false
        b Failed HTTPStatus: the target answered HTTP 500
        c Running",
    );
}

#[test]
fn compatibility_the_cascade_looks_at_run_after_only_and_missing_results_are_empty() {
    let world = check(
        flow([
            http("a").when("false").result("id", "$.id"),
            transform("b", &[("x", "[$(steps.a.results.id)]")]),
            transform("c", &[("x", "$(steps.a.status)")]).after(&["b"]),
            transform("d", &[("x", "1")]).after(&["a"]),
        ]),
        [],
        "0s Succeeded Completed
        a Skipped ConditionFalse: false is false
        b Succeeded
        c Succeeded
        d Skipped DependencySkipped: every step it runs after was skipped",
    );
    assert_eq!(world.result("b", "x"), Some("[]"));
    assert_eq!(world.result("c", "x"), Some("Skipped"));
}

#[test]
fn compatibility_all_steps_are_shown_from_the_beginning_in_the_flows_order() {
    let mut world = World::new(flow([http("z").after(&["a"]), wait("m", 5), http("a")]));
    let names = |world: &World| -> Vec<_> {
        let steps = world.run().steps.iter();
        steps.map(|step| step.name.to_string()).collect()
    };
    assert_eq!(names(&world), ["z", "m", "a"]);
    assert_eq!(world.run().phase, RunPhase::Pending);
    world.turn(&[]);
    assert_eq!(names(&world), ["z", "m", "a"]);
    assert_eq!(world.step("z").phase, StepPhase::Pending);
}

#[test]
fn times_are_those_of_the_steps_and_whole_microseconds() {
    let world = check(
        flow([http("a"), http("b").after(&["a"])]),
        [answer(1.000_000_9, "a", 200, ""), answer(2.0, "b", 200, "")],
        "0s call a#1
        1.0000009s call b#1
        2s Succeeded Completed
        a Succeeded
        b Succeeded",
    );
    let second = |time: Option<jiff::Timestamp>| world.seconds(time.unwrap());
    assert_eq!(second(world.run().start_time), 0.0);
    assert_eq!(second(world.run().completion_time), 2.0);
    assert_eq!(second(world.step("a").start_time), 0.0);
    assert_eq!(second(world.step("a").completion_time), 1.0);
    assert_eq!(second(world.step("b").start_time), 1.0);
}

#[test]
fn now_is_the_newest_stored_completion_of_what_came_before() {
    let now = |name: &str| transform(name, &[("t", "$(string(now()))")]);
    let world = check(
        flow([
            now("first"),
            http("a"),
            now("then").after(&["a"]),
            now("last").after(&["then", "first"]),
        ]),
        [answer(1.5, "a", 200, "")],
        "0s call a#1
        1.5s Succeeded Completed
        first Succeeded
        a Succeeded
        then Succeeded
        last Succeeded",
    );
    assert_eq!(world.result("first", "t"), Some("2026-12-01T08:00:00Z"));
    assert_eq!(world.result("then", "t"), Some("2026-12-01T08:00:01.5Z"));
    assert_eq!(world.result("last", "t"), Some("2026-12-01T08:00:01.5Z"));
}

#[test]
fn configmaps_of_conditions_and_transforms_are_read_before_they_are_evaluated() {
    let world = check(
        flow([
            transform("a", &[("x", "$(configmaps.shop.region)")]),
            http("b").when("configmaps['shop']['open'] == 'yes'"),
        ]),
        [
            (1.0, What::Read("a", Ok(vec![("region", "eu")]))),
            (2.0, What::Read("b", Ok(vec![("open", "no")]))),
        ],
        "0s read for a
        0s read for b
        2s Succeeded Completed
        a Succeeded
        b Skipped ConditionFalse: configmaps['shop']['open'] == 'yes' is false",
    );
    assert_eq!(world.result("a", "x"), Some("eu"));
}

#[test]
fn a_configmap_that_is_missing_fails_the_step_with_its_name() {
    check(
        flow([transform("a", &[("x", "$(configmaps.shop.region)")])]),
        [(
            1.0,
            What::Read("a", Err("configmap shop does not exist".to_owned())),
        )],
        "0s read for a
        1s Failed StepFailed: step a failed: configmap shop does not exist
        a Failed ReferenceNotFound: configmap shop does not exist",
    );
    check(
        flow([transform("a", &[("x", "$(configmaps.shop.region)")])]),
        [(1.0, What::Read("a", Ok(Vec::new())))],
        "0s read for a
        1s Failed StepFailed: step a failed: mapping x: $(configmaps.shop.region): configmap shop has no key region
        a Failed ReferenceNotFound: mapping x: $(configmaps.shop.region): configmap shop has no key region",
    );
}

#[test]
fn a_call_names_what_must_be_read_before_it_is_rendered() {
    let world = {
        let mut world = World::new(flow([http("a")
            .header("Authorization", "Bearer $(secrets.crm.token)")
            .body("$(configmaps.shop.region)")]));
        world.turn(&[]);
        world
    };
    let call = world.call("a");
    let names = |keys: &std::collections::BTreeSet<kubezap_engine::effect::KeyRef>| -> Vec<_> {
        keys.iter()
            .map(|key| format!("{}.{}", key.name, key.key))
            .collect()
    };
    assert_eq!(names(&call.references.secrets), ["crm.token"]);
    assert_eq!(names(&call.references.configmaps), ["shop.region"]);
    assert_eq!(call.idempotency_key, "uid-1/a");
    assert!(world.reads.is_empty());
}

#[test]
fn an_unknown_call_is_ignored() {
    let mut world = World::new(flow([http("a")]));
    world.turn(&[]);
    let before = world.run().clone();
    for execution_id in ["", "i1-2-0000", "\u{0}"] {
        let execution_id = execution_id.to_owned();
        world.turn(&[
            Observation::CallStarted {
                execution_id: execution_id.clone(),
            },
            Observation::CallFinished {
                execution_id,
                outcome: crate::world::response(200, &[], ""),
            },
        ]);
    }
    for step in [0, 1, usize::MAX] {
        let result = Ok(Default::default());
        world.turn(&[Observation::ReferencesRead { step, result }]);
    }
    assert_eq!(*world.run(), before);
}

#[test]
fn a_terminal_run_stays_as_it_is() {
    let mut world = check(
        flow([http("a")]),
        [no_answer(1.0, "a", "Connect", "connect: refused")],
        "0s call a#1
        1s Failed StepFailed: step a failed: connect: refused
        a Failed Connect: connect: refused",
    );
    world.to(1e6);
    world.turn(&[Observation::CancelRequested]);
    assert_eq!(world.run().phase, RunPhase::Failed);
}
