//! Wrong use of the command: one line that says what and what to do, and the exit code.

use std::process::Stdio;

use kubezap_testing::process::binary;
use tokio::net::TcpListener;
use tokio::process::Command;

async fn run(arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(binary("kubezap"))
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stderr)
            .trim_end()
            .to_owned(),
    )
}

fn quickstart() -> String {
    format!("{}/../../examples/quickstart", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_with_what_to_do_and_ends_with_3() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, text) = run(&["dev", &quickstart(), "--listen", &address]).await;
    assert_eq!(code, 3, "{text}");
    assert_eq!(
        text,
        format!(
            "kubezap: {address} is taken by another process: stop it, or choose another address with --listen 127.0.0.1:PORT (port 0 takes a free one)"
        )
    );
}

#[tokio::test]
async fn an_address_that_is_not_loopback_is_refused_with_2() {
    let (code, text) = run(&["dev", &quickstart(), "--listen", "0.0.0.0:0"]).await;
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("not a loopback address"), "{text}");
}

#[tokio::test]
async fn a_path_that_cannot_be_read_is_named_and_ends_with_2() {
    let (code, text) = run(&[
        "dev",
        "no/such/folder",
        "--listen",
        "127.0.0.1:0",
        "--api",
        "127.0.0.1:0",
    ])
    .await;
    assert_eq!(code, 2, "{text}");
    assert_eq!(
        text,
        "kubezap: no/such/folder: No such file or directory (os error 2)"
    );
}

#[tokio::test]
async fn an_allow_entry_that_cannot_be_read_is_named_and_ends_with_2() {
    let (code, text) = run(&[
        "dev",
        &quickstart(),
        "--listen",
        "127.0.0.1:0",
        "--api",
        "127.0.0.1:0",
        "--allow",
        "10.0.0.0/99",
    ])
    .await;
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("--allow: ") && text.contains("10.0.0.0/99"),
        "{text}"
    );
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_ends_with_2_and_one_that_points_nowhere_with_3() {
    let (code, text) = run(&["triggers", "--kubeconfig", "no/such/file"]).await;
    assert_eq!(code, 2, "{text}");
    assert!(
        text.contains("no/such/file") && text.lines().count() == 1,
        "{text}"
    );

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let config = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], clusters: [{{name: k, cluster: {{server: '{server}'}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    std::fs::write(&path, config).unwrap();
    let (code, text) = run(&["triggers", "--kubeconfig", &path.display().to_string()]).await;
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains(&server) && text.lines().count() == 1,
        "{text}"
    );
}

#[tokio::test]
async fn bad_usage_ends_with_2() {
    assert_eq!(run(&["dance"]).await.0, 2);
    assert_eq!(run(&["history", "--phase", "Sleeping"]).await.0, 2);
    assert_eq!(run(&["history", "--since", "yesterday"]).await.0, 2);
}

#[tokio::test]
async fn somebody_s_kubeconfig_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, "current-context: production\n").unwrap();
    let path = path.display().to_string();
    let (code, text) = run(&[
        "dev",
        &quickstart(),
        "--listen",
        "127.0.0.1:0",
        "--api",
        "127.0.0.1:0",
        "--kubeconfig",
        &path,
    ])
    .await;
    assert_eq!(code, 2, "{text}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "current-context: production\n"
    );
}
