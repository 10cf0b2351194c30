//! Every problem of a Flow is found, with its path.

use std::time::Duration;

use kubezap_engine::flow::{Flow, FlowDraft, ImplicitResult, MAX_RESULTS, MAX_STEPS, OnFailure};

use crate::draft::{Words, flow, http, param, transform, wait};

/// Every problem, a line each.
fn problems(draft: FlowDraft) -> Vec<String> {
    match Flow::new(draft) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

fn assert_problems(draft: FlowDraft, expected: &[&str]) {
    assert_eq!(problems(draft).join("\n"), expected.join("\n"));
}

#[test]
fn all_problems_are_found_at_once() {
    assert_problems(
        FlowDraft {
            params: vec![param("p", false, None), param("p", true, None)],
            ..flow([
                http("a")
                    .after(&["nobody"])
                    .when("steps.gone.status == 'x'"),
                http("a").header("X-Token", "$(params.q)"),
                transform("c", &[("x", "$(secrets.crm.token)"), ("y", "$(1")]),
            ])
        },
        &[
            "spec.steps[1].name: 'a' is the name of steps[0] too: names are unique",
            "spec.params[1].name: 'p' is declared twice",
            "spec.steps[0].runAfter[0]: there is no step 'nobody'",
            "spec.steps[0].when[0].expression: refers to steps.gone, and there is no such step",
            "spec.steps[1].action.http.headers[X-Token]: refers to params.q: declare it in spec.params",
            "spec.steps[2].action.transform.mappings[x]: $(secrets.crm.token): the secret crm cannot be used here: its value would be stored; use it in an http step's url, headers or body",
            "spec.steps[2].action.transform.mappings[y]: the '$(' at character 1 has no matching ')' within 4112 bytes; write $(\"$(\") for the two characters themselves",
        ],
    );
}

#[test]
fn compatibility_a_flow_needs_a_step_and_has_at_most_128() {
    assert_problems(
        flow([]),
        &["spec.steps: has no step: a Flow needs at least one"],
    );
    let many = |count: usize| flow((0..count).map(|index| http(&format!("s{index}"))));
    assert_problems(many(MAX_STEPS), &[]);
    assert_problems(
        many(MAX_STEPS + 1),
        &["spec.steps: has 129 steps, the most is 128"],
    );
}

#[test]
fn compatibility_a_step_has_a_name_of_its_form() {
    for name in ["a", "a-b-1", "a-", &"a".repeat(63)] {
        assert_problems(flow([http(name)]), &[]);
    }
    for name in [
        "",
        "A",
        "1a",
        "-a",
        "a_b",
        "a.b",
        "a b",
        "\u{e4}",
        &"a".repeat(64),
    ] {
        assert_problems(
            flow([http(name)]),
            &[&format!(
                "spec.steps[0].name: '{name}' is no step name: lower-case letters, digits and '-', beginning with a letter, at most 63"
            )],
        );
    }
}

#[test]
fn a_cycle_is_refused_and_named() {
    assert_problems(
        flow([http("a").after(&["b"]), http("b").after(&["a"])]),
        &["spec.steps[0]: steps wait for each other in a circle: a -> b -> a"],
    );
}

#[test]
fn a_cycle_through_expressions_is_refused_too() {
    assert_problems(
        flow([
            http("a").body("$(steps.c.results.body)"),
            http("b").after(&["a"]),
            http("c").when("steps.b.status == 'Succeeded'"),
            http("d").after(&["c"]),
            http("x").after(&["y"]),
            http("y").body("$(steps.x.status)"),
        ]),
        &[
            "spec.steps[0]: steps wait for each other in a circle: a -> b -> c -> a",
            "spec.steps[4]: steps wait for each other in a circle: x -> y -> x",
        ],
    );
}

#[test]
fn a_step_cannot_wait_for_itself() {
    assert_problems(
        flow([
            http("a").after(&["a"]),
            http("b-c").body("$(steps.b_c.results.id)"),
        ]),
        &[
            "spec.steps[0].runAfter[0]: step 'a' cannot run after itself",
            "spec.steps[1].action.http.body: refers to steps.b_c, which is the step itself",
        ],
    );
}

#[test]
fn compatibility_names_in_expressions_may_have_underscores_and_names_in_run_after_not() {
    let named = |after: &str| {
        flow([
            http("pay-card"),
            http("b").body("$(steps.pay_card.status) $(steps.pay-card.status)"),
            http("c").when("steps.pay_card.status == 'x'"),
            http("d").when("steps['pay-card'].status == 'x'"),
            http("e").after(&[after]),
        ])
    };
    let flow = Flow::new(named("pay-card")).unwrap();
    assert_eq!(flow.graph.dependencies, [0, 1, 1, 1, 1]);
    assert_eq!(flow.graph.run_after, [0, 0, 0, 0, 1]);
    assert_problems(
        named("pay_card"),
        &["spec.steps[4].runAfter[0]: there is no step 'pay_card'"],
    );
}

#[test]
fn compatibility_what_a_step_does_not_have_is_refused() {
    let found = problems(flow([
        http("a"),
        http("b").body("$(steps.a.nope)"),
        http("c").url("https://x.example.com/$(steps.a)"),
        http("d").when("steps.a.nope == 1"),
        http("e").body("$(trigger.nope)"),
        http("f").body("$(run.nope)"),
        http("g").when("nope(1)"),
        http("h").when("unknown == 1"),
    ]));
    let paths: Vec<_> = found
        .iter()
        .map(|problem| problem.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(
        paths,
        [
            "spec.steps[1].action.http.body",
            "spec.steps[2].action.http.url",
            "spec.steps[3].when[0].expression",
            "spec.steps[4].action.http.body",
            "spec.steps[5].action.http.body",
            "spec.steps[6].when[0].expression",
            "spec.steps[7].when[0].expression",
        ],
        "{found:?}"
    );
}

#[test]
fn what_does_not_parse_is_refused_with_its_path() {
    let found = problems(flow([
        http("a").url("https://x.example.com/$(1 +"),
        http("b").result("id", "id").result("ok", "$.ok"),
        http("c").when("true").when("trigger.body =="),
        transform("d", &[("x", "$(size(1, 2))")]),
    ]));
    let paths: Vec<_> = found
        .iter()
        .map(|problem| problem.split_once(": ").unwrap().0)
        .collect();
    assert_eq!(
        paths,
        [
            "spec.steps[0].action.http.url",
            "spec.steps[1].action.http.resultMappings[id]",
            "spec.steps[2].when[1].expression",
            "spec.steps[3].action.transform.mappings[x]",
        ],
        "{found:?}"
    );
}

#[test]
fn a_secret_in_a_condition_is_refused() {
    let found = problems(flow([http("a").when("secrets.crm.token == 'x'")]));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("spec.steps[0].when[0].expression: secrets cannot be read"),
        "{found:?}"
    );
}

#[test]
fn a_secret_in_a_request_is_not() {
    assert_problems(
        flow([http("a")
            .url("$(secrets.crm.url)")
            .header("Authorization", "Bearer $(secrets.crm.token)")
            .body(r#"{"key": "$(secrets.crm.key)"}"#)]),
        &[],
    );
}

#[test]
fn a_wait_longer_than_the_run_may_take_is_refused() {
    let within = |seconds: u64| FlowDraft {
        timeout: Duration::from_secs(seconds),
        ..flow([wait("a", 60)])
    };
    assert_problems(within(60), &[]);
    assert_problems(
        within(59),
        &[
            "spec.steps[0].action.wait.duration: a wait of 60s never ends within the run's timeout of 59s: shorten it, or raise spec.timeout",
        ],
    );
}

#[test]
fn a_step_has_at_most_64_results() {
    let names: Vec<_> = (0..=MAX_RESULTS).map(|index| format!("r{index}")).collect();
    let mappings = |count: usize| -> Vec<_> {
        names[..count]
            .iter()
            .map(|name| (name.as_str(), "1"))
            .collect()
    };
    assert_problems(flow([transform("a", &mappings(64))]), &[]);
    assert_problems(
        flow([transform("a", &mappings(65))]),
        &["spec.steps[0].action.transform.mappings: has 65 results; the most for a step is 64"],
    );
    let mapped = |count: usize| {
        names[..count]
            .iter()
            .fold(http("a"), |step, name| step.result(name, "$.x"))
    };
    assert_problems(flow([mapped(64)]), &[]);
    assert_problems(
        flow([mapped(64), http("b").body("$(steps.a.results.body)")]),
        &[
            "spec.steps[0].action.http.resultMappings: has 65 results with body, which expressions refer to; the most for a step is 64",
        ],
    );
}

#[test]
fn implicit_results_are_those_that_something_refers_to_and_no_mapping_shadows() {
    let flow = Flow::new(flow([
        http("a").result("body", "$.text"),
        http("b"),
        transform("c", &[("body", "1")]),
        http("d").body("$(steps.a.results.body) $(steps.a.results.status) $(steps.c.results.body)"),
        http("e").when("steps.b.results.statusCode == '200'"),
    ]))
    .unwrap();
    let implicit: Vec<_> = flow
        .steps
        .iter()
        .map(|step| step.implicit_results.as_slice())
        .collect();
    assert_eq!(
        implicit,
        [
            &[ImplicitResult::Status][..],
            &[ImplicitResult::StatusCode],
            &[],
            &[],
            &[]
        ]
    );
}

#[test]
fn the_failure_policy_is_the_default_of_steps() {
    let flow = Flow::new(FlowDraft {
        failure_policy: OnFailure::Continue,
        ..flow([http("a"), http("b").on_failure(OnFailure::Fail)])
    })
    .unwrap();
    assert_eq!(flow.steps[0].on_failure, OnFailure::Continue);
    assert_eq!(flow.steps[1].on_failure, OnFailure::Fail);
}

#[test]
fn compatibility_secrets_in_transform_mappings_are_refused() {
    for text in ["$(secrets.crm.token)", "x $(secrets.crm.token) y"] {
        let found = problems(flow([transform("a", &[("x", text)])]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("spec.steps[0].action.transform.mappings[x]: "),
            "{found:?}"
        );
    }
}

#[test]
fn compatibility_an_unknown_step_or_parameter_under_a_known_root_is_refused() {
    assert_problems(
        flow([http("a").body("$(steps.b.status) $(params.p) $(b.status)")]),
        &[
            "spec.steps[0].action.http.body: refers to steps.b, and there is no such step",
            "spec.steps[0].action.http.body: refers to params.p: declare it in spec.params",
        ],
    );
}
