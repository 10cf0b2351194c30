//! The status subresource.

use serde_json::json;

use super::scene::{Scene, run, version, with};

super::cases!("status":
    a_status_write_changes_the_status_only,
    a_spec_write_leaves_the_status,
    a_status_write_counts_no_generation,
    a_stale_status_write_conflicts,
    a_status_is_admitted_by_its_schema,
    the_status_can_be_got_and_patched,
    a_status_write_without_a_change_keeps_the_version,
    conditions_are_keyed_by_type,
);

async fn a_status_write_changes_the_status_only(scene: &Scene) {
    let made = scene.create("flowruns", run("one")).await;
    let mut change = with(made, "/status", json!({"phase": "Running"}));
    change["spec"]["flowRef"]["name"] = "other".into();
    change["metadata"]["labels"] = json!({"a": "b"});
    let written = scene
        .put(&scene.path("flowruns/one/status"), &change)
        .await
        .expect(200);
    assert_eq!(written["status"]["phase"], "Running");
    assert_eq!(written["spec"]["flowRef"]["name"], "some-flow");
    assert!(written["metadata"].get("labels").is_none());
}

async fn a_spec_write_leaves_the_status(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let patch = json!({"status": {"phase": "Running"}});
    let written = scene
        .patch(&scene.path("flowruns/one/status"), "merge-patch", patch)
        .await
        .expect(200);
    let mut change = with(written, "/metadata/labels", json!({"a": "b"}));
    change["status"]["phase"] = "Failed".into();
    let written = scene
        .put(&scene.path("flowruns/one"), &change)
        .await
        .expect(200);
    assert_eq!(written["status"]["phase"], "Running");
    assert_eq!(written["metadata"]["labels"]["a"], "b");
}

async fn a_status_write_counts_no_generation(scene: &Scene) {
    let made = scene.create("flowruns", run("one")).await;
    let change = with(made.clone(), "/status", json!({"phase": "Running"}));
    let written = scene
        .put(&scene.path("flowruns/one/status"), &change)
        .await
        .expect(200);
    assert_eq!(written["metadata"]["generation"], 1);
    assert_ne!(version(&written), version(&made));
}

async fn a_stale_status_write_conflicts(scene: &Scene) {
    let made = scene.create("flowruns", run("one")).await;
    let path = scene.path("flowruns/one/status");
    let change = with(made, "/status", json!({"phase": "Running"}));
    scene.put(&path, &change).await.expect(200);
    let change = with(change, "/status", json!({"phase": "Failed"}));
    scene
        .put(&path, &change)
        .await
        .refused(409, "Conflict", "the object has been modified");
}

async fn a_status_is_admitted_by_its_schema(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let patch = json!({"status": {"phase": "Sleeping"}});
    scene
        .patch(&scene.path("flowruns/one/status"), "merge-patch", patch)
        .await
        .refused(
            422,
            "Invalid",
            "status.phase: Unsupported value: \"Sleeping\": supported values: \"Pending\", \"Running\"",
        );
}

async fn the_status_can_be_got_and_patched(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let path = scene.path("flowruns/one/status");
    let patch = json!([{"op": "add", "path": "/status", "value": {"phase": "Running"}}]);
    let written = scene.patch(&path, "json-patch", patch).await.expect(200);
    let got = scene.get(&path).await.expect(200);
    assert_eq!(got, written);
    assert_eq!(got["kind"], "FlowRun");
}

async fn a_status_write_without_a_change_keeps_the_version(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let path = scene.path("flowruns/one/status");
    let patch = json!({"status": {"phase": "Running"}});
    let first = scene
        .patch(&path, "merge-patch", patch.clone())
        .await
        .expect(200);
    let second = scene.patch(&path, "merge-patch", patch).await.expect(200);
    assert_eq!(version(&first), version(&second));
}

async fn conditions_are_keyed_by_type(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let condition = |status: &str| {
        json!({
            "type": "Running",
            "status": status,
            "reason": "Test",
            "message": "",
            "lastTransitionTime": "2026-12-01T00:00:00Z",
        })
    };
    let patch = json!({"status": {"conditions": [condition("True"), condition("False")]}});
    scene
        .patch(&scene.path("flowruns/one/status"), "merge-patch", patch)
        .await
        .refused(
            422,
            "Invalid",
            "status.conditions[1]: Duplicate value: {\"type\":\"Running\"}",
        );
}
