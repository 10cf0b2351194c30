//! Many events at once, the executor a process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use axum::response::IntoResponse;
use futures::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use kubezap_api::flow::Flow;
use kubezap_api::flow_run::FlowRun;
use kubezap_api::trigger::Trigger;
use kubezap_testing::target::Target;
use kubezap_testing::wait;

use crate::installation::{Installation, PATIENCE, phase};

const EVENTS: usize = 500;

/// A chain of three calls.
const CHAIN: &str = r"
apiVersion: automation.kubezap.io/v1alpha1
kind: Flow
metadata: {name: chain}
spec:
  steps:
  - name: first
    action: {type: http, http: {url: 'TARGET/first/$(run.name)', body: '$(trigger.body)', resultMappings: {n: $.n}}}
  - name: second
    runAfter: [first]
    action: {type: http, http: {url: 'TARGET/second/$(run.name)', body: '{}', resultMappings: {n: $.n}}}
  - name: third
    runAfter: [second]
    action: {type: http, http: {url: 'TARGET/third/$(run.name)', body: '{}', resultMappings: {n: $.n}}}
";

const WEBHOOK: &str = r"
apiVersion: automation.kubezap.io/v1alpha1
kind: Trigger
metadata: {name: in}
spec: {type: webhook, webhook: {path: /hooks/in}, flowRef: {name: chain}}
";

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_concurrent_posts_are_five_hundred_runs_each_step_called_once_with_three_writes()
 {
    let target = Target::answering(|_| {
        Box::pin(async { axum::Json(serde_json::json!({"n": 1})).into_response() })
    })
    .await;
    // Few calls at once are short calls, also on a slow machine: no run has to be shown as Running.
    let mut installation = Installation::start_with(8).await;
    installation
        .create_ready::<Flow>(&CHAIN.replace("TARGET", &target.url()))
        .await;
    installation.create_ready::<Trigger>(WEBHOOK).await;
    let url = format!("{}/hooks/in", installation.gateway().await);
    wait_for_route(&url).await;

    let client = HttpClient::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
    let posts = (0..EVENTS).map(|number| {
        let request = http::Request::post(&url)
            .header("content-type", "application/json")
            .body(Full::from(format!("{{\"number\": {number}}}")))
            .unwrap();
        let client = client.clone();
        tokio::spawn(async move {
            let response = client.request(request).await.unwrap();
            let status = response.status();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(status, 202, "{}", String::from_utf8_lossy(&body));
            serde_json::from_slice::<serde_json::Value>(&body).unwrap()["flowRun"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    });
    let names: BTreeSet<String> = join_all(posts)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        names.len(),
        EVENTS,
        "every answer names a FlowRun of its own"
    );

    let runs = installation.ended_runs(EVENTS).await;
    let stored: BTreeSet<_> = runs
        .iter()
        .map(|run| run.metadata.name.clone().unwrap())
        .collect();
    assert_eq!(stored, names);
    assert!(runs.iter().all(|run| phase(run) == "Succeeded"));

    let calls = target.calls_by_key();
    assert_eq!(calls.len(), 3 * EVENTS, "three steps of every run");
    assert!(
        calls.values().all(|count| *count == 1),
        "each called exactly once"
    );
    a_write_for_each_step_and_no_read(&installation, &runs);
    stored_before_the_next_call(&installation, &target);
}

/// From the API's audit: after its create a run has three status writes, and nobody GETs or LISTs it.
fn a_write_for_each_step_and_no_read(installation: &Installation, runs: &[FlowRun]) {
    let mut writes: BTreeMap<String, usize> = BTreeMap::new();
    let mut begun = false;
    for entry in installation.api.audit() {
        if entry.resource != "flowruns" || !entry.user_agent.starts_with("kubezap") {
            continue;
        }
        match (entry.verb.as_str(), entry.subresource.as_str()) {
            ("update", "status") => {
                assert_eq!(entry.code, 200, "no write conflicts: {entry:?}");
                *writes.entry(entry.name.clone()).or_default() += 1;
            }
            ("create", "") => begun = true,
            ("watch", "") => {}
            // What a watch begins with, before there is any run.
            ("list", "") if !begun => {}
            _ => panic!("not on the hot path: {entry:?}"),
        }
    }
    let mut late = 0;
    for run in runs {
        let name = run.metadata.name.clone().unwrap();
        let first = &run.status.as_ref().unwrap().steps[0];
        // The promise: one write for each step, and one more where the first outcome comes later than 250 ms.
        let expected = match first.duration_millis.unwrap() {
            ..=230 => 3..=3,
            _ => 3..=4,
        };
        late += usize::from(writes[&name] == 4);
        assert!(
            expected.contains(&writes[&name]),
            "{name} has {} status writes, its first step took {:?} ms",
            writes[&name],
            first.duration_millis
        );
    }
    println!("{late} of {EVENTS} runs were shown as Running before their first outcome");
}

/// The write that stores the outcome of call k ends before call k+1 arrives at the target.
fn stored_before_the_next_call(installation: &Installation, target: &Target) {
    let mut stored: BTreeMap<(String, String), Instant> = BTreeMap::new();
    for entry in installation.api.audit() {
        let Some(body) = entry
            .body
            .filter(|_| entry.subresource == "status" && entry.code == 200)
        else {
            continue;
        };
        for step in body["status"]["steps"].as_array().into_iter().flatten() {
            if step["phase"] == "Succeeded" {
                stored
                    .entry((
                        entry.name.clone(),
                        step["name"].as_str().unwrap_or_default().to_owned(),
                    ))
                    .or_insert(entry.at);
            }
        }
    }
    for call in target.calls() {
        let mut path = call.path.trim_start_matches('/').split('/');
        let (step, run) = (
            path.next().unwrap_or_default(),
            path.next().unwrap_or_default(),
        );
        let before = match step {
            "second" => "first",
            "third" => "second",
            _ => continue,
        };
        let at = stored
            .get(&(run.to_owned(), before.to_owned()))
            .unwrap_or_else(|| panic!("{before} of {run} was never stored"));
        assert!(
            *at < call.at,
            "{step} of {run} was called before {before} was stored"
        );
    }
}

/// Waits until the gateway serves the path: a GET is then refused as a method, not as a path.
pub(crate) async fn wait_for_route(url: &str) {
    let client = HttpClient::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
    wait::until("the route", PATIENCE, || async {
        let response = client.get(url.parse().unwrap()).await.ok()?;
        (response.status() == 405).then_some(())
    })
    .await;
}
