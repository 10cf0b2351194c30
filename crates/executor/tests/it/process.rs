//! The binary: its arguments, its two ports, and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};

use kubezap_testing::identity::Identity;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::serve::{connect, execute};
use crate::support::{Server, body_of, get, ok, within};

const BINARY: &str = env!("CARGO_BIN_EXE_kubezap-http-executor");

async fn start(folder: &Path, identity: &Identity) -> (Child, SocketAddr, SocketAddr) {
    let (certificate, key) = identity.executor("shop");
    let files = [
        ("tls-cert", certificate.as_str()),
        ("tls-key", key.as_str()),
        ("tls-ca", identity.ca_pem()),
    ];
    let mut command = Command::new(BINARY);
    for (name, pem) in files {
        let path = folder.join(name);
        std::fs::write(&path, pem).unwrap();
        command.arg(format!("--{name}")).arg(path);
    }
    let mut child = command
        .args(["--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"])
        .args([
            "--installation",
            "test",
            "--blocked-cidrs",
            "127.0.0.2/32,8.8.8.8/32",
        ])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap().unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = |field: &str| line[field].as_str().unwrap().parse().unwrap();
    let addresses = (address("listen"), address("health"));
    // Keeps the pipe open and empty, so that logging never blocks the process.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, addresses.0, addresses.1)
}

async fn probe(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn the_process_serves_its_controller_answers_probes_and_ends_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity::new("test");
    let target = Server::answering(|_| ok(b"from the target")).await;
    let (mut child, address, health) = start(folder.path(), &identity).await;

    let mut controller = connect(address, identity.ca_pem(), Some(identity.controller()))
        .await
        .unwrap();
    let response = execute(&mut controller, &get(target.url("/"))).await;
    assert_eq!(body_of(&response), b"from the target");
    let mut blocked = get("http://127.0.0.2/");
    blocked.allow.push("127.0.0.2".to_owned());
    let refused = execute(&mut controller, &blocked).await;
    let (_, message) = crate::support::failure_of(&refused);
    assert!(message.contains("--blocked-cidrs"), "{message}");

    for path in ["/healthz", "/readyz"] {
        let answer = probe(health, path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let metrics = probe(health, "/metrics").await;
    assert!(
        metrics.contains("kubezap_executor_requests_total{code=\"ok\"} 1"),
        "{metrics}"
    );

    let pid = child.id().unwrap().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().await;
    assert!(killed.unwrap().success());
    assert!(within(child.wait()).await.unwrap().success());
}

async fn run(arguments: &[&str]) -> Output {
    within(Command::new(BINARY).args(arguments).output())
        .await
        .unwrap()
}

#[tokio::test]
async fn arguments_that_cannot_work_are_refused_in_one_line() {
    let refused = run(&["--allow-tls-skip-verify"]).await;
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        text.contains("--allow-tls-skip-verify is refused: "),
        "{text}"
    );

    let missing = run(&[
        "--installation",
        "test",
        "--tls-cert",
        "/nowhere/tls.crt",
        "--tls-key",
        "/nowhere/tls.key",
        "--tls-ca",
        "/nowhere/ca.crt",
    ])
    .await;
    assert_eq!(missing.status.code(), Some(3));
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        text.starts_with("kubezap-http-executor: cannot read /nowhere/tls.crt: "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");

    let unknown = run(&["--blocked-cidrs", "nonsense"]).await;
    assert_eq!(unknown.status.code(), Some(2));
}
