//! Validation rules of the schema, written in CEL.

use serde_json::json;

use super::scene::{Scene, flow, run, trigger, with};

super::cases!("validation rules":
    a_union_needs_the_block_of_its_type,
    a_rule_names_the_field_it_is_about,
    exactly_one_target_is_needed,
    a_transition_rule_holds_a_spec,
    a_transition_rule_lets_other_changes_pass,
    a_rule_inside_of_a_list_names_the_item,
    rules_wait_for_a_valid_shape,
    a_rule_reads_the_name,
);

async fn a_union_needs_the_block_of_its_type(scene: &Scene) {
    let mut object = trigger("one");
    object["spec"]["type"] = "cron".into();
    let status = scene.post(&scene.path("triggers"), object).await.refused(
        422,
        "Invalid",
        "spec.cron: Required value: type cron needs this block",
    );
    assert_eq!(status["details"]["causes"][0]["field"], "spec.cron");
}

async fn a_rule_names_the_field_it_is_about(scene: &Scene) {
    let object = with(trigger("one"), "/spec/flowRef/namespace", "other".into());
    let status = scene.post(&scene.path("triggers"), object).await.refused(
        422,
        "Invalid",
        "spec.flowRef.namespace: Forbidden: ",
    );
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "FieldValueForbidden"
    );
}

async fn exactly_one_target_is_needed(scene: &Scene) {
    let mut object = trigger("one");
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("flowRef");
    }
    let answer = scene.post(&scene.path("triggers"), object).await;
    answer.refused(
        422,
        "Invalid",
        "Trigger.automation.kubezap.io \"one\" is invalid: spec.flowRef: Required value: ",
    );
}

async fn a_transition_rule_holds_a_spec(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let patch = json!({"spec": {"flowRef": {"name": "other"}}});
    scene
        .patch(&scene.path("flowruns/one"), "merge-patch", patch)
        .await
        .refused(
            422,
            "Invalid",
            "spec: Forbidden: the spec of a FlowRun cannot be changed; make another FlowRun",
        );
}

async fn a_transition_rule_lets_other_changes_pass(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    scene
        .patch(&scene.path("flowruns/one"), "merge-patch", patch)
        .await
        .expect(200);
    let patch = json!({"status": {"phase": "Running"}});
    let path = scene.path("flowruns/one/status");
    scene.patch(&path, "merge-patch", patch).await.expect(200);
}

async fn a_rule_inside_of_a_list_names_the_item(scene: &Scene) {
    let steps = json!([
        {"name": "good", "action": {"type": "wait", "wait": {"duration": "1s"}}},
        {"name": "bad", "action": {"type": "http"}},
    ]);
    let object = with(flow("one"), "/spec/steps", steps);
    let answer = scene.post(&scene.path("flows"), object).await;
    answer.refused(
        422,
        "Invalid",
        "spec.steps[1].action.http: Required value: type http needs this block",
    );
}

async fn rules_wait_for_a_valid_shape(scene: &Scene) {
    let mut object = trigger("one");
    object["spec"]["type"] = "absent".into();
    let status = scene.post(&scene.path("triggers"), object).await.refused(
        422,
        "Invalid",
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    );
    let causes = status["details"]["causes"].as_array().map_or(0, Vec::len);
    assert_eq!(causes, 2, "{status}");
}

async fn a_rule_reads_the_name(scene: &Scene) {
    let object = json!({"metadata": {"name": "other"}, "spec": {}});
    let path = scene.path("webhookgatewayconfigs");
    let answer = scene.post(&path, object).await;
    answer.refused(
        422,
        "Invalid",
        "a namespace has one WebhookGatewayConfig, and its name is default",
    );
    let object = json!({"metadata": {"name": "default"}, "spec": {}});
    scene.post(&path, object).await.expect(201);
}
