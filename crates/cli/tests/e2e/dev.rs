//! `kubezap dev` as its user meets it: the examples, a mistake in a file, and the commands beside it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use kubezap_testing::process::{Process, binary};
use serde_json::Value;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(30);

/// `kubezap dev` on free ports, and what it said of itself.
struct Dev {
    process: Process,
    gateway: String,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Dev {
    async fn start(path: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let mut process = Process::start(
            "kubezap",
            &[
                "dev",
                &path.display().to_string(),
                "--listen",
                "127.0.0.1:0",
                "--api",
                "127.0.0.1:0",
                "--kubeconfig",
                &kubeconfig.display().to_string(),
                "-o",
                "json",
            ],
        );
        let gateway = process
            .json("the addresses", PATIENCE, |line| {
                (line["type"] == "listening").then(|| line["gateway"].as_str().unwrap().to_owned())
            })
            .await;
        Self {
            process,
            gateway,
            kubeconfig,
            _folder: folder,
        }
    }

    async fn route(&mut self, trigger: &str) -> String {
        self.process
            .json("the route", PATIENCE, |line| {
                (line["type"] == "route" && line["trigger"] == trigger)
                    .then(|| line["url"].as_str().unwrap().to_owned())
            })
            .await
    }

    /// Posts JSON and gives the name of the run.
    async fn post(&self, url: &str, body: &str) -> String {
        let client = HttpClient::builder(TokioExecutor::new()).build_http::<Full<bytes::Bytes>>();
        let request = http::Request::post(url)
            .header("content-type", "application/json")
            .body(Full::from(body.to_owned()))
            .unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!(response.status(), 202);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()["flowRun"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The run as it was shown when it ended.
    async fn ended(&mut self, name: &str) -> Value {
        self.process
            .json("the end of the run", PATIENCE, |line| {
                let run = &line["run"];
                let ended = ["Succeeded", "Failed", "Cancelled"]
                    .iter()
                    .any(|phase| run["status"]["phase"] == *phase);
                (line["type"] == "run" && run["metadata"]["name"] == name && ended)
                    .then(|| run.clone())
            })
            .await
    }

    /// Runs another command against it: exit code, standard output, standard error.
    async fn command(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::new(binary("kubezap"))
            .args(arguments)
            .args(["--kubeconfig", &self.kubeconfig.display().to_string()])
            .output()
            .await
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn step<'a>(run: &'a Value, name: &str) -> &'a Value {
    run["status"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["name"] == name)
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quick_start_succeeds_and_listens_within_a_second() {
    let begin = Instant::now();
    let mut dev = Dev::start(&example("quickstart")).await;
    let listening = begin.elapsed();
    let url = dev.route("my-webhook").await;
    assert!(
        url.ends_with("/hooks/my-webhook") && url.starts_with(&dev.gateway),
        "{url}"
    );
    let name = dev.post(&url, r#"{"event": "hello"}"#).await;
    let run = dev.ended(&name).await;
    assert_eq!(run["status"]["phase"], "Succeeded", "{run}");
    assert_eq!(step(&run, "call-api")["results"][0]["value"], "hello");
    // A loaded machine may be slow; ten times the promise is a defect all the same.
    assert!(
        listening < Duration::from_secs(10),
        "from start to listening: {listening:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_router_notifies_exactly_one_desk() {
    let mut dev = Dev::start(&example("order-router")).await;
    let url = dev.route("orders").await;
    for (amount, notified, skipped) in [
        (1200, "notify-sales", "notify-fulfilment"),
        (40, "notify-fulfilment", "notify-sales"),
    ] {
        let name = dev
            .post(
                &url,
                &format!(r#"{{"orderId": "A-1", "amount": {amount}}}"#),
            )
            .await;
        let run = dev.ended(&name).await;
        assert_eq!(run["status"]["phase"], "Succeeded", "{run}");
        assert_eq!(step(&run, notified)["phase"], "Succeeded");
        assert_eq!(
            (
                &step(&run, skipped)["phase"],
                &step(&run, skipped)["reason"]
            ),
            (&"Skipped".into(), &"ConditionFalse".into())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_commands_work_through_the_kubeconfig_that_dev_wrote() {
    let mut dev = Dev::start(&example("order-router")).await;
    dev.route("orders").await;

    let (code, out, err) = dev
        .command(&[
            "fire",
            "orders",
            "-d",
            r#"{"orderId": "A-2", "amount": 1}"#,
            "--wait",
        ])
        .await;
    assert_eq!(code, 0, "{out}{err}");
    let name = out
        .lines()
        .next()
        .unwrap()
        .trim_end_matches(" created")
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned();

    let (_, out, _) = dev.command(&["history"]).await;
    let heading = out
        .lines()
        .next()
        .unwrap()
        .split_whitespace()
        .collect::<Vec<_>>();
    assert_eq!(
        heading,
        [
            "NAME", "TRIGGER", "FLOW", "PHASE", "AGE", "DURATION", "MESSAGE"
        ]
    );
    assert!(out.contains(&name) && out.contains("Succeeded"), "{out}");

    let (_, out, _) = dev.command(&["history", &name]).await;
    for expected in [
        "Source:    manual",
        "charge  Succeeded",
        "state = paid",
        "notify-sales  Skipped",
    ] {
        assert!(out.contains(expected), "{expected} is missing in\n{out}");
    }

    let (_, out, _) = dev
        .command(&["history", "--phase", "Failed", "-o", "json"])
        .await;
    assert_eq!(out.trim(), "[]");
    let (_, out, _) = dev
        .command(&[
            "history",
            "--trigger",
            "orders",
            "--since",
            "7d",
            "-o",
            "name",
        ])
        .await;
    assert_eq!(out.trim(), format!("flowrun.automation.kubezap.io/{name}"));
    let (_, out, _) = dev.command(&["triggers"]).await;
    assert!(
        out.contains("orders") && out.contains("order-router") && out.contains("True"),
        "{out}"
    );
    let (_, out, _) = dev.command(&["flows", "-A", "-o", "json"]).await;
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()[0]["metadata"]["name"],
        "order-router"
    );
    let (code, out, _) = dev.command(&["version"]).await;
    assert!(
        code == 0 && out.contains("kubezap") && out.contains("Kubernetes"),
        "{out}"
    );
    assert_eq!(
        dev.command(&["watch", &name]).await.0,
        0,
        "a run that succeeded"
    );
    let (code, _, err) = dev.command(&["fire", "nobody"]).await;
    assert_eq!(
        (code, err.contains("\"nobody\" not found")),
        (1, true),
        "{err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_a_file_is_told_with_its_line_and_the_last_good_version_stays() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["flow.yaml", "trigger.yaml", "mocks.yaml"] {
        std::fs::copy(example("quickstart").join(file), folder.path().join(file)).unwrap();
    }
    let mut dev = Dev::start(folder.path()).await;
    let url = dev.route("my-webhook").await;

    let flow = std::fs::read_to_string(folder.path().join("flow.yaml")).unwrap();
    std::fs::write(
        folder.path().join("flow.yaml"),
        flow.replace("method: POST", "method: FETCH"),
    )
    .unwrap();
    let complaint = dev
        .process
        .json("the complaint", PATIENCE, |line| {
            (line["type"] == "complaint").then(|| line.clone())
        })
        .await;
    let wrong = flow
        .lines()
        .position(|line| line.contains("method: POST"))
        .unwrap()
        + 1;
    assert_eq!(complaint["line"], wrong, "{complaint}");
    assert!(
        complaint["message"]
            .as_str()
            .unwrap()
            .contains("spec.steps[0].action.http.method"),
        "{complaint}"
    );

    let name = dev.post(&url, r#"{"event": "hello"}"#).await;
    assert_eq!(dev.ended(&name).await["status"]["phase"], "Succeeded");

    // What a schema cannot say becomes a condition, and is told the same way.
    std::fs::write(
        folder.path().join("flow.yaml"),
        flow.replace("$(trigger.body.event)", "$(steps.nobody.results.x)"),
    )
    .unwrap();
    let complaint = dev
        .process
        .json("the condition", PATIENCE, |line| {
            (line["type"] == "complaint").then(|| line.clone())
        })
        .await;
    let message = complaint["message"].as_str().unwrap();
    assert!(
        message.contains("not Ready") && message.contains("steps.nobody"),
        "{complaint}"
    );
    let wrong = flow
        .lines()
        .position(|line| line.contains("body:"))
        .unwrap()
        + 1;
    assert_eq!(complaint["line"], wrong, "{complaint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_within_a_second() {
    let mut dev = Dev::start(&example("quickstart")).await;
    dev.route("my-webhook").await;
    let status = Command::new("kill")
        .args(["-INT", &dev.process.pid().to_string()])
        .status()
        .await
        .unwrap();
    assert!(status.success());
    let begin = Instant::now();
    let ended = dev.process.ended(PATIENCE).await;
    assert!(ended.success(), "{ended}");
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
}
