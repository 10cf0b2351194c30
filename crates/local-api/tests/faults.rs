//! Faults on demand, the audit, and what only a local server can be made to do.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kubezap_api::{Flow, FlowRun};
use kubezap_local_api::{Fault, LocalApi, Options, Rule};
use serde_json::json;

fn api() -> LocalApi {
    LocalApi::new(Options {
        audit: true,
        ..Options::new(kubezap_api::crds())
    })
}

fn flow(name: &str) -> Flow {
    serde_json::from_value(json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "Flow",
        "metadata": {"name": name},
        "spec": {"steps": [{"name": "a", "action": {"type": "wait", "wait": {"duration": "1s"}}}]},
    }))
    .unwrap()
}

fn flows(api: &LocalApi) -> Api<Flow> {
    Api::default_namespaced(api.client("default"))
}

async fn create(flows: &Api<Flow>, name: &str) -> kube::Result<Flow> {
    flows.create(&PostParams::default(), &flow(name)).await
}

fn code<T: std::fmt::Debug>(answer: kube::Result<T>) -> u16 {
    match answer.unwrap_err() {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_refusal_stores_nothing_and_runs_out() {
    let api = api();
    let flows = flows(&api);
    for status in [409, 429, 500, 503] {
        api.faults().add(
            Rule::new(Fault::Status(status))
                .verb("create")
                .resource("flows")
                .times(1),
        );
        assert_eq!(code(create(&flows, "one").await), status);
        assert!(flows.get_opt("one").await.unwrap().is_none());
    }
    create(&flows, "one").await.unwrap();
}

#[tokio::test]
async fn a_lost_answer_is_stored_all_the_same() {
    let api = api();
    let flows = flows(&api);
    api.faults()
        .add(Rule::new(Fault::AnswerLost).name("on*").times(1));
    assert!(matches!(
        create(&flows, "one").await,
        Err(kube::Error::Service(_))
    ));
    assert!(flows.get_opt("one").await.unwrap().is_some());
}

#[tokio::test]
async fn latency_delays_a_request() {
    let api = api();
    let flows = flows(&api);
    api.faults()
        .add(Rule::new(Fault::Latency(Duration::from_millis(80))).verb("get"));
    let begin = Instant::now();
    flows.get_opt("one").await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(80));
    api.faults().clear();
}

async fn watch_from(
    flows: &Api<Flow>,
    version: &str,
) -> futures::stream::BoxStream<'static, kube::Result<WatchEvent<Flow>>> {
    flows
        .watch(&WatchParams::default(), version)
        .await
        .unwrap()
        .boxed()
}

async fn next(
    events: &mut futures::stream::BoxStream<'static, kube::Result<WatchEvent<Flow>>>,
) -> Option<kube::Result<WatchEvent<Flow>>> {
    tokio::time::timeout(Duration::from_secs(20), events.next())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_rule_drops_a_watch_that_is_open() {
    let api = api();
    let flows = flows(&api);
    let mut events = watch_from(&flows, "0").await;
    create(&flows, "one").await.unwrap();
    assert!(matches!(
        next(&mut events).await,
        Some(Ok(WatchEvent::Added(_)))
    ));
    api.faults()
        .add(Rule::new(Fault::WatchDropped).resource("flows").times(1));
    let end = next(&mut events).await;
    assert!(matches!(end, None | Some(Err(_))), "{end:?}");
}

#[tokio::test]
async fn a_stalled_watch_catches_up_when_the_rule_goes() {
    let api = api();
    let flows = flows(&api);
    let version = api.resource_version().to_string();
    api.faults().add(Rule::new(Fault::WatchStalled));
    let mut events = watch_from(&flows, &version).await;
    create(&flows, "one").await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(50), events.next()).await;
    assert!(early.is_err(), "{early:?}");
    api.faults().clear();
    assert!(matches!(
        next(&mut events).await,
        Some(Ok(WatchEvent::Added(_)))
    ));
}

#[tokio::test]
async fn a_watch_can_be_told_that_its_version_is_too_old() {
    let api = api();
    let flows = flows(&api);
    let version = api.resource_version().to_string();
    api.faults().add(Rule::new(Fault::WatchExpired).times(1));
    let mut events = watch_from(&flows, &version).await;
    match next(&mut events).await {
        Some(Ok(WatchEvent::Error(status))) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_page_after_compaction_is_expired_and_can_go_on_inconsistently() {
    let api = api();
    let flows = flows(&api);
    for name in ["a", "b", "c"] {
        create(&flows, name).await.unwrap();
    }
    let first = flows.list(&ListParams::default().limit(1)).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    create(&flows, "bb").await.unwrap();
    api.compact();
    let list = |token: &str| ListParams::default().limit(10).continue_token(token);
    let request = http::Request::get(format!(
        "/apis/automation.kubezap.io/v1alpha1/namespaces/default/flows?continue={token}"
    ));
    let answer = api
        .client("default")
        .send(request.body(Vec::new().into()).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.status(), 410);
    let body = answer.into_body().collect_bytes().await.unwrap();
    let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["reason"], "Expired");
    let token = status["metadata"]["continue"].as_str().unwrap();
    let rest = flows.list(&list(token)).await.unwrap();
    let names: Vec<_> = rest
        .items
        .iter()
        .filter_map(|flow| flow.metadata.name.clone())
        .collect();
    assert_eq!(names, ["b", "bb", "c"]);
}

#[tokio::test]
async fn an_open_watch_survives_compaction() {
    let api = api();
    let flows = flows(&api);
    let version = api.resource_version().to_string();
    let mut events = watch_from(&flows, &version).await;
    create(&flows, "one").await.unwrap();
    assert!(matches!(
        next(&mut events).await,
        Some(Ok(WatchEvent::Added(_)))
    ));
    api.compact();
    create(&flows, "two").await.unwrap();
    assert!(matches!(
        next(&mut events).await,
        Some(Ok(WatchEvent::Added(_)))
    ));
}

#[tokio::test]
async fn the_audit_tells_who_wrote_what_in_which_order() {
    let api = api();
    let runs: Api<FlowRun> = Api::default_namespaced(api.client("default"));
    let run: FlowRun = serde_json::from_value(json!({
        "apiVersion": "automation.kubezap.io/v1alpha1",
        "kind": "FlowRun",
        "metadata": {"name": "one"},
        "spec": {"flowRef": {"name": "some-flow"}},
    }))
    .unwrap();
    runs.create(&PostParams::default(), &run).await.unwrap();
    let patch = json!({"status": {"phase": "Running"}});
    runs.patch_status("one", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    let entries = api.audit();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.seq,
                entry.verb.as_str(),
                entry.subresource.as_str(),
                entry.name.as_str(),
                entry.code,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (1, "create", "", "one", 201),
            (2, "patch", "status", "one", 200)
        ]
    );
    assert!(entries[0].resource_version < entries[1].resource_version);
    assert_eq!(entries[1].body, Some(patch));
    assert!(entries[0].at <= entries[1].at);
}

/// The order of magnitude that tests with many runs need, with room for a slow machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writes_are_quick() {
    let api = LocalApi::new(Options::new(kubezap_api::crds()));
    let runs: Api<FlowRun> = Api::default_namespaced(api.client("default"));
    let mut events = runs
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap()
        .boxed();
    let one = |at: usize| {
        let runs = runs.clone();
        async move {
            let run: FlowRun = serde_json::from_value(json!({
                "apiVersion": "automation.kubezap.io/v1alpha1",
                "kind": "FlowRun",
                "metadata": {"name": format!("run-{at}")},
                "spec": {"flowRef": {"name": "some-flow"}},
            }))
            .unwrap();
            let mut run = runs.create(&PostParams::default(), &run).await.unwrap();
            for phase in ["Pending", "Running", "Succeeded"] {
                let status = json!({"phase": phase, "steps": [{"name": "a"}, {"name": "b"}]});
                run.status = Some(serde_json::from_value(status).unwrap());
                run = runs
                    .replace_status(&format!("run-{at}"), &PostParams::default(), &run)
                    .await
                    .unwrap();
            }
        }
    };
    let begin = Instant::now();
    futures::future::join_all((0..500).map(|at| tokio::spawn(one(at)))).await;
    let took = begin.elapsed();
    println!("2,000 writes took {took:?}");
    let mut seen = 0;
    while seen < 2_000 {
        match tokio::time::timeout(Duration::from_secs(30), events.try_next())
            .await
            .unwrap()
        {
            Ok(Some(WatchEvent::Added(_) | WatchEvent::Modified(_))) => seen += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(took < Duration::from_secs(60), "{took:?}");
}
