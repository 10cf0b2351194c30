//! Get and list: pages, selectors, snapshots.

use serde_json::{Value, json};

use super::scene::{Scene, flow, names, run, text, version, with};

super::cases!("get and list":
    get_gives_what_was_stored,
    what_does_not_exist_is_not_found,
    a_list_is_ordered_by_name_and_carries_a_version,
    pages_join_to_the_whole_list,
    later_pages_show_the_snapshot_of_the_first,
    labels_select_with_every_operator,
    fields_select_by_name_and_by_the_kinds_own_fields,
    an_unknown_field_cannot_select,
    a_broken_continue_token_is_refused,
    a_list_of_all_namespaces_includes_this_one,
    metadata_alone_can_be_asked_for,
);

async fn get_gives_what_was_stored(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let got = scene.get(&scene.path("flows/one")).await.expect(200);
    assert_eq!(got, made);
    assert_eq!(got["metadata"]["namespace"], scene.namespace());
}

async fn what_does_not_exist_is_not_found(scene: &Scene) {
    let status = scene.get(&scene.path("flows/absent")).await.refused(
        404,
        "NotFound",
        "flows.automation.kubezap.io \"absent\" not found",
    );
    assert_eq!(
        status["details"],
        json!({"name": "absent", "group": "automation.kubezap.io", "kind": "flows"})
    );
    scene.get(&scene.core("secrets/absent")).await.refused(
        404,
        "NotFound",
        "secrets \"absent\" not found",
    );
}

async fn a_list_is_ordered_by_name_and_carries_a_version(scene: &Scene) {
    for name in ["b", "c", "a"] {
        scene.create("flows", flow(name)).await;
    }
    let list = scene.get(&scene.path("flows")).await.expect(200);
    assert_eq!(list["kind"], "FlowList");
    assert_eq!(list["apiVersion"], "automation.kubezap.io/v1alpha1");
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert!(
        version(&list)
            .parse::<u64>()
            .is_ok_and(|version| version > 0)
    );
    let empty = scene.get(&scene.path("triggers")).await.expect(200);
    assert_eq!(empty["items"], json!([]));
}

async fn five(scene: &Scene) {
    for name in ["a", "b", "c", "d", "e"] {
        scene.create("flows", flow(name)).await;
    }
}

async fn pages_join_to_the_whole_list(scene: &Scene) {
    five(scene).await;
    let mut seen = Vec::new();
    let mut token = String::new();
    for left in [Some(3), Some(1), None] {
        let path = scene.path(&format!("flows?limit=2&continue={token}"));
        let page = scene.get(&path).await.expect(200);
        seen.extend(names(&page));
        assert_eq!(page["metadata"]["remainingItemCount"].as_u64(), left);
        token = text(&page["metadata"]["continue"]);
    }
    assert_eq!(token, "", "the last page has no token");
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
}

async fn later_pages_show_the_snapshot_of_the_first(scene: &Scene) {
    five(scene).await;
    let first = scene.get(&scene.path("flows?limit=2")).await.expect(200);
    scene.delete(&scene.path("flows/d"), None).await.expect(200);
    scene.create("flows", flow("cc")).await;
    let token = text(&first["metadata"]["continue"]);
    let path = scene.path(&format!("flows?limit=10&continue={token}"));
    let second = scene.get(&path).await.expect(200);
    assert_eq!(names(&second), ["c", "d", "e"]);
    assert_eq!(version(&second), version(&first));
    let now = scene.get(&scene.path("flows")).await.expect(200);
    assert_eq!(names(&now), ["a", "b", "c", "cc", "e"]);
}

async fn labels_select_with_every_operator(scene: &Scene) {
    for (name, labels) in [
        ("a", json!({"tier": "front", "size": "3"})),
        ("b", json!({"tier": "back"})),
        ("c", json!({})),
    ] {
        scene
            .create("flows", with(flow(name), "/metadata/labels", labels))
            .await;
    }
    for (selector, expected) in [
        ("tier%3Dfront", vec!["a"]),
        ("tier%3D%3Dback", vec!["b"]),
        ("tier!%3Dfront", vec!["b", "c"]),
        ("tier", vec!["a", "b"]),
        ("!tier", vec!["c"]),
        ("tier%20in%20(front,back)", vec!["a", "b"]),
        ("tier%20notin%20(front)", vec!["b", "c"]),
        ("tier,size%3D3", vec!["a"]),
        ("size%3E2", vec!["a"]),
        ("size%3C2", vec![]),
    ] {
        let path = scene.path(&format!("flows?labelSelector={selector}"));
        let list = scene.get(&path).await.expect(200);
        assert_eq!(names(&list), expected, "{selector}");
    }
    let broken = scene
        .get(&scene.path("flows?labelSelector=a%20b%20c"))
        .await;
    broken.refused(400, "BadRequest", "unable to parse requirement");
}

async fn fields_select_by_name_and_by_the_kinds_own_fields(scene: &Scene) {
    for name in ["a", "b"] {
        scene.create("flowruns", run(name)).await;
    }
    let other = with(run("c"), "/spec/flowRef/name", "other-flow".into());
    scene.create("flowruns", other).await;
    let status = json!({"status": {"phase": "Running"}});
    let path = scene.path("flowruns/b/status");
    scene.patch(&path, "merge-patch", status).await.expect(200);
    for (selector, expected) in [
        ("metadata.name%3Db", vec!["b"]),
        ("metadata.name!%3Db", vec!["a", "c"]),
        ("spec.flowRef.name%3Dsome-flow", vec!["a", "b"]),
        ("status.phase%3DRunning", vec!["b"]),
        (
            "status.phase!%3DRunning,spec.flowRef.name%3Dsome-flow",
            vec!["a"],
        ),
        ("status.phase%3D", vec!["a", "c"]),
    ] {
        let path = scene.path(&format!("flowruns?fieldSelector={selector}"));
        let list = scene.get(&path).await.expect(200);
        assert_eq!(names(&list), expected, "{selector}");
    }
}

async fn an_unknown_field_cannot_select(scene: &Scene) {
    let path = scene.path("flowruns?fieldSelector=spec.absent%3Dx");
    scene
        .get(&path)
        .await
        .refused(400, "BadRequest", "field label not supported: spec.absent");
}

async fn a_broken_continue_token_is_refused(scene: &Scene) {
    let path = scene.path("flows?limit=1&continue=nonsense");
    scene
        .get(&path)
        .await
        .refused(400, "BadRequest", "continue key is not valid");
}

async fn a_list_of_all_namespaces_includes_this_one(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let path = format!("{}/flows", super::scene::KUBEZAP);
    let list = scene.get(&path).await.expect(200);
    let found = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|item: &Value| {
            item["metadata"]["namespace"] == scene.namespace() && item["metadata"]["name"] == "one"
        });
    assert!(found);
}

async fn metadata_alone_can_be_asked_for(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let one = scene
        .get_as(&scene.path("flows/one"), accept)
        .await
        .expect(200);
    assert_eq!(one["kind"], "PartialObjectMetadata");
    assert_eq!(one["metadata"]["uid"], made["metadata"]["uid"]);
    assert!(one.get("spec").is_none());
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = scene.get_as(&scene.path("flows"), accept).await.expect(200);
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
}
