//! What an author should know though the Flow runs.

use kubezap_engine::flow::{Flow, FlowDraft};

use crate::draft::{Words, flow, http, transform, wait};

fn warnings(draft: FlowDraft) -> Vec<String> {
    let flow = Flow::new(draft).unwrap();
    flow.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn compatibility_an_unknown_root_stays_text_with_a_warning() {
    assert_eq!(
        warnings(flow([http("a").body("at $(date)")])),
        [
            "spec.steps[0].action.http.body: '$(date)' stays as it is written: its root is none of trigger, steps, params, run, secrets, configmaps"
        ]
    );
}

#[test]
fn a_result_that_a_step_does_not_have_is_warned_of() {
    assert_eq!(
        warnings(flow([
            http("a").result("order-id", "$.id"),
            wait("w", 1),
            transform("t", &[("x", "1")]),
            http("b").body(
                "$(steps.a.results.order_id) $(steps.a.results.body) $(steps.a.results.oder-id)"
            ),
            http("c")
                .when("steps.t.results.x.size() == 1")
                .when("steps.t.results.body == ''"),
            http("d").body("$(steps.w.results.x)"),
        ])),
        [
            "spec.steps[3].action.http.body: refers to steps.a.results.oder-id, and that step has no such result: it is always empty, and in CEL an error",
            "spec.steps[4].when[1].expression: refers to steps.t.results.body, and that step has no such result: it is always empty, and in CEL an error",
            "spec.steps[5].action.http.body: refers to steps.w.results.x, and that step has no such result: it is always empty, and in CEL an error",
        ]
    );
}

#[test]
fn a_wait_longer_than_its_steps_timeout_is_warned_of() {
    assert_eq!(
        warnings(flow([wait("a", 60).timeout(5)])),
        ["spec.steps[0].action.wait.duration: a wait of 60s fails after the step's timeout of 5s"]
    );
}
