//! SIGKILL of the controller in the middle of many runs.

use std::sync::Arc;

use axum::response::IntoResponse;
use http::StatusCode;
use kubezap_api::flow::Flow;
use kubezap_api::flow_run::FlowRun;
use kubezap_testing::target::Target;
use kubezap_testing::wait;
use tokio::sync::watch;

use crate::installation::{Installation, PATIENCE, phase};

const RUNS: usize = 50;

/// `done` is stored before `slow` starts; nothing waits for `leaf` alone; `slow` is in flight when the end comes.
const FLOW: &str = r"
apiVersion: automation.kubezap.io/v1alpha1
kind: Flow
metadata: {name: crash}
spec:
  steps:
  - name: done
    action: {type: http, http: {url: 'TARGET/done/$(run.name)', body: '{}'}}
  - name: leaf
    runAfter: [done]
    action: {type: http, http: {url: 'TARGET/leaf/$(run.name)', body: '{}'}}
  - name: slow
    runAfter: [done]
    action: {type: http, http: {url: 'TARGET/slow/$(run.name)', body: '{}', timeoutSeconds: 120}}
  - name: last
    runAfter: [slow]
    action: {type: http, http: {url: 'TARGET/last/$(run.name)', body: '{}'}}
";

#[tokio::test(flavor = "multi_thread")]
async fn after_sigkill_of_the_controller_every_run_finishes_and_nothing_stored_is_called_again() {
    let (open, opened) = watch::channel(false);
    let opened = Arc::new(opened);
    let target = Target::answering(move |call| {
        let mut opened = opened.as_ref().clone();
        Box::pin(async move {
            if call.path.starts_with("/slow/") {
                // The sender lives as long as the test.
                let _ = opened.wait_for(|open| *open).await;
            }
            StatusCode::OK.into_response()
        })
    })
    .await;
    let mut installation = Installation::start().await;
    installation
        .create_ready::<Flow>(&FLOW.replace("TARGET", &target.url()))
        .await;
    for number in 0..RUNS {
        installation
            .create_run(&format!("r{number}"), "crash")
            .await;
    }
    wait::until(
        "a finished step, a finished leaf and one in flight in every run",
        PATIENCE,
        || async {
            let slow = target
                .calls()
                .iter()
                .filter(|call| call.path.starts_with("/slow/"))
                .count();
            let stored = installation
                .runs()
                .await
                .iter()
                .filter(|run| succeeded(run, "done") && succeeded(run, "leaf"))
                .count();
            (slow == RUNS && stored == RUNS).then_some(())
        },
    )
    .await;

    installation.kill_controller().await;
    open.send(true).expect("the target listens");
    installation.start_controller().await;

    let ended = installation.ended_runs(RUNS).await;
    assert!(ended.iter().all(|run| phase(run) == "Succeeded"));
    for (key, count) in target.calls_by_key() {
        match key.rsplit('/').next().unwrap_or_default() {
            "slow" => assert!(
                count <= 2,
                "{key}: a step in flight is repeated at most once, not {count} times"
            ),
            _ => assert_eq!(count, 1, "{key} was stored, and called again"),
        }
    }
}

fn succeeded(run: &FlowRun, name: &str) -> bool {
    let steps = run
        .status
        .as_ref()
        .map(|status| status.steps.as_slice())
        .unwrap_or_default();
    steps.iter().any(|step| {
        step.name == name
            && step
                .phase
                .is_some_and(|phase| phase.as_str() == "Succeeded")
    })
}
