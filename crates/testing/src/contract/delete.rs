//! Delete, finalizers and garbage collection.

use serde_json::{Value, json};

use super::scene::{Scene, flow, names, run, text, trigger, version, with};

super::cases!("delete and garbage collection":
    a_deletion_says_what_it_deleted,
    a_precondition_must_hold,
    a_finalizer_holds_an_object,
    no_finalizer_is_added_while_an_object_goes,
    what_an_object_owned_goes_with_it,
    what_has_another_owner_stays,
    orphans_stay,
    the_owner_goes_last_in_the_foreground,
    an_object_of_a_gone_owner_is_collected,
    a_collection_is_deleted_by_selector,
    a_namespace_takes_its_content_along,
    a_dry_run_deletes_nothing,
);

async fn a_deletion_says_what_it_deleted(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let path = scene.path("flows/one");
    let status = scene.delete(&path, None).await.expect(200);
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Success");
    assert_eq!(
        status["details"],
        json!({
            "name": "one",
            "group": "automation.kubezap.io",
            "kind": "flows",
            "uid": made["metadata"]["uid"],
        })
    );
    assert_eq!(scene.get(&path).await.code, 404);
    scene
        .delete(&path, None)
        .await
        .refused(404, "NotFound", "not found");
}

async fn a_precondition_must_hold(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let path = scene.path("flows/one");
    let options = json!({"preconditions": {"uid": "other"}});
    scene
        .delete(&path, Some(options))
        .await
        .refused(409, "Conflict", "UID in precondition: other");
    let options = json!({"preconditions": {"resourceVersion": "1"}});
    scene.delete(&path, Some(options)).await.refused(
        409,
        "Conflict",
        "ResourceVersion in precondition: 1",
    );
    let options = json!({"preconditions": {
        "uid": made["metadata"]["uid"],
        "resourceVersion": version(&made),
    }});
    scene.delete(&path, Some(options)).await.expect(200);
}

fn held(object: Value) -> Value {
    with(object, "/metadata/finalizers", json!(["kubezap.io/test"]))
}

async fn a_finalizer_holds_an_object(scene: &Scene) {
    scene.create("flows", held(flow("one"))).await;
    let path = scene.path("flows/one");
    let marked = scene.delete(&path, None).await.expect(200);
    assert_eq!(marked["kind"], "Flow");
    assert!(text(&marked["metadata"]["deletionTimestamp"]).ends_with('Z'));
    assert_eq!(marked["metadata"]["generation"], 2);
    scene.get(&path).await.expect(200);
    let patch = json!({"metadata": {"finalizers": null}});
    scene.patch(&path, "merge-patch", patch).await.expect(200);
    scene.gone(&path).await;
}

async fn no_finalizer_is_added_while_an_object_goes(scene: &Scene) {
    scene.create("flows", held(flow("one"))).await;
    let path = scene.path("flows/one");
    scene.delete(&path, None).await.expect(200);
    let patch = json!({"metadata": {"finalizers": ["kubezap.io/test", "kubezap.io/more"]}});
    scene.patch(&path, "merge-patch", patch).await.refused(
        422,
        "Invalid",
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"kubezap.io/more\"}",
    );
    let patch = json!({"metadata": {"finalizers": []}});
    scene.patch(&path, "merge-patch", patch).await.expect(200);
}

fn owned(object: Value, owners: &[&Value], block: bool) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": block,
            })
        })
        .collect();
    with(object, "/metadata/ownerReferences", references.into())
}

async fn what_an_object_owned_goes_with_it(scene: &Scene) {
    let owner = scene.create("triggers", trigger("owner")).await;
    for name in ["a", "b"] {
        scene
            .create("flowruns", owned(run(name), &[&owner], false))
            .await;
    }
    scene.create("flowruns", run("free")).await;
    scene
        .delete(&scene.path("triggers/owner"), None)
        .await
        .expect(200);
    scene.gone(&scene.path("flowruns/a")).await;
    scene.gone(&scene.path("flowruns/b")).await;
    let left = scene.get(&scene.path("flowruns")).await.expect(200);
    assert_eq!(names(&left), ["free"]);
}

async fn what_has_another_owner_stays(scene: &Scene) {
    let first = scene.create("triggers", trigger("first")).await;
    let second = scene.create("triggers", trigger("second")).await;
    scene
        .create("flowruns", owned(run("both"), &[&first, &second], false))
        .await;
    scene
        .create("flowruns", owned(run("one"), &[&first], false))
        .await;
    scene
        .delete(&scene.path("triggers/first"), None)
        .await
        .expect(200);
    scene.gone(&scene.path("flowruns/one")).await;
    scene.get(&scene.path("flowruns/both")).await.expect(200);
    scene
        .delete(&scene.path("triggers/second"), None)
        .await
        .expect(200);
    scene.gone(&scene.path("flowruns/both")).await;
}

async fn orphans_stay(scene: &Scene) {
    let owner = scene.create("triggers", trigger("owner")).await;
    scene
        .create("flowruns", owned(run("one"), &[&owner], false))
        .await;
    let options = json!({"propagationPolicy": "Orphan"});
    scene
        .delete(&scene.path("triggers/owner"), Some(options))
        .await
        .expect(200);
    scene.gone(&scene.path("triggers/owner")).await;
    let left = scene.get(&scene.path("flowruns/one")).await.expect(200);
    let owners = left["metadata"]["ownerReferences"]
        .as_array()
        .map_or(0, Vec::len);
    assert_eq!(owners, 0);
}

async fn the_owner_goes_last_in_the_foreground(scene: &Scene) {
    let owner = scene.create("triggers", trigger("owner")).await;
    scene
        .create("flowruns", held(owned(run("one"), &[&owner], true)))
        .await;
    let options = json!({"propagationPolicy": "Foreground"});
    let path = scene.path("triggers/owner");
    let marked = scene.delete(&path, Some(options)).await.expect(200);
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    // The run is held, and holds its owner.
    let held = scene.path("flowruns/one");
    crate::wait::until(
        "the run to be marked",
        std::time::Duration::from_secs(30),
        || async {
            let run = scene.get(&held).await.expect(200);
            run["metadata"]["deletionTimestamp"]
                .is_string()
                .then_some(())
        },
    )
    .await;
    scene.get(&path).await.expect(200);
    let patch = json!({"metadata": {"finalizers": null}});
    scene.patch(&held, "merge-patch", patch).await.expect(200);
    scene.gone(&held).await;
    scene.gone(&path).await;
}

async fn an_object_of_a_gone_owner_is_collected(scene: &Scene) {
    let owner = scene.create("triggers", trigger("owner")).await;
    scene
        .delete(&scene.path("triggers/owner"), None)
        .await
        .expect(200);
    scene
        .create("flowruns", owned(run("late"), &[&owner], false))
        .await;
    scene.gone(&scene.path("flowruns/late")).await;
}

async fn a_collection_is_deleted_by_selector(scene: &Scene) {
    for (name, label) in [("a", "yes"), ("b", "no"), ("c", "yes")] {
        scene
            .create(
                "flows",
                with(flow(name), "/metadata/labels", json!({"out": label})),
            )
            .await;
    }
    let path = scene.path("flows?labelSelector=out%3Dyes");
    scene.delete(&path, None).await.expect(200);
    scene.gone(&scene.path("flows/a")).await;
    scene.gone(&scene.path("flows/c")).await;
    let left = scene.get(&scene.path("flows")).await.expect(200);
    assert_eq!(names(&left), ["b"]);
}

async fn a_namespace_takes_its_content_along(scene: &Scene) {
    let namespace = json!({"metadata": {"generateName": "contract-going-"}});
    let made = scene
        .post("/api/v1/namespaces", namespace)
        .await
        .expect(201);
    let name = text(&made["metadata"]["name"]);
    let flows = format!("{}/namespaces/{name}/flows", super::scene::KUBEZAP);
    scene.post(&flows, held(flow("held"))).await.expect(201);
    scene.post(&flows, flow("free")).await.expect(201);
    let path = format!("/api/v1/namespaces/{name}");
    let going = scene.delete(&path, None).await.expect(200);
    assert_eq!(going["status"]["phase"], "Terminating");
    scene.gone(&format!("{flows}/free")).await;
    let status = scene.post(&flows, flow("late")).await.refused(
        403,
        "Forbidden",
        &format!("unable to create new content in namespace {name} because it is being terminated"),
    );
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    let patch = json!({"metadata": {"finalizers": null}});
    scene
        .patch(&format!("{flows}/held"), "merge-patch", patch)
        .await
        .expect(200);
    scene.gone(&path).await;
}

async fn a_dry_run_deletes_nothing(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let path = scene.path("flows/one");
    scene
        .delete(&format!("{path}?dryRun=All"), None)
        .await
        .expect(200);
    scene.get(&path).await.expect(200);
}
