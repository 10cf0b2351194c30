//! Update, and what happens when two do it.

use serde_json::json;

use super::scene::{Scene, flow, version, with};

super::cases!("update":
    an_update_counts_generations_of_the_spec_only,
    a_stale_version_conflicts,
    a_version_is_required,
    another_uid_conflicts,
    an_update_without_a_change_keeps_the_version,
    what_does_not_exist_cannot_be_updated,
    the_name_must_be_that_of_the_path,
    the_servers_part_of_metadata_is_kept,
    the_last_of_many_writers_sees_every_other,
);

async fn an_update_counts_generations_of_the_spec_only(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let labelled = with(made, "/metadata/labels", json!({"a": "b"}));
    let path = scene.path("flows/one");
    let labelled = scene.put(&path, &labelled).await.expect(200);
    assert_eq!(labelled["metadata"]["generation"], 1);
    let described = with(labelled, "/spec/description", "new".into());
    let described = scene.put(&path, &described).await.expect(200);
    assert_eq!(described["metadata"]["generation"], 2);
}

async fn a_stale_version_conflicts(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let path = scene.path("flows/one");
    let change = with(made, "/spec/description", "first".into());
    scene.put(&path, &change).await.expect(200);
    let change = with(change, "/spec/description", "second".into());
    scene.put(&path, &change).await.refused(
        409,
        "Conflict",
        "Operation cannot be fulfilled on flows.automation.kubezap.io \"one\": the object has been modified; please apply your changes to the latest version and try again",
    );
    let now = scene.get(&path).await.expect(200);
    assert_eq!(now["spec"]["description"], "first");
}

async fn a_version_is_required(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    scene
        .put(&scene.path("flows/one"), &flow("one"))
        .await
        .refused(
            422,
            "Invalid",
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        );
}

async fn another_uid_conflicts(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let other = with(
        made,
        "/metadata/uid",
        "5c1a4b52-0000-4000-8000-000000000000".into(),
    );
    scene.put(&scene.path("flows/one"), &other).await.refused(
        409,
        "Conflict",
        "Precondition failed: UID in precondition: 5c1a4b52",
    );
}

async fn an_update_without_a_change_keeps_the_version(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let same = scene.put(&scene.path("flows/one"), &made).await.expect(200);
    assert_eq!(version(&same), version(&made));
}

async fn what_does_not_exist_cannot_be_updated(scene: &Scene) {
    let absent = with(flow("absent"), "/metadata/resourceVersion", "1".into());
    let answer = scene.put(&scene.path("flows/absent"), &absent).await;
    answer.refused(
        404,
        "NotFound",
        "flows.automation.kubezap.io \"absent\" not found",
    );
}

async fn the_name_must_be_that_of_the_path(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    scene.put(&scene.path("flows/two"), &made).await.refused(
        400,
        "BadRequest",
        "the name of the object (one) does not match the name on the URL (two)",
    );
}

async fn the_servers_part_of_metadata_is_kept(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let mut change = flow("one");
    change["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    change["spec"]["description"] = "new".into();
    let updated = scene
        .put(&scene.path("flows/one"), &change)
        .await
        .expect(200);
    for key in ["uid", "creationTimestamp"] {
        assert_eq!(updated["metadata"][key], made["metadata"][key], "{key}");
    }
}

async fn the_last_of_many_writers_sees_every_other(scene: &Scene) {
    let object = with(flow("one"), "/metadata/annotations", json!({"count": "0"}));
    scene.create("flows", object).await;
    let path = scene.path("flows/one");
    let writer = || async {
        loop {
            let mut now = scene.get(&path).await.expect(200);
            let count: u32 = now["metadata"]["annotations"]["count"]
                .as_str()
                .and_then(|count| count.parse().ok())
                .unwrap_or(0);
            now["metadata"]["annotations"]["count"] = (count + 1).to_string().into();
            let answer = scene.put(&path, &now).await;
            if answer.code != 409 {
                answer.expect(200);
                return;
            }
        }
    };
    futures::future::join_all((0..10).map(|_| writer())).await;
    let now = scene.get(&path).await.expect(200);
    assert_eq!(now["metadata"]["annotations"]["count"], "10");
}
