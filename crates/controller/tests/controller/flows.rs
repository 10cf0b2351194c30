//! Revisions of Flows, and what a Flow's status says of its runs.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::ListParams;
use kubezap_api::Flow;
use kubezap_testing::wait::until;
use serde_json::{Value, json};

use crate::rig::{DEADLINE, Rig, call, three_steps};

async fn revisions(rig: &Rig) -> Vec<(i64, Value)> {
    let found = rig
        .kind::<ControllerRevision>()
        .list(&ListParams::default().labels("kubezap.io/flow=f"))
        .await
        .unwrap();
    let mut revisions: Vec<_> = found
        .items
        .into_iter()
        .map(|revision| {
            assert!(
                revision
                    .metadata
                    .owner_references
                    .unwrap_or_default()
                    .is_empty()
            );
            let data = revision.data.unwrap().0;
            (revision.revision, data["steps"][0]["name"].clone())
        })
        .collect();
    revisions.sort_by_key(|(number, _)| *number);
    revisions
}

async fn edit(rig: &Rig, spec: Value) {
    let generation = rig
        .patch::<Flow>("f", json!({"spec": spec}))
        .await
        .metadata
        .generation;
    rig.until_condition::<Flow>("f", "Ready", |ready| {
        ready.status == "True" && ready.observed_generation == generation
    })
    .await;
}

#[tokio::test]
async fn every_spec_is_stored_before_the_flow_is_ready_and_an_earlier_one_becomes_the_newest() {
    let rig = Rig::start();
    let (one, two) = (
        json!({"steps": [call("one", &[])]}),
        json!({"steps": [call("two", &[])]}),
    );
    rig.ready_flow("f", one.clone()).await;
    assert_eq!(revisions(&rig).await, [(1, json!("one"))]);
    edit(&rig, two).await;
    assert_eq!(
        revisions(&rig).await,
        [(1, json!("one")), (2, json!("two"))]
    );
    edit(&rig, one).await;
    assert_eq!(
        revisions(&rig).await,
        [(2, json!("two")), (3, json!("one"))]
    );

    rig.labelled_run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
    assert_eq!(rig.executor.count("/one"), 1);
}

#[tokio::test]
async fn a_flow_that_cannot_run_is_not_stored() {
    let rig = Rig::start();
    rig.flow("f", json!({"steps": [call("one", &["nowhere"])]}))
        .await;
    rig.until_condition::<Flow>("f", "Ready", |ready| ready.status == "False")
        .await;
    assert_eq!(revisions(&rig).await, []);
}

#[tokio::test]
async fn a_flow_counts_its_runs_and_tells_the_last_failure() {
    let rig = Rig::start();
    rig.executor.answer(|asked, _| async move {
        if asked.url.ends_with("/three") {
            crate::rig::responds(500, "no")
        } else {
            crate::rig::ok("{}")
        }
    });
    rig.ready_flow("f", three_steps()).await;
    for name in ["r1", "r2", "r3"] {
        rig.labelled_run(name, "f").await;
        rig.until_phase(name, "Failed").await;
    }
    let status = until("three runs to be counted", DEADLINE, || async {
        let status = rig.kind::<Flow>().get("f").await.unwrap().status?;
        (status.execution_count == Some(3)).then_some(status)
    })
    .await;
    assert_eq!(status.last_result.as_deref(), Some("Failed"));
    assert!(status.last_error.unwrap().contains("three"));
    assert!(status.last_execution_time.is_some());
    let patches = rig
        .audit("flows", "f")
        .into_iter()
        .filter(|entry| {
            let sent = entry.body.as_ref();
            sent.is_some_and(|body| !body["status"]["executionCount"].is_null())
        })
        .map(|entry| entry.at)
        .collect::<Vec<_>>();
    for pair in patches.windows(2) {
        let between = pair[1] - pair[0];
        assert!(
            between >= std::time::Duration::from_millis(4900),
            "{between:?}"
        );
    }
}
