//! Watch: order, resuming, selections, bookmarks.

use serde_json::json;

use super::scene::{Scene, flow, run, text, version, with};

super::cases!("watch":
    a_watch_resumes_where_a_list_ended,
    a_watch_without_a_version_begins_with_what_is_there,
    events_come_in_the_order_of_their_writes,
    objects_enter_and_leave_a_selection,
    a_field_selection_follows_the_status,
    a_deleted_object_is_reported_at_the_version_of_its_deletion,
    initial_events_end_with_a_bookmark,
    initial_events_need_a_version_match,
    a_watch_with_a_time_limit_ends_after_a_bookmark,
    a_version_that_is_compacted_is_expired,
    a_watch_of_metadata_shows_metadata,
);

async fn a_watch_resumes_where_a_list_ended(scene: &Scene) {
    scene.create("flows", flow("before")).await;
    let list = scene.get(&scene.path("flows")).await.expect(200);
    scene.create("flows", flow("between")).await;
    let path = format!("flows?watch=true&resourceVersion={}", version(&list));
    let mut events = scene.watch(&scene.path(&path)).await;
    events.expect("ADDED", "between").await;
    scene.create("flows", flow("after")).await;
    let event = events.expect("ADDED", "after").await;
    let got = scene.get(&scene.path("flows/after")).await.expect(200);
    assert_eq!(event["object"], got);
}

async fn a_watch_without_a_version_begins_with_what_is_there(scene: &Scene) {
    for name in ["a", "b"] {
        scene.create("flows", flow(name)).await;
    }
    let mut events = scene.watch(&scene.path("flows?watch=true")).await;
    events.expect("ADDED", "a").await;
    events.expect("ADDED", "b").await;
    scene.delete(&scene.path("flows/a"), None).await.expect(200);
    events.expect("DELETED", "a").await;
}

async fn events_come_in_the_order_of_their_writes(scene: &Scene) {
    let list = scene.get(&scene.path("flows")).await.expect(200);
    let path = format!("flows?watch=true&resourceVersion={}", version(&list));
    let mut events = scene.watch(&scene.path(&path)).await;
    scene.create("flows", flow("one")).await;
    for text in ["1", "2", "3"] {
        let patch = json!({"spec": {"description": text}});
        scene
            .patch(&scene.path("flows/one"), "merge-patch", patch)
            .await
            .expect(200);
    }
    let mut last: u64 = version(&events.expect("ADDED", "one").await["object"])
        .parse()
        .unwrap_or(0);
    for text in ["1", "2", "3"] {
        let event = events.expect("MODIFIED", "one").await;
        assert_eq!(event["object"]["spec"]["description"], text);
        let version = version(&event["object"]).parse().unwrap_or(0);
        assert!(version > last);
        last = version;
    }
}

async fn objects_enter_and_leave_a_selection(scene: &Scene) {
    let list = scene.get(&scene.path("flows")).await.expect(200);
    let path = format!(
        "flows?watch=true&labelSelector=on%3Dyes&resourceVersion={}",
        version(&list)
    );
    let mut events = scene.watch(&scene.path(&path)).await;
    scene.create("flows", flow("one")).await;
    for label in ["yes", "no"] {
        let patch = json!({"metadata": {"labels": {"on": label}}});
        scene
            .patch(&scene.path("flows/one"), "merge-patch", patch)
            .await
            .expect(200);
    }
    scene
        .create(
            "flows",
            with(flow("two"), "/metadata/labels", json!({"on": "yes"})),
        )
        .await;
    events.expect("ADDED", "one").await;
    events.expect("DELETED", "one").await;
    events.expect("ADDED", "two").await;
}

async fn a_field_selection_follows_the_status(scene: &Scene) {
    scene.create("flowruns", run("one")).await;
    let list = scene.get(&scene.path("flowruns")).await.expect(200);
    let path = format!(
        "flowruns?watch=true&fieldSelector=status.phase%3DRunning&resourceVersion={}",
        version(&list)
    );
    let mut events = scene.watch(&scene.path(&path)).await;
    for phase in ["Running", "Succeeded"] {
        let patch = json!({"status": {"phase": phase}});
        let path = scene.path("flowruns/one/status");
        scene.patch(&path, "merge-patch", patch).await.expect(200);
    }
    events.expect("ADDED", "one").await;
    events.expect("DELETED", "one").await;
}

async fn a_deleted_object_is_reported_at_the_version_of_its_deletion(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let path = format!("flows?watch=true&resourceVersion={}", version(&made));
    let mut events = scene.watch(&scene.path(&path)).await;
    scene
        .delete(&scene.path("flows/one"), None)
        .await
        .expect(200);
    let event = events.expect("DELETED", "one").await;
    let before: u64 = version(&made).parse().unwrap_or(0);
    let at: u64 = version(&event["object"]).parse().unwrap_or(0);
    assert!(at > before, "{at} {before}");
}

async fn initial_events_end_with_a_bookmark(scene: &Scene) {
    for name in ["a", "b"] {
        scene.create("flows", flow(name)).await;
    }
    let path = "flows?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = scene.watch(&scene.path(path)).await;
    events.expect("ADDED", "a").await;
    events.expect("ADDED", "b").await;
    let mark = events.any().await.expect("a bookmark");
    assert_eq!(mark["type"], "BOOKMARK", "{mark}");
    assert_eq!(
        mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    assert!(version(&mark["object"]).parse::<u64>().is_ok());
    scene.create("flows", flow("c")).await;
    events.expect("ADDED", "c").await;
}

async fn initial_events_need_a_version_match(scene: &Scene) {
    let path = scene.path("flows?watch=true&sendInitialEvents=true");
    scene.get(&path).await.refused(
        422,
        "Invalid",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
}

async fn a_watch_with_a_time_limit_ends_after_a_bookmark(scene: &Scene) {
    let made = scene.create("flows", flow("one")).await;
    let path = format!(
        "flows?watch=true&allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion={}",
        version(&made)
    );
    let mut events = scene.watch(&scene.path(&path)).await;
    let mut marks = Vec::new();
    while let Some(event) = events.any().await {
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        assert_eq!(event["object"]["kind"], "Flow");
        marks.push(version(&event["object"]));
    }
    let at: u64 = version(&made).parse().unwrap_or(0);
    assert!(!marks.is_empty(), "no bookmark came");
    for mark in marks {
        assert!(mark.parse::<u64>().is_ok_and(|mark| mark >= at), "{mark}");
    }
}

async fn a_version_that_is_compacted_is_expired(scene: &Scene) {
    // Version 1 is older than anything that a server which has run for a while remembers.
    let mut events = scene
        .watch(&scene.path("flows?watch=true&resourceVersion=1"))
        .await;
    let event = events.next().await;
    assert_eq!(event["type"], "ERROR", "{event}");
    assert_eq!(event["object"]["code"], 410);
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(text(&event["object"]["message"]).starts_with("too old resource version"));
    assert!(events.any().await.is_none(), "the watch ends");
}

async fn a_watch_of_metadata_shows_metadata(scene: &Scene) {
    scene.create("flows", flow("one")).await;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut events = scene
        .watch_as(&scene.path("flows?watch=true"), accept)
        .await;
    let event = events.expect("ADDED", "one").await;
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert!(event["object"].get("spec").is_none());
}
