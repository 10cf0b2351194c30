//! Restarts, conflicts and an API server that misbehaves.

use std::time::Duration;

use kubezap_api::FlowRun;
use kubezap_local_api::{Fault, Rule};
use serde_json::json;

use crate::rig::{Rig, call, phase_of, three_steps};

fn on_status(fault: Fault, times: u32) -> Rule {
    Rule::new(fault)
        .verb("update")
        .resource("flowruns")
        .subresource("status")
        .times(times)
}

#[tokio::test]
async fn a_killed_controller_repeats_nothing_that_was_stored() {
    let mut rig = Rig::start();
    rig.executor.hold("/two");
    rig.ready_flow("f", three_steps()).await;
    for index in 0..10 {
        rig.labelled_run(&format!("r{index}"), "f").await;
    }
    for index in 0..10 {
        rig.until_status(&format!("r{index}"), "past its first step", |status| {
            status
                .steps
                .first()
                .is_some_and(|step| step.completion_time.is_some())
        })
        .await;
    }
    rig.kill_controller().await;
    let gate = rig.executor.hold("nothing");
    gate.notify_waiters();
    rig.start_controller(|_| {});
    for index in 0..10 {
        rig.until_phase(&format!("r{index}"), "Succeeded").await;
    }
    assert_eq!(rig.executor.count("/one"), 10);
    assert_eq!(rig.executor.count("/three"), 10);
}

#[tokio::test]
async fn a_run_is_resumed_with_the_flow_it_is_pinned_to() {
    let mut rig = Rig::start();
    rig.executor.hold("/two");
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.until_status("r", "past its first step", |status| {
        status
            .steps
            .first()
            .is_some_and(|step| step.completion_time.is_some())
    })
    .await;
    rig.stop_controller().await;
    rig.kind::<kubezap_api::Flow>()
        .delete("f", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    rig.executor.hold("nothing");
    rig.start_controller(|_| {});
    let status = rig.until_phase("r", "Succeeded").await;
    assert_eq!(status.steps.len(), 3);
}

#[tokio::test]
async fn someone_elses_label_costs_one_read_and_repeats_nothing() {
    let rig = Rig::start();
    let gate = rig.executor.hold("/one");
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.executor.until_asked("/one").await;
    rig.patch::<FlowRun>("r", json!({"metadata": {"labels": {"mine": "yes"}}}))
        .await;
    gate.notify_one();
    rig.until_phase("r", "Succeeded").await;
    for path in ["/one", "/two", "/three"] {
        assert_eq!(rig.executor.count(path), 1, "{path}");
    }
    let run = rig.kind::<FlowRun>().get("r").await.unwrap();
    assert_eq!(run.metadata.labels.unwrap()["mine"], "yes");
}

#[tokio::test]
async fn a_conflict_with_metadata_is_read_once_and_the_write_repeated() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    // The watch does not tell in time: the write meets a resourceVersion that it does not know.
    rig.api
        .faults()
        .add(Rule::new(Fault::WatchDropped).resource("flowruns").times(1));
    let gate = rig.executor.hold("/one");
    rig.labelled_run("r", "f").await;
    rig.executor.until_asked("/one").await;
    rig.api.faults().add(on_status(Fault::Status(409), 1));
    gate.notify_one();
    rig.until_phase("r", "Succeeded").await;
    let requests = rig.requests("flowruns", "r");
    assert_eq!(
        requests
            .iter()
            .filter(|request| *request == "get 200")
            .count(),
        1,
        "{requests:?}"
    );
    for path in ["/one", "/two", "/three"] {
        assert_eq!(rig.executor.count(path), 1, "{path}");
    }
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_recognised() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.api.faults().add(on_status(Fault::AnswerLost, 1));
    rig.labelled_run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
    for path in ["/one", "/two", "/three"] {
        assert_eq!(rig.executor.count(path), 1, "{path}");
    }
}

#[tokio::test]
async fn a_busy_api_server_delays_a_run_and_loses_nothing() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.api.faults().add(on_status(Fault::Status(429), 2));
    rig.api.faults().add(on_status(Fault::Status(503), 1));
    rig.labelled_run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
    for path in ["/one", "/two", "/three"] {
        assert_eq!(rig.executor.count(path), 1, "{path}");
    }
}

#[tokio::test]
async fn a_status_that_is_refused_for_good_ends_the_run() {
    let rig = Rig::start();
    rig.ready_flow("f", json!({"steps": [call("one", &[])]}))
        .await;
    rig.api.faults().add(on_status(Fault::Status(413), 1));
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Failed").await;
    let succeeded = status
        .conditions
        .iter()
        .find(|c| c.type_ == "Succeeded")
        .unwrap();
    assert_eq!(succeeded.reason, "StatusRefused");
}

#[tokio::test]
async fn a_status_that_someone_else_wrote_is_left_to_them() {
    let rig = Rig::start();
    let gate = rig.executor.hold("/one");
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.executor.until_asked("/one").await;
    let theirs = json!({"status": {"phase": "Failed", "message": "ended by hand"}});
    rig.kind::<FlowRun>()
        .patch_status(
            "r",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(theirs),
        )
        .await
        .unwrap();
    gate.notify_one();
    // Its turn comes after whatever the controller still does with the other.
    rig.labelled_run("after", "f").await;
    rig.executor.hold("nothing");
    rig.until_phase("after", "Succeeded").await;
    let status = rig
        .kind::<FlowRun>()
        .get("r")
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(phase_of(&status), "Failed");
    assert_eq!(status.message.as_deref(), Some("ended by hand"));
    assert_eq!(rig.executor.count("/two"), 1);
}

#[tokio::test]
async fn a_watch_that_breaks_or_is_out_of_date_begins_again() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.api.compact();
    rig.api
        .faults()
        .add(Rule::new(Fault::WatchDropped).resource("flowruns").times(1));
    for index in 0..5 {
        let name = format!("r{index}");
        rig.labelled_run(&name, "f").await;
        rig.until_phase(&name, "Succeeded").await;
    }
}

#[tokio::test]
async fn a_wait_is_not_lengthened_by_a_restart() {
    let mut rig = Rig::start();
    let wait = json!({"name": "pause", "action": {"type": "wait", "wait": {"duration": "2s"}}});
    rig.ready_flow("f", json!({"steps": [wait]})).await;
    rig.labelled_run("r", "f").await;
    let waiting = rig
        .until_status("r", "waiting", |status| {
            status
                .steps
                .first()
                .is_some_and(|step| step.resume_after.is_some())
        })
        .await;
    rig.kill_controller().await;
    rig.start_controller(|_| {});
    let status = rig.until_phase("r", "Succeeded").await;
    let due = waiting.steps[0].resume_after.as_ref().unwrap().0;
    let ended = status.steps[0].completion_time.as_ref().unwrap().0;
    let late = ended.duration_since(due);
    assert!(
        !late.is_negative() && late.unsigned_abs() < Duration::from_secs(2),
        "{late:?}"
    );
}
