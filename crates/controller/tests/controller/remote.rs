//! Executors as processes of their own: who is given a call, and what is known of one that has no answer.

use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse as _;
use kubezap_chassis::tls::Files;
use kubezap_controller::executors::RemoteExecutor;
use kubezap_controller::{DispatchError, Executors as _};
use kubezap_executor::{Performer, PerformerConfig, ServerTls, serve};
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse, Header, Limits, VERSION};
use kubezap_testing::identity::Identity;
use kubezap_testing::target::Target;
use kubezap_testing::wait::until;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::rig::DEADLINE;

const NAME: &str = "test";

struct Controller {
    executor: Arc<RemoteExecutor>,
    _files: TempDir,
}

/// A controller of `installation` that knows its executors by a URL.
fn controller(installation: &Identity, url: &str) -> Controller {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (certificate, key) = installation.controller();
    let files = Files {
        certificate: write("tls.crt", &certificate),
        key: write("tls.key", &key),
        authority: write("ca.crt", installation.ca_pem()),
    };
    Controller {
        executor: Arc::new(RemoteExecutor::new(url, files, NAME).unwrap()),
        _files: folder,
    }
}

/// Starts the executor of a namespace, and gives its URL.
async fn executor(installation: &Identity, namespace: &str) -> String {
    let (certificate, key) = installation.executor(namespace);
    let tls = ServerTls::from_pem(&certificate, &key, installation.ca_pem(), NAME).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let performer = Performer::new(PerformerConfig::default());
    tokio::spawn(serve(listener, performer, tls, CancellationToken::new()));
    url
}

fn request(target: &Target) -> ExecuteRequest {
    ExecuteRequest {
        version: VERSION,
        execution_id: "run/step/1".into(),
        method: "POST".into(),
        url: format!("{}/x", target.url()),
        headers: vec![Header {
            name: "X-Color".into(),
            value: "red".into(),
            sensitive: false,
        }],
        body: Some(b"hello".to_vec()),
        timeout_millis: 10_000,
        limits: Limits::default(),
        max_redirects: 0,
        allow: vec![target.address().to_string()],
        ca_bundle: None,
        client_certificate: None,
        discard_body: false,
    }
}

#[tokio::test]
async fn a_call_goes_through_the_executor_of_its_namespace() {
    let installation = Identity::new(NAME);
    let url = executor(&installation, "a").await;
    let controller = controller(&installation, &url);
    let target = Target::start().await;
    let answer = controller
        .executor
        .execute("a", request(&target), CancellationToken::new())
        .await
        .unwrap();
    let ExecuteResponse::Response { status, body, .. } = answer else {
        panic!("{answer:?}");
    };
    assert_eq!((status, body.as_slice()), (200, &b"{}"[..]));
    assert_eq!(target.calls()[0].headers["x-color"], "red");

    // Refused before anything is sent again: the same execution.
    let again = controller
        .executor
        .execute("a", request(&target), CancellationToken::new())
        .await;
    assert!(matches!(
        again,
        Ok(ExecuteResponse::Failed {
            code: Code::InvalidRequest,
            ..
        })
    ));
    assert_eq!(target.calls().len(), 1);
}

#[tokio::test]
async fn credentials_are_given_to_nobody_but_the_namespaces_own_executor() {
    let installation = Identity::new(NAME);
    let target = Target::start().await;
    let other_installation = Identity::new(NAME);
    let cases = [
        ("another namespace's", executor(&installation, "b").await),
        (
            "another installation's",
            executor(&other_installation, "a").await,
        ),
    ];
    for (whose, url) in cases {
        let controller = controller(&installation, &url);
        let answer = controller
            .executor
            .execute("a", request(&target), CancellationToken::new())
            .await;
        assert!(
            matches!(answer, Err(DispatchError::NotDelivered(_))),
            "{whose}: {answer:?}"
        );
    }
    assert!(target.calls().is_empty());
}

#[tokio::test]
async fn a_controller_that_is_refused_has_not_delivered() {
    let installation = Identity::new(NAME);
    let url = executor(&installation, "a").await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (certificate, key) = installation.issue("spiffe://test/ns/a/gateway/x");
    let files = Files {
        certificate: write("tls.crt", &certificate),
        key: write("tls.key", &key),
        authority: write("ca.crt", installation.ca_pem()),
    };
    let remote = RemoteExecutor::new(&url, files, NAME).unwrap();
    let target = Target::start().await;
    let answer = remote
        .execute("a", request(&target), CancellationToken::new())
        .await;
    assert!(
        matches!(answer, Err(DispatchError::NotDelivered(_))),
        "{answer:?}"
    );
    assert!(target.calls().is_empty());
}

#[tokio::test]
async fn an_executor_that_is_not_there_was_not_given_the_call() {
    let installation = Identity::new(NAME);
    // Bound and dropped: nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    drop(listener);
    let target = Target::start().await;
    let answer = controller(&installation, &url)
        .executor
        .execute("a", request(&target), CancellationToken::new())
        .await;
    assert!(
        matches!(answer, Err(DispatchError::NotDelivered(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_abort_closes_the_call() {
    let installation = Identity::new(NAME);
    let url = executor(&installation, "a").await;
    let controller = controller(&installation, &url);
    let dropped = CancellationToken::new();
    let seen = dropped.clone();
    let target = Target::answering(move |_| {
        let guard = seen.clone().drop_guard();
        Box::pin(async move {
            let _guard = guard;
            tokio::time::sleep(Duration::from_secs(60)).await;
            "late".into_response()
        })
    })
    .await;
    let cancel = CancellationToken::new();
    let call = tokio::spawn({
        let (remote, request, cancel) = (
            Arc::clone(&controller.executor),
            request(&target),
            cancel.clone(),
        );
        async move { remote.execute("a", request, cancel).await }
    });
    until("the call to arrive", DEADLINE, || async {
        (target.calls().len() == 1).then_some(())
    })
    .await;
    cancel.cancel();
    let answer = call.await.unwrap();
    assert!(matches!(
        answer,
        Ok(ExecuteResponse::Failed {
            code: Code::Canceled,
            ..
        })
    ));
    tokio::time::timeout(DEADLINE, dropped.cancelled())
        .await
        .expect("the target's socket to be closed");
}

#[test]
fn only_an_https_url_is_taken() {
    let installation = Identity::new(NAME);
    let (certificate, _) = installation.controller();
    for url in ["http://executor:8091", "executor:8091", ""] {
        let files = Files {
            certificate: certificate.clone().into(),
            key: "nowhere".into(),
            authority: "nowhere".into(),
        };
        let error = RemoteExecutor::new(url, files, NAME)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("is no https url"), "{error}");
    }
}
