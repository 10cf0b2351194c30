//! Create.

use serde_json::json;

use super::scene::{Scene, flow, text, with};

super::cases!("create":
    the_server_fills_in_its_part_of_metadata,
    a_name_that_is_taken_already_exists,
    a_generated_name_begins_with_its_prefix,
    a_name_or_a_prefix_is_required,
    a_bad_name_is_refused,
    a_namespace_must_exist,
    a_dry_run_stores_nothing,
    a_status_is_not_created,
    the_kind_must_be_that_of_the_path,
    a_secret_takes_plain_text,
);

async fn the_server_fills_in_its_part_of_metadata(scene: &Scene) {
    let made = scene
        .create("flows", with(flow("one"), "/metadata/uid", "mine".into()))
        .await;
    let metadata = &made["metadata"];
    assert_eq!(text(&metadata["uid"]).len(), 36);
    assert_eq!(metadata["generation"], 1);
    assert!(text(&metadata["creationTimestamp"]).ends_with('Z'));
    assert!(text(&metadata["resourceVersion"]).parse::<u64>().is_ok());
}

async fn a_name_that_is_taken_already_exists(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    scene.post(&scene.path("flows"), flow("one")).await.refused(
        409,
        "AlreadyExists",
        "flows.automation.kubezap.io \"one\" already exists",
    );
}

async fn a_generated_name_begins_with_its_prefix(scene: &Scene) {
    let mut names = Vec::new();
    for _ in 0..3 {
        let mut object = flow("");
        object["metadata"] = json!({"generateName": "made-"});
        let made = scene.create("flows", object).await;
        names.push(text(&made["metadata"]["name"]));
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3);
    assert!(
        names
            .iter()
            .all(|name| name.starts_with("made-") && name.len() == 10),
        "{names:?}"
    );
}

async fn a_name_or_a_prefix_is_required(scene: &Scene) {
    let mut object = flow("");
    object["metadata"] = json!({});
    scene.post(&scene.path("flows"), object).await.refused(
        422,
        "Invalid",
        "metadata.name: Required value: name or generateName is required",
    );
}

async fn a_bad_name_is_refused(scene: &Scene) {
    scene.post(&scene.path("flows"), flow("Not_A_Name")).await.refused(
        422,
        "Invalid",
        "metadata.name: Invalid value: \"Not_A_Name\": a lowercase RFC 1123 subdomain must consist of",
    );
    let labels = with(flow("one"), "/metadata/labels", json!({"a": "not a label"}));
    scene.post(&scene.path("flows"), labels).await.refused(
        422,
        "Invalid",
        "metadata.labels: Invalid value: \"not a label\": a valid label must be",
    );
}

async fn a_namespace_must_exist(scene: &Scene) {
    let path = format!("{}/namespaces/absent/flows", super::scene::KUBEZAP);
    scene.post(&path, flow("one")).await.refused(
        404,
        "NotFound",
        "namespaces \"absent\" not found",
    );
    let elsewhere = with(flow("one"), "/metadata/namespace", "elsewhere".into());
    scene.post(&scene.path("flows"), elsewhere).await.refused(
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    );
}

async fn a_dry_run_stores_nothing(scene: &Scene) {
    let made = scene
        .post(&scene.path("flows?dryRun=All"), flow("one"))
        .await
        .expect(201);
    assert_eq!(made["spec"]["timeout"], "10m", "defaults are shown");
    assert_eq!(scene.get(&scene.path("flows/one")).await.code, 404);
}

async fn a_status_is_not_created(scene: &Scene) {
    let object = with(flow("one"), "/status", json!({"lastResult": "Succeeded"}));
    let made = scene.create("flows", object).await;
    assert!(made.get("status").is_none(), "{made}");
}

async fn the_kind_must_be_that_of_the_path(scene: &Scene) {
    let answer = scene.post(&scene.path("triggers"), flow("one")).await;
    assert_eq!(answer.code, 400, "{}", answer.body);
    assert_eq!(answer.body["reason"], "BadRequest");
}

async fn a_secret_takes_plain_text(scene: &Scene) {
    let secret = json!({"metadata": {"name": "one"}, "stringData": {"key": "value"}});
    let made = scene.post(&scene.core("secrets"), secret).await.expect(201);
    assert_eq!(made["data"]["key"], "dmFsdWU=");
    assert_eq!(made["type"], "Opaque");
    assert!(made.get("stringData").is_none());
    let bad = json!({"metadata": {"name": "two"}, "data": {"a key": "dmFsdWU="}});
    scene.post(&scene.core("secrets"), bad).await.refused(
        422,
        "Invalid",
        "data[a key]: Invalid value: \"a key\": a valid config key must consist of",
    );
}
