//! The executor as a process: `/execute` on one port, health and metrics on another.

use kubezap_chassis::admin::{self, Readiness};
use kubezap_chassis::metrics::Metrics;
use kubezap_chassis::{log, shutdown};
use kubezap_executor::{Guard, Performer, PerformerConfig, ServerTls, serve};
use kubezap_step_protocol::Limits;
use tokio_util::sync::CancellationToken;

use crate::args::Args;

/// Runs until SIGTERM or SIGINT, then until the last call has finished.
///
/// # Errors
/// Something that the arguments name cannot be used.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Args {
        listen,
        health_listen,
        tls_cert,
        tls_key,
        tls_ca,
        installation,
        body_limit_bytes,
        blocked_cidrs,
        ports,
        cluster_domain,
        max_calls,
        max_calls_per_host,
        log,
    } = args;
    log::init(&log)?;
    let shutdown = shutdown::on_signal()?;
    let tls = ServerTls::from_files(tls_cert, tls_key, tls_ca, &installation)?;
    let listener = admin::bind(&listen).await?;
    let health = admin::bind(&health_listen).await?;
    let health_address = health.local_addr()?;
    let metrics = Metrics::new();
    let performer = Performer::new(PerformerConfig {
        guard: Guard {
            blocked: blocked_cidrs,
            cluster_domain,
            ports,
        },
        limits: Limits {
            response_bytes: body_limit_bytes,
            ..Limits::default()
        },
        max_calls,
        max_calls_per_host,
        metrics: metrics.clone(),
        ..PerformerConfig::default()
    });

    // Health outlives the last call: a pod that answers no probe while it drains would be killed early.
    let readiness = Readiness::new();
    let ended = CancellationToken::new();
    let health = tokio::spawn(admin::serve(
        health,
        readiness.clone(),
        metrics,
        ended.clone(),
    ));
    let unready = tokio::spawn({
        let shutdown = shutdown.clone();
        async move {
            let gate = readiness.gate("execute", "starting");
            gate.ready();
            shutdown.cancelled().await;
            gate.not_ready("shutting down");
            std::future::pending::<()>().await;
        }
    });
    tracing::info!(
        listen = %listener.local_addr()?,
        health = %health_address,
        installation,
        "serving the controller"
    );
    let outcome = serve(listener, performer, tls, shutdown).await;
    unready.abort();
    ended.cancel();
    health.await?;
    Ok(outcome?)
}
