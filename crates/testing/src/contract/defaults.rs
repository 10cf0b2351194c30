//! Defaults, pruning, and what the schema refuses.

use serde_json::json;

use super::scene::{Scene, flow, text, trigger, with};

super::cases!("defaults and pruning":
    defaults_are_stored,
    defaults_come_inside_of_list_items,
    an_explicit_null_takes_the_default,
    unknown_fields_are_dropped_with_a_warning,
    unknown_fields_are_refused_when_strict,
    unknown_fields_are_dropped_silently_when_ignored,
    required_fields_are_required,
    wrong_types_are_named,
    patterns_bounds_and_formats_are_held,
    every_fault_is_named_at_once,
);

async fn defaults_are_stored(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    assert_eq!(made["spec"]["timeout"], "10m");
    assert_eq!(made["spec"]["failurePolicy"], "Fail");
    let made = scene.create("triggers", trigger("one")).await;
    assert_eq!(made["spec"]["enabled"], true);
    assert_eq!(made["spec"]["webhook"]["method"], "POST");
}

async fn defaults_come_inside_of_list_items(scene: &Scene) {
    let steps = json!([{
        "name": "call",
        "action": {"type": "http", "http": {"url": "https://example.com"}},
        "retryPolicy": {"maxRetries": 1},
    }]);
    let made = scene
        .create("flows", with(flow("one"), "/spec/steps", steps))
        .await;
    let step = &made["spec"]["steps"][0];
    assert_eq!(step["action"]["http"]["method"], "POST");
    assert_eq!(step["action"]["http"]["timeoutSeconds"], 30);
    assert_eq!(step["retryPolicy"]["initialDelay"], "1s");
}

async fn an_explicit_null_takes_the_default(scene: &Scene) {
    let object = with(flow("one"), "/spec/timeout", json!(null));
    let object = with(object, "/spec/description", json!(null));
    let made = scene.create("flows", object).await;
    assert_eq!(made["spec"]["timeout"], "10m");
    assert!(
        made["spec"].get("description").is_none(),
        "a null without a default is dropped"
    );
}

async fn unknown_fields_are_dropped_with_a_warning(scene: &Scene) {
    let object = with(flow("one"), "/spec/surprise", json!({"deep": 1}));
    let answer = scene.post(&scene.path("flows"), object).await;
    let warning = answer
        .headers
        .get("warning")
        .and_then(|value| value.to_str().ok());
    assert_eq!(
        warning,
        Some("299 - \"unknown field \\\"spec.surprise\\\"\"")
    );
    let made = answer.expect(201);
    assert!(made["spec"].get("surprise").is_none());
}

async fn unknown_fields_are_refused_when_strict(scene: &Scene) {
    let object = with(flow("one"), "/spec/surprise", json!(1));
    let object = with(object, "/spec/steps/0/action/extra", json!(1));
    let path = scene.path("flows?fieldValidation=Strict");
    scene.post(&path, object).await.refused(
        400,
        "BadRequest",
        "Flow in version \"v1alpha1\" cannot be handled as a Flow: strict decoding error: unknown field \"spec.steps[0].action.extra\", unknown field \"spec.surprise\"",
    );
}

async fn unknown_fields_are_dropped_silently_when_ignored(scene: &Scene) {
    let object = with(flow("one"), "/spec/surprise", json!(1));
    let path = scene.path("flows?fieldValidation=Ignore");
    let answer = scene.post(&path, object).await;
    assert!(answer.headers.get("warning").is_none());
    let made = answer.expect(201);
    assert!(made["spec"].get("surprise").is_none());
}

async fn required_fields_are_required(scene: &Scene) {
    let object = with(flow("one"), "/spec", json!({}));
    let status = scene.post(&scene.path("flows"), object).await.refused(
        422,
        "Invalid",
        "Flow.automation.kubezap.io \"one\" is invalid: ",
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldValueRequired");
    assert_eq!(cause["field"], "spec.steps");
    assert_eq!(cause["message"], "Required value");
}

async fn wrong_types_are_named(scene: &Scene) {
    let object = with(flow("one"), "/spec/description", json!(5));
    scene.post(&scene.path("flows"), object).await.refused(
        422,
        "Invalid",
        "spec.description: Invalid value: \"integer\": spec.description in body must be of type string: \"integer\"",
    );
}

async fn patterns_bounds_and_formats_are_held(scene: &Scene) {
    let refused = async |object, text: &str| {
        scene
            .post(&scene.path("flows"), object)
            .await
            .refused(422, "Invalid", text);
    };
    let object = with(flow("one"), "/spec/timeout", "soon".into());
    refused(
        object,
        "spec.timeout: Invalid value: \"soon\": spec.timeout in body should match '",
    )
    .await;
    let object = with(flow("one"), "/spec/description", "x".repeat(4097).into());
    refused(
        object,
        "spec.description: Too long: may not be more than 4096 bytes",
    )
    .await;
    let object = with(flow("one"), "/spec/steps", json!([]));
    refused(
        object,
        "spec.steps: Invalid value: 0: spec.steps in body should have at least 1 items",
    )
    .await;
    let step = &flow("one")["spec"]["steps"][0];
    let object = with(flow("one"), "/spec/steps", json!([step, step]));
    refused(
        object,
        "spec.steps[1]: Duplicate value: {\"name\":\"pause\"}",
    )
    .await;
    let object = with(
        flow("one"),
        "/spec/steps/0/retryPolicy",
        json!({"maxRetries": -1}),
    );
    refused(
        object,
        "spec.steps[0].retryPolicy.maxRetries in body should be greater than or equal to 0",
    )
    .await;
}

async fn every_fault_is_named_at_once(scene: &Scene) {
    let object = with(flow("one"), "/spec/timeout", "soon".into());
    let object = with(object, "/spec/failurePolicy", "Perhaps".into());
    let status =
        scene
            .post(&scene.path("flows"), object)
            .await
            .refused(422, "Invalid", "is invalid: [");
    let mut fields: Vec<String> = status["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| text(&cause["field"]))
        .collect();
    fields.sort();
    // The last says that rules were not run.
    assert_eq!(fields, ["<nil>", "spec.failurePolicy", "spec.timeout"]);
}
