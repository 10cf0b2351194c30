//! How a FlowRun is carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::api::DeleteParams;
use kubezap_api::{Flow, FlowRun};
use kubezap_controller::DispatchError;
use kubezap_local_api::{Fault, Rule};
use kubezap_step_protocol::{Code, ExecuteResponse};
use kubezap_testing::wait::until;
use serde_json::json;

use crate::rig::{DEADLINE, Rig, call, object, ok, phase_of, responds, three_steps};

fn step<'s>(
    status: &'s kubezap_api::FlowRunStatus,
    name: &str,
) -> &'s kubezap_api::flow_run::StepStatus {
    status.steps.iter().find(|step| step.name == name).unwrap()
}

#[tokio::test]
async fn three_steps_cost_three_status_writes_and_no_read() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Succeeded").await;

    assert_eq!(
        rig.requests("flowruns", "r"),
        [
            "update status 200",
            "update status 200",
            "update status 200"
        ]
    );
    let urls: Vec<_> = rig
        .executor
        .asked()
        .into_iter()
        .map(|asked| asked.url)
        .collect();
    assert_eq!(
        urls,
        [
            "https://example.com/one",
            "https://example.com/two",
            "https://example.com/three"
        ]
    );
    assert!(status.flow_revision.unwrap().starts_with("f-"));
    assert_eq!(status.observed_generation, Some(1));
}

#[tokio::test]
async fn the_outcome_of_a_step_is_stored_before_the_next_call_leaves() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
    let writes = rig.audit("flowruns", "r");
    let asked = rig.executor.asked();
    for (write, next) in writes.iter().zip(asked.iter().skip(1)) {
        assert!(write.at <= next.at);
    }
}

#[tokio::test]
async fn a_request_is_what_the_step_says_and_what_the_installation_allows() {
    let mut rig = Rig::without_controller();
    rig.start_controller(|config| config.egress_allow = vec!["10.0.0.0/8:443".into()]);
    rig.executor.answer(|asked, _| async move {
        ok(if asked.url.ends_with("read") {
            r#"{"id": 7}"#
        } else {
            "{}"
        })
    });
    let read = json!({
        "name": "read",
        "action": {"type": "http", "http": {
            "url": "https://example.com/read",
            "method": "GET",
            "headers": {"X-Color": "red"},
            "resultMappings": {"id": "$.id"},
        }},
        "results": [{"name": "id"}],
    });
    let write = json!({
        "name": "write",
        "action": {"type": "http", "http": {
            "url": "https://example.com/write",
            "body": r#"{"id": $(steps.read.results.id)}"#,
        }},
    });
    rig.ready_flow("f", json!({"steps": [read, write]})).await;
    let uid = rig.labelled_run("r", "f").await.metadata.uid.unwrap();
    rig.until_phase("r", "Succeeded").await;

    let asked = rig.executor.asked();
    let (read, write) = (&asked[0], &asked[1]);
    assert_eq!(
        (read.method.as_str(), read.max_redirects, read.discard_body),
        ("GET", 10, false)
    );
    assert_eq!(
        (
            write.method.as_str(),
            write.max_redirects,
            write.discard_body
        ),
        ("POST", 0, true)
    );
    assert_eq!(read.headers["x-color"], "red");
    assert_eq!(read.headers["idempotency-key"], format!("{uid}/read"));
    assert!(read.headers["traceparent"].starts_with(&format!("00-{}-", uid.replace('-', ""))));
    assert_eq!(write.body, r#"{"id": 7}"#);
    assert_eq!(write.allow, ["10.0.0.0/8:443"]);
    assert_ne!(read.execution_id, write.execution_id);
}

#[tokio::test]
async fn editing_or_deleting_a_flow_does_not_change_a_run_under_way() {
    let rig = Rig::start();
    let gate = rig.executor.hold("/one");
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.executor.until_asked("/one").await;

    let other = json!({"spec": {"steps": [call("other", &[])]}});
    let generation = rig.patch::<Flow>("f", other).await.metadata.generation;
    rig.until_condition::<Flow>("f", "Ready", |ready| {
        ready.observed_generation == generation
    })
    .await;
    rig.kind::<Flow>()
        .delete("f", &DeleteParams::default())
        .await
        .unwrap();
    gate.notify_one();

    let status = rig.until_phase("r", "Succeeded").await;
    assert_eq!(status.steps.len(), 3);
    assert_eq!(rig.executor.count("/other"), 0);
}

#[tokio::test]
async fn a_run_of_a_missing_flow_fails_at_once_and_says_so() {
    let rig = Rig::start();
    rig.run("r", "nowhere").await;
    let status = rig.until_phase("r", "Failed").await;
    assert_eq!(
        status.message.as_deref(),
        Some("the Flow nowhere does not exist in the namespace default")
    );
    let succeeded = status
        .conditions
        .iter()
        .find(|c| c.type_ == "Succeeded")
        .unwrap();
    assert_eq!(
        (succeeded.status.as_str(), succeeded.reason.as_str()),
        ("False", "FlowNotFound")
    );
}

#[tokio::test]
async fn a_run_of_a_flow_that_is_not_ready_fails_and_says_why() {
    let rig = Rig::start();
    rig.flow(
        "f",
        json!({"steps": [call("a", &["b"]), call("b", &["a"])]}),
    )
    .await;
    rig.run("r", "f").await;
    let status = rig.until_phase("r", "Failed").await;
    let message = status.message.unwrap();
    assert!(
        message.starts_with("the Flow f is not Ready: InvalidSpec: "),
        "{message}"
    );
    let succeeded = status
        .conditions
        .iter()
        .find(|c| c.type_ == "Succeeded")
        .unwrap();
    assert_eq!(succeeded.reason, "FlowNotReady");
}

#[tokio::test]
async fn a_run_made_with_its_flow_waits_for_the_flow_to_be_stored() {
    let rig = Rig::start();
    let slow = Rule::new(Fault::Status(503))
        .verb("create")
        .resource("controllerrevisions")
        .times(1);
    rig.api.faults().add(slow);
    rig.flow("f", three_steps()).await;
    rig.run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
}

#[tokio::test]
async fn a_run_without_a_label_gets_it_before_it_runs() {
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    rig.run("r", "f").await;
    rig.until_phase("r", "Succeeded").await;
    let labels = rig
        .kind::<FlowRun>()
        .get("r")
        .await
        .unwrap()
        .metadata
        .labels
        .unwrap();
    let slot = kubezap_engine::driver::slot_of("default", "f").to_string();
    assert_eq!(labels["kubezap.io/slot"], slot);
    let requests = rig.requests("flowruns", "r");
    assert_eq!(requests[0], "patch 200");
    assert_eq!(requests.len(), 4, "{requests:?}");
}

#[tokio::test]
async fn cancel_aborts_the_call_and_ends_the_run() {
    let rig = Rig::start();
    rig.executor.hold("/one");
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.executor.until_asked("/one").await;
    let cancel = json!({"metadata": {"annotations": {"kubezap.io/cancel": "true"}}});
    rig.patch::<FlowRun>("r", cancel).await;
    let status = rig.until_phase("r", "Cancelled").await;
    assert_eq!(rig.executor.count("/two"), 0);
    assert_eq!(step(&status, "two").reason.as_deref(), Some("NotReached"));
}

#[tokio::test]
async fn deleting_a_run_aborts_its_call_and_writes_nothing() {
    let rig = Rig::start();
    let aborted = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&aborted);
    rig.executor.answer(move |_, cancel| {
        let seen = Arc::clone(&seen);
        async move {
            cancel.cancelled().await;
            seen.fetch_add(1, Ordering::SeqCst);
            ok("{}")
        }
    });
    rig.ready_flow("f", three_steps()).await;
    rig.labelled_run("r", "f").await;
    rig.executor.until_asked("/one").await;
    // It says that it runs before it is deleted, so that no such write is counted below.
    rig.until_phase("r", "Running").await;
    let before = rig.requests("flowruns", "r").len();
    rig.kind::<FlowRun>()
        .delete("r", &DeleteParams::default())
        .await
        .unwrap();
    until("the call to be aborted", DEADLINE, || async {
        (aborted.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    // A run that is made after it has its turn after it.
    rig.executor.answer(|_, _| async { ok("{}") });
    rig.labelled_run("after", "f").await;
    rig.until_phase("after", "Succeeded").await;
    assert_eq!(rig.requests("flowruns", "r").len(), before);
}

#[tokio::test]
async fn a_call_that_no_executor_took_is_made_again_without_counting() {
    let rig = Rig::start();
    let calls = Arc::new(AtomicUsize::new(0));
    rig.executor.answer(move |_, _| {
        let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                Err(DispatchError::NotDelivered("refused".into()))
            } else {
                ok("{}")
            }
        }
    });
    rig.ready_flow("f", json!({"steps": [call("one", &[])]}))
        .await;
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Succeeded").await;
    assert_eq!(step(&status, "one").attempts, Some(1));
    assert_eq!(rig.executor.count("/one"), 2);
}

#[tokio::test]
async fn each_way_a_call_fails_has_its_reason_and_message() {
    let rig = Rig::start();
    rig.executor.answer(|asked, _| async move {
        let code = match asked.url.rsplit('/').next().unwrap() {
            "lost" => return Err(DispatchError::Lost("connection reset".into())),
            "status" => return responds(503, "busy"),
            "panic" => panic!("a defect"),
            name => Code::ALL
                .into_iter()
                .find(|code| code.as_str().replace('_', "-") == name)
                .unwrap(),
        };
        Ok(ExecuteResponse::Failed {
            code,
            message: "example.com: why".into(),
        })
    });
    let cases = [
        (
            "egress-denied",
            "EgressDenied",
            "egress_denied: example.com: why",
        ),
        ("dns", "DNS", "dns: example.com: why"),
        ("connect", "Connect", "connect: example.com: why"),
        ("tls", "TLS", "tls: example.com: why"),
        ("timeout", "TimedOut", "timeout: example.com: why"),
        (
            "response-too-large",
            "ResponseTooLarge",
            "response_too_large: example.com: why",
        ),
        (
            "invalid-request",
            "InvalidRequest",
            "invalid_request: example.com: why",
        ),
        ("canceled", "Canceled", "canceled: example.com: why"),
        (
            "mock-unmatched",
            "MockUnmatched",
            "mock_unmatched: example.com: why",
        ),
        ("lost", "ExecutorLost", "executor_lost: connection reset"),
        ("status", "HTTPStatus", "503"),
        ("panic", "ExecutorLost", "executor_lost: internal error"),
    ];
    let steps: Vec<_> = cases.iter().map(|(name, _, _)| call(name, &[])).collect();
    rig.ready_flow("f", json!({"failurePolicy": "Continue", "steps": steps}))
        .await;
    rig.labelled_run("r", "f").await;
    let status = rig.until_phase("r", "Succeeded").await;
    for (name, reason, message) in cases {
        let step = step(&status, name);
        assert_eq!(step.reason.as_deref(), Some(reason), "{name}");
        let said = step.message.as_deref().unwrap_or_default();
        assert!(said.contains(message), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_triggers_action_runs_and_is_pinned_to_its_revision() {
    let rig = Rig::start();
    let action =
        json!({"type": "webhook", "webhook": {"url": "https://example.com/$(trigger.body.path)"}});
    let spec = json!({"type": "webhook", "webhook": {"path": "x"}, "action": action});
    rig.create::<kubezap_api::Trigger>(object("Trigger", "t", spec))
        .await;
    let run = json!({
        "triggerRef": {"name": "t", "type": "webhook"},
        "triggerData": {"source": "webhook", "body": r#"{"path": "there"}"#},
    });
    rig.create::<FlowRun>(object("FlowRun", "r", run)).await;
    let status = rig.until_phase("r", "Succeeded").await;
    assert_eq!(rig.executor.asked()[0].url, "https://example.com/there");
    assert!(status.flow_revision.unwrap().starts_with("t-"));
    assert_eq!(status.steps[0].name, "action");
}

#[tokio::test]
async fn runs_side_by_side_each_call_each_step_once() {
    const RUNS: usize = 100;
    let rig = Rig::start();
    rig.ready_flow("f", three_steps()).await;
    for index in 0..RUNS {
        rig.labelled_run(&format!("r{index}"), "f").await;
    }
    for index in 0..RUNS {
        let name = format!("r{index}");
        let status = rig
            .until_status(&name, "over", |status| phase_of(status) == "Succeeded")
            .await;
        assert_eq!(status.steps.len(), 3);
        assert_eq!(rig.requests("flowruns", &name), ["update status 200"; 3]);
    }
    for path in ["/one", "/two", "/three"] {
        assert_eq!(rig.executor.count(path), RUNS, "{path}");
    }
}
