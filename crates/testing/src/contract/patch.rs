//! Patches, by type.

use serde_json::json;

use super::scene::{Scene, flow, version, with};

super::cases!("patch":
    a_merge_patch_sets_and_removes,
    a_merge_patch_replaces_lists,
    a_merge_patch_is_admitted_like_an_update,
    a_merge_patch_with_a_stale_version_conflicts,
    a_merge_patch_without_a_version_never_conflicts,
    a_merge_patch_without_a_change_keeps_the_version,
    a_json_patch_adds_replaces_and_removes,
    a_json_patch_that_tests_wrong_changes_nothing,
    a_json_patch_of_an_absent_path_is_refused,
    a_json_patch_that_does_not_parse_is_refused,
    a_json_patch_is_admitted_like_an_update,
    a_strategic_patch_merges_a_configmap,
    a_strategic_patch_removes_by_null,
    a_strategic_patch_labels_a_namespace,
    a_strategic_patch_merges_a_secret,
    a_strategic_patch_of_our_kinds_is_refused,
    what_does_not_exist_cannot_be_patched,
    an_unknown_field_in_a_patch_is_refused_when_strict,
);

async fn a_merge_patch_sets_and_removes(scene: &Scene) {
    scene
        .create(
            "flows",
            with(flow("one"), "/metadata/labels", json!({"a": "1", "b": "2"})),
        )
        .await;
    let patch =
        json!({"metadata": {"labels": {"a": null, "c": "3"}}, "spec": {"description": "new"}});
    let patched = scene
        .patch(&scene.path("flows/one"), "merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["metadata"]["labels"], json!({"b": "2", "c": "3"}));
    assert_eq!(patched["spec"]["description"], "new");
    assert_eq!(patched["metadata"]["generation"], 2);
}

async fn a_merge_patch_replaces_lists(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let steps = json!([{"name": "other", "action": {"type": "wait", "wait": {"duration": "2s"}}}]);
    let patch = json!({"spec": {"steps": steps}});
    let patched = scene
        .patch(&scene.path("flows/one"), "merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["spec"]["steps"], steps);
}

async fn a_merge_patch_is_admitted_like_an_update(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let patch = json!({"spec": {"failurePolicy": "Perhaps"}});
    scene.patch(&scene.path("flows/one"), "merge-patch", patch).await.refused(
        422,
        "Invalid",
        "spec.failurePolicy: Unsupported value: \"Perhaps\": supported values: \"Fail\", \"Continue\"",
    );
}

async fn a_merge_patch_with_a_stale_version_conflicts(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let path = scene.path("flows/one");
    let patch = json!({"spec": {"description": "first"}});
    scene.patch(&path, "merge-patch", patch).await.expect(200);
    let patch = json!({
        "metadata": {"resourceVersion": version(&made)},
        "spec": {"description": "second"},
    });
    scene.patch(&path, "merge-patch", patch).await.refused(
        409,
        "Conflict",
        "the object has been modified",
    );
}

async fn a_merge_patch_without_a_version_never_conflicts(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let path = scene.path("flows/one");
    // As many at once as a server tries a patch again.
    let patches = (0..5).map(|at| {
        let patch = json!({"metadata": {"labels": {format!("label-{at}"): "set"}}});
        scene.patch(&path, "merge-patch", patch)
    });
    for answer in futures::future::join_all(patches).await {
        answer.expect(200);
    }
    let now = scene.get(&path).await.expect(200);
    let labels = now["metadata"]["labels"]
        .as_object()
        .map(serde_json::Map::len);
    assert_eq!(labels, Some(5));
}

async fn a_merge_patch_without_a_change_keeps_the_version(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let patch = json!({"spec": {"timeout": "10m"}});
    let patched = scene
        .patch(&scene.path("flows/one"), "merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(version(&patched), version(&made));
}

async fn a_json_patch_adds_replaces_and_removes(scene: &Scene) {
    scene
        .create(
            "flows",
            with(flow("one"), "/metadata/labels", json!({"a": "1", "b": "2"})),
        )
        .await;
    let patch = json!([
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a", "value": "9"},
        {"op": "remove", "path": "/metadata/labels/b"},
        {"op": "add", "path": "/spec/description", "value": "new"},
        {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/c"},
    ]);
    let patched = scene
        .patch(&scene.path("flows/one"), "json-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["metadata"]["labels"], json!({"a": "9", "c": "9"}));
    assert_eq!(patched["spec"]["description"], "new");
}

async fn a_json_patch_that_tests_wrong_changes_nothing(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let patch = json!([
        {"op": "add", "path": "/spec/description", "value": "new"},
        {"op": "test", "path": "/spec/timeout", "value": "1s"},
    ]);
    let path = scene.path("flows/one");
    scene.patch(&path, "json-patch", patch).await.refused(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    assert_eq!(scene.get(&path).await.expect(200), made);
}

async fn a_json_patch_of_an_absent_path_is_refused(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let patch = json!([{"op": "remove", "path": "/spec/absent"}]);
    let answer = scene
        .patch(&scene.path("flows/one"), "json-patch", patch)
        .await;
    answer.refused(422, "Invalid", "the server rejected our request");
}

async fn a_json_patch_that_does_not_parse_is_refused(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let patch = json!({"op": "remove"});
    let answer = scene
        .patch(&scene.path("flows/one"), "json-patch", patch)
        .await;
    assert_eq!(answer.code, 400, "{}", answer.body);
}

async fn a_json_patch_is_admitted_like_an_update(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let patch = json!([{"op": "replace", "path": "/spec/steps", "value": []}]);
    let answer = scene
        .patch(&scene.path("flows/one"), "json-patch", patch)
        .await;
    answer.refused(
        422,
        "Invalid",
        "spec.steps in body should have at least 1 items",
    );
}

async fn config_map(scene: &Scene) -> String {
    let object = json!({"metadata": {"name": "one"}, "data": {"a": "1", "b": "2"}});
    scene
        .post(&scene.core("configmaps"), object)
        .await
        .expect(201);
    scene.core("configmaps/one")
}

async fn a_strategic_patch_merges_a_configmap(scene: &Scene) {
    let path = config_map(scene).await;
    let patch = json!({"data": {"b": "3", "c": "4"}});
    let patched = scene
        .patch(&path, "strategic-merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["data"], json!({"a": "1", "b": "3", "c": "4"}));
}

async fn a_strategic_patch_removes_by_null(scene: &Scene) {
    let path = config_map(scene).await;
    let patch = json!({"data": {"a": null}});
    let patched = scene
        .patch(&path, "strategic-merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["data"], json!({"b": "2"}));
}

async fn a_strategic_patch_labels_a_namespace(scene: &Scene) {
    let path = format!("/api/v1/namespaces/{}", scene.namespace());
    let patch = json!({"metadata": {"labels": {"a": "1"}}});
    let patched = scene
        .patch(&path, "strategic-merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["metadata"]["labels"]["a"], "1");
    let name = &patched["metadata"]["labels"]["kubernetes.io/metadata.name"];
    assert_eq!(name, scene.namespace());
}

async fn a_strategic_patch_merges_a_secret(scene: &Scene) {
    let secret = json!({"metadata": {"name": "one"}, "stringData": {"a": "1"}});
    scene.post(&scene.core("secrets"), secret).await.expect(201);
    let patch = json!({"stringData": {"b": "2"}});
    let path = scene.core("secrets/one");
    let patched = scene
        .patch(&path, "strategic-merge-patch", patch)
        .await
        .expect(200);
    assert_eq!(patched["data"], json!({"a": "MQ==", "b": "Mg=="}));
}

async fn a_strategic_patch_of_our_kinds_is_refused(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let patch = json!({"spec": {"description": "new"}});
    scene
        .patch(&scene.path("flows/one"), "strategic-merge-patch", patch)
        .await
        .refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format",
        );
}

async fn what_does_not_exist_cannot_be_patched(scene: &Scene) {
    let patch = json!({"spec": {"description": "new"}});
    let answer = scene
        .patch(&scene.path("flows/absent"), "merge-patch", patch)
        .await;
    answer.refused(
        404,
        "NotFound",
        "flows.automation.kubezap.io \"absent\" not found",
    );
}

async fn an_unknown_field_in_a_patch_is_refused_when_strict(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let patch = json!({"spec": {"discription": "new"}});
    let path = scene.path("flows/one?fieldValidation=Strict");
    let answer = scene.patch(&path, "merge-patch", patch).await;
    answer.refused(
        422,
        "Invalid",
        "strict decoding error: unknown field \"spec.discription\"",
    );
}
