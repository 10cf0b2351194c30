//! What a step leaves for others.

use kubezap_engine::flow::OnFailure;
use kubezap_engine::run::StepResult;

use crate::draft::{Words, fixed, flow, http, transform};
use crate::world::{World, answer};

fn results(world: &World, step: &str) -> Vec<(String, String)> {
    let pair = |result: &StepResult| (result.name.clone(), result.value.clone());
    world.step(step).results.iter().map(pair).collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn compatibility_a_body_that_nothing_reads_is_discarded_whatever_its_size() {
    let mut world = World::new(flow([http("a")]));
    world.play([answer(1.0, "a", 200, &"x".repeat(10_000_000))]);
    assert_eq!(world.run().phase.as_str(), "Succeeded");
    assert!(results(&world, "a").is_empty());
}

#[test]
fn implicit_results_are_stored_only_if_something_refers_to_them() {
    let mut world = World::new(flow([
        http("a"),
        http("b"),
        http("c"),
        http("d").body("$(steps.a.results.statusCode) $(steps.b.results.body)"),
        http("e").when("size(steps.c.results) == 3"),
    ]));
    world.play([
        answer(1.0, "a", 201, "A"),
        answer(1.0, "b", 202, "B"),
        answer(1.0, "c", 203, "C"),
    ]);
    assert_eq!(results(&world, "a"), owned(&[("statusCode", "201")]));
    assert_eq!(results(&world, "b"), owned(&[("body", "B")]));
    assert_eq!(
        results(&world, "c"),
        owned(&[("status", "203"), ("statusCode", "203"), ("body", "C")])
    );
    assert_eq!(world.step("e").phase.as_str(), "Running");
}

#[test]
fn compatibility_a_mapping_named_as_an_implicit_result_wins() {
    let mut world = World::new(flow([
        http("a").result("status", "$.state").result("n", "$.n"),
        transform(
            "b",
            &[(
                "x",
                "$(steps.a.results.status) $(steps.a.results.statusCode)",
            )],
        ),
    ]));
    world.play([answer(1.0, "a", 200, r#"{"state": "paid", "n": 1}"#)]);
    assert_eq!(
        results(&world, "a"),
        owned(&[("status", "paid"), ("n", "1"), ("statusCode", "200")])
    );
    assert_eq!(world.result("b", "x"), Some("paid 200"));
}

#[test]
fn compatibility_a_mapping_without_a_match_gives_the_empty_text() {
    let mut world = World::new(flow([http("a").result("x", "$.nope").result("y", "$.y")]));
    world.play([answer(1.0, "a", 204, "")]);
    assert_eq!(results(&world, "a"), owned(&[("x", ""), ("y", "")]));
}

#[test]
fn a_failed_call_leaves_what_it_answered_for_those_who_ask() {
    let mut world = World::new(flow([
        http("a")
            .result("id", "$.id")
            .retry(fixed(1))
            .on_failure(OnFailure::Continue),
        transform(
            "b",
            &[(
                "x",
                "$(steps.a.results.status) $(steps.a.results.body) [$(steps.a.results.id)]",
            )],
        ),
    ]));
    world.play([answer(1.0, "a", 500, "first")]);
    assert!(results(&world, "a").is_empty(), "another attempt follows");
    world.play([answer(4.0, "a", 422, "second")]);
    assert_eq!(world.result("b", "x"), Some("422 second []"));
}

#[test]
fn a_failure_that_counts_as_skipped_leaves_nothing() {
    let mut world = World::new(flow([
        http("a").on_failure(OnFailure::Skip),
        transform("b", &[("x", "[$(steps.a.results.body)]")]),
    ]));
    world.play([answer(1.0, "a", 500, "oops")]);
    assert!(results(&world, "a").is_empty());
    assert_eq!(world.result("b", "x"), Some("[]"));
}

#[test]
fn what_a_value_contains_is_not_expanded_again() {
    let mut world = World::new(flow([
        http("a"),
        transform("b", &[("x", "$(steps.a.results.body)")]),
        transform("c", &[("x", "$(steps.b.results.x)")]),
    ]));
    world.play([answer(1.0, "a", 200, "$(secrets.crm.token) $(1 + 1)")]);
    assert_eq!(
        world.result("c", "x"),
        Some("$(secrets.crm.token) $(1 + 1)")
    );
}

#[test]
fn a_body_that_is_not_text_keeps_what_is() {
    let mut world = World::new(flow([
        http("a"),
        transform("b", &[("x", "$(steps.a.results.body)")]),
    ]));
    world.play([]);
    let execution_id = world.call("a").execution_id.clone();
    world.turn(&[kubezap_engine::observation::Observation::CallFinished {
        execution_id,
        outcome: kubezap_engine::observation::CallOutcome::Response(
            kubezap_engine::observation::Response {
                status: 200,
                headers: Vec::new(),
                body: b"ok \xff".to_vec(),
            },
        ),
    }]);
    assert_eq!(world.result("b", "x"), Some("ok \u{fffd}"));
}
