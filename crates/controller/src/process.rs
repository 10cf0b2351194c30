//! The controller as a process: health on one port, metrics on another.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kubezap_chassis::admin::{self, Readiness};
use kubezap_chassis::metrics::Metrics;
use kubezap_chassis::namespaces::Namespaces;
use kubezap_chassis::tls::Files;
use kubezap_chassis::{log, shutdown};
use kubezap_controller::ControllerConfig;
use kubezap_controller::executors::{RemoteExecutor, keep_reloading};
use tokio_util::sync::CancellationToken;

use crate::args::Args;

/// How often certificates are looked at for newer ones.
const RELOAD: Duration = Duration::from_secs(30);

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// Something that the arguments name cannot be used.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Args {
        watch_namespaces,
        own_namespace,
        executor_url,
        tls_cert,
        tls_key,
        tls_ca,
        installation,
        egress_allow,
        calls_per_namespace,
        calls_total,
        resume_per_second,
        health_probe_bind_address,
        metrics_bind_address,
        kube,
        log,
        retired,
    } = args;
    log::init(&log)?;
    for (flag, why) in retired.given() {
        tracing::warn!(flag, why, "a flag is accepted without effect");
    }
    let shutdown = shutdown::on_signal()?;
    let files = Files {
        certificate: tls_cert,
        key: tls_key,
        authority: tls_ca,
    };
    let executor = Arc::new(RemoteExecutor::new(&executor_url, files, &installation)?);
    let health = admin::bind(&health_probe_bind_address).await?;
    let connection = kube.connect().await?;
    let own = own_namespace.unwrap_or(connection.namespace);
    let namespaces = Namespaces::parse(&watch_namespaces, &own)
        .map_err(anyhow::Error::msg)
        .context("--watch-namespaces")?;

    let (readiness, metrics) = (Readiness::new(), Metrics::new());
    let ended = CancellationToken::new();
    let serve = |listener| {
        let (readiness, metrics) = (readiness.clone(), metrics.clone());
        tokio::spawn(admin::serve(listener, readiness, metrics, ended.clone()))
    };
    let health = serve(health);
    let counted = match metrics_bind_address.as_str() {
        "0" | "" => None,
        address => Some(serve(admin::bind(address).await?)),
    };
    let reloading = tokio::spawn(keep_reloading(Arc::clone(&executor), RELOAD));

    let outcome = kubezap_controller::run(
        ControllerConfig {
            egress_allow,
            metrics: metrics.clone(),
            readiness: readiness.clone(),
            calls_per_namespace,
            calls_total,
            resume_per_second,
            ..ControllerConfig::new(connection.client, namespaces, executor)
        },
        shutdown,
    )
    .await;
    reloading.abort();
    ended.cancel();
    health.await?;
    if let Some(counted) = counted {
        counted.await?;
    }
    Ok(outcome?)
}
