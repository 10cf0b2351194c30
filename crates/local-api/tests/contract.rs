//! The contract of a Kubernetes API, held by the local one: in the process, and over its socket.
//!
//! With a kubeconfig in `KUBEZAP_CONTRACT_KUBECONFIG` the same cases run against the server that it names, where KubeZap's
//! definitions are installed.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are not test functions

use std::net::SocketAddr;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kubezap_local_api::{LocalApi, Options};
use kubezap_testing::contract;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

async fn client_of(kubeconfig: Kubeconfig) -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

async fn doors(shutdown: &CancellationToken) -> Vec<(&'static str, Client)> {
    if let Some(path) = std::env::var_os("KUBEZAP_CONTRACT_KUBECONFIG") {
        let client = client_of(Kubeconfig::read_from(path).unwrap()).await;
        return vec![("the server given", client)];
    }
    let api = LocalApi::new(Options::new(kubezap_api::crds()));
    api.compact();
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let kubeconfig = api.kubeconfig(listener.local_addr().unwrap()).unwrap();
    tokio::spawn(api.clone().serve(listener, shutdown.clone()));
    vec![
        ("in the process", api.client("default")),
        (
            "over the socket",
            client_of(Kubeconfig::from_yaml(&kubeconfig).unwrap()).await,
        ),
    ]
}

/// Runs every case of an area, and says which failed.
fn hold(area: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cases: Vec<_> = contract::all()
            .into_iter()
            .filter(|case| case.area == area)
            .collect();
        assert!(cases.len() >= 5, "{area} has {} cases", cases.len());
        let shutdown = CancellationToken::new();
        let mut broken = Vec::new();
        for (door, client) in doors(&shutdown).await {
            for case in &cases {
                let outcome = case.run(client.clone()).await;
                let word = if outcome.is_ok() { "holds" } else { "BROKEN" };
                println!("{word} {door}: {area}: {}", case.name);
                if let Err(why) = outcome {
                    broken.push(format!("{} {door}: {why}", case.name));
                }
            }
        }
        shutdown.cancel();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    });
}

#[test]
fn discovery() {
    hold("discovery");
}

#[test]
fn get_and_list() {
    hold("get and list");
}

#[test]
fn watch() {
    hold("watch");
}

#[test]
fn create() {
    hold("create");
}

#[test]
fn update() {
    hold("update");
}

#[test]
fn patch() {
    hold("patch");
}

#[test]
fn delete_and_garbage_collection() {
    hold("delete and garbage collection");
}

#[test]
fn status() {
    hold("status");
}

#[test]
fn defaults_and_pruning() {
    hold("defaults and pruning");
}

#[test]
fn validation_rules() {
    hold("validation rules");
}

#[test]
fn tables() {
    hold("tables");
}

#[test]
fn every_area_is_run() {
    let mut areas: Vec<&str> = contract::all().iter().map(|case| case.area).collect();
    areas.dedup();
    assert_eq!(areas.len(), 11, "{areas:?}");
}
