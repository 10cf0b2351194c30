//! Runs at every size limit, and one beyond it.

use axum::response::IntoResponse;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use kubezap_api::flow::Flow;
use kubezap_api::flow_run::FlowRun;
use kubezap_api::trigger::Trigger;
use kubezap_testing::target::Target;

use crate::installation::{Installation, phase};
use crate::throughput::wait_for_route;

const KIB: usize = 1024;

/// A target that answers `/N` with a JSON body whose field `v` has N bytes.
async fn sized() -> Target {
    Target::answering(|call| {
        Box::pin(async move {
            let size = call
                .path
                .trim_start_matches('/')
                .split('/')
                .next()
                .and_then(|size| size.parse().ok())
                .unwrap_or(0);
            axum::Json(serde_json::json!({"v": "x".repeat(size)})).into_response()
        })
    })
    .await
}

/// A Flow of steps s0, s1, ... in a chain, each of which keeps a result of the given size.
fn flow(name: &str, target: &str, sizes: &[usize]) -> String {
    let steps: String = sizes
        .iter()
        .enumerate()
        .map(|(index, size)| {
            let after = index.checked_sub(1).map(|before| format!("runAfter: [s{before}], ")).unwrap_or_default();
            format!("  - {{name: s{index}, {after}action: {{type: http, http: {{url: '{target}/{size}', method: GET, resultMappings: {{v: $.v}}}}}}}}\n")
        })
        .collect();
    format!(
        "apiVersion: automation.kubezap.io/v1alpha1\nkind: Flow\nmetadata: {{name: {name}}}\nspec:\n  steps:\n{steps}"
    )
}

fn last_failure(run: &FlowRun) -> (String, String) {
    let steps = run
        .status
        .as_ref()
        .map(|status| status.steps.as_slice())
        .unwrap_or_default();
    let failed = steps
        .iter()
        .find(|step| step.phase.is_some_and(|phase| phase.as_str() == "Failed"));
    failed
        .map(|step| {
            (
                step.reason.clone().unwrap_or_default(),
                step.message.clone().unwrap_or_default(),
            )
        })
        .unwrap_or_default()
}

async fn run(installation: &Installation, name: &str, yaml: &str) -> FlowRun {
    installation.create_ready::<Flow>(yaml).await;
    installation.create_run(name, name).await;
    let count = installation.runs().await.len();
    let runs = installation.ended_runs(count).await;
    runs.into_iter()
        .find(|run| run.metadata.name.as_deref() == Some(name))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn results_at_the_limit_succeed_and_one_byte_more_fails_the_step_by_name() {
    let target = sized().await;
    let installation = Installation::start().await;
    let url = target.url();

    let at = run(&installation, "one-at", &flow("one-at", &url, &[64 * KIB])).await;
    assert_eq!(phase(&at), "Succeeded");
    let over = run(
        &installation,
        "one-over",
        &flow("one-over", &url, &[64 * KIB + 1]),
    )
    .await;
    assert_eq!(phase(&over), "Failed");
    let (reason, message) = last_failure(&over);
    assert_eq!(reason, "ResultTooLarge");
    assert!(
        message.contains('v') && message.contains("65537") && message.contains("65536"),
        "{message}"
    );

    let at = run(
        &installation,
        "all-at",
        &flow("all-at", &url, &[64 * KIB; 4]),
    )
    .await;
    assert_eq!(phase(&at), "Succeeded");
    let over = run(
        &installation,
        "all-over",
        &flow(
            "all-over",
            &url,
            &[64 * KIB, 64 * KIB, 64 * KIB, 64 * KIB, 1],
        ),
    )
    .await;
    assert_eq!(phase(&over), "Failed");
    let (reason, message) = last_failure(&over);
    assert_eq!(reason, "ResultTooLarge");
    assert!(
        message.contains("262145") && message.contains("262144"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_hundred_and_twenty_eight_steps_with_the_largest_results_reach_a_terminal_phase() {
    let target = sized().await;
    let installation = Installation::start().await;
    // 128 results of 2 KiB are 256 KiB exactly.
    let full = run(
        &installation,
        "full",
        &flow("full", &target.url(), &[2 * KIB; 128]),
    )
    .await;
    assert_eq!(phase(&full), "Succeeded");
    let stored = serde_json::to_vec(&full.status).unwrap().len();
    assert!(stored <= 384 * KIB, "the status has {stored} bytes");
    let over = run(
        &installation,
        "over",
        &flow("over", &target.url(), &[64 * KIB; 128]),
    )
    .await;
    assert_eq!(phase(&over), "Failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_at_the_limit_is_taken_and_one_byte_more_is_413_without_a_run() {
    let target = sized().await;
    let mut installation = Installation::start().await;
    installation
        .create_ready::<Flow>(&flow("in", &target.url(), &[1]))
        .await;
    installation
        .create_ready::<Trigger>("{apiVersion: automation.kubezap.io/v1alpha1, kind: Trigger, metadata: {name: in}, spec: {type: webhook, webhook: {path: /hooks/in}, flowRef: {name: in}}}")
        .await;
    let url = format!("{}/hooks/in", installation.gateway().await);
    wait_for_route(&url).await;
    let client = HttpClient::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
    for (size, expected) in [(512 * KIB, 202), (512 * KIB + 1, 413)] {
        let request = http::Request::post(&url)
            .header("content-type", "text/plain")
            .body(Full::from("x".repeat(size)))
            .unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!(response.status(), expected, "{size} bytes");
        response.into_body().collect().await.unwrap();
    }
    assert_eq!(installation.ended_runs(1).await.len(), 1);
}
