//! Keeps the kinds' conditions and carries FlowRuns out.
//!
//! One process holds all slots for now; [`ControllerConfig::slots`] is where leases put fewer. Nothing here opens a
//! connection to a step's target: calls go through [`Executors`].

mod counters;
pub mod executors;
mod flow;
mod flow_run;
mod flows;
mod integration;
mod metrics;
mod reconcile;
mod revision;
mod status;
mod trigger;
mod watch;
mod webhook_gateway_config;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::runtime::watcher;
use kubezap_chassis::admin::Readiness;
use kubezap_chassis::metrics::Metrics;
use kubezap_chassis::namespaces::Namespaces;
use kubezap_engine::driver::{SLOTS, Slot};
use rand::RngExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::executors::{DispatchError, Executors};
use self::flow::FlowReconciler;
use self::flow_run::RunnerConfig;
use self::flows::Flows;
use self::integration::IntegrationReconciler;
use self::metrics::ControllerMetrics;
use self::reconcile::Reconcile;
use self::trigger::TriggerReconciler;
use self::watch::Scope;
use self::webhook_gateway_config::WebhookGatewayConfigReconciler;

/// How long an outcome that nothing waits for may stay unwritten.
const COALESCE: Duration = Duration::from_millis(250);

/// What a controller is made from.
#[derive(Clone)]
pub struct ControllerConfig {
    /// The API that it works on.
    pub client: Client,
    /// Where it works.
    pub namespaces: Namespaces,
    /// Who makes its calls.
    pub executors: Arc<dyn Executors>,
    /// Targets that calls may reach beyond the public internet: `[*.]host[:port|:*]` or `CIDR[:port]`.
    pub egress_allow: Vec<String>,
    /// Where it counts.
    pub metrics: Metrics,
    /// Where it says which watches work.
    pub readiness: Readiness,
    /// The shares of the runs that it carries out.
    pub slots: BTreeSet<Slot>,
    /// Calls in flight per namespace.
    pub calls_per_namespace: usize,
    /// Calls in flight in all.
    pub calls_total: usize,
    /// Runs taken up per second after a restart.
    pub resume_per_second: u32,
}

impl ControllerConfig {
    /// All slots, no egress allow-list, 64 calls in flight per namespace, 1024 in all, 200 runs resumed per second.
    pub fn new(client: Client, namespaces: Namespaces, executors: Arc<dyn Executors>) -> Self {
        Self {
            client,
            namespaces,
            executors,
            egress_allow: Vec::new(),
            metrics: Metrics::new(),
            readiness: Readiness::new(),
            slots: (0..SLOTS).collect(),
            calls_per_namespace: 64,
            calls_total: 1024,
            resume_per_second: 200,
        }
    }
}

/// Why a controller ended without having been asked to.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// A defect.
    #[error("the controller's {part} ended: {reason}")]
    Ended {
        /// Which part.
        part: &'static str,
        /// What is known of it.
        reason: String,
    },
}

/// Runs until `shutdown`. Logs `ready` once every watch has shown what was there.
///
/// A run under way is left as its status says; the next controller resumes it.
///
/// # Errors
/// A part of the controller ended by itself. The API server being away is no reason: every watch begins again, and says
/// so in the readiness.
pub async fn run(
    config: ControllerConfig,
    shutdown: CancellationToken,
) -> Result<(), ControllerError> {
    let ControllerConfig {
        client,
        namespaces,
        executors,
        egress_allow,
        metrics,
        readiness,
        slots,
        calls_per_namespace,
        calls_total,
        resume_per_second,
    } = config;
    let scope = Scope {
        client: client.clone(),
        namespaces,
        readiness,
    };
    let flows = Flows::new(client.clone());
    let (finished, ended) = mpsc::unbounded_channel();
    let mut parts = Parts::new(shutdown.clone());

    parts.reconcile(
        "Flow reconciler",
        &scope,
        FlowReconciler {
            client: client.clone(),
            flows: flows.clone(),
        },
    );
    parts.reconcile(
        "Trigger reconciler",
        &scope,
        TriggerReconciler::new(client.clone(), flows.clone()),
    );
    parts.reconcile(
        "Integration reconciler",
        &scope,
        IntegrationReconciler {
            client: client.clone(),
        },
    );
    parts.reconcile(
        "WebhookGatewayConfig reconciler",
        &scope,
        WebhookGatewayConfigReconciler {
            client: client.clone(),
        },
    );
    let runner = RunnerConfig {
        scope,
        flows,
        executors,
        egress_allow,
        slots,
        driver: kubezap_engine::driver::Config {
            incarnation: incarnation(),
            calls_per_namespace,
            calls_total,
            resume_per_second,
            coalesce: COALESCE,
        },
        metrics: ControllerMetrics::new(&metrics),
        finished,
        synced: parts.sync(),
    };
    parts.spawn("runner", flow_run::run(runner, shutdown.clone()));
    parts.spawn("counters", counters::run(client, ended));
    parts.until_shutdown().await
}

/// Twelve characters that no other start has.
fn incarnation() -> String {
    let mut random = rand::rng();
    (0..12)
        .map(|_| char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[random.random_range(0..36)]))
        .collect()
}

/// The tasks of a controller.
struct Parts {
    tasks: JoinSet<&'static str>,
    syncs: Vec<tokio::sync::watch::Receiver<bool>>,
    shutdown: CancellationToken,
}

impl Parts {
    fn new(shutdown: CancellationToken) -> Self {
        Self {
            tasks: JoinSet::new(),
            syncs: Vec::new(),
            shutdown,
        }
    }

    fn sync(&mut self) -> tokio::sync::watch::Sender<bool> {
        let (sender, receiver) = tokio::sync::watch::channel(false);
        self.syncs.push(receiver);
        sender
    }

    fn spawn(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(async move {
            part.await;
            name
        });
    }

    fn reconcile<R: Reconcile>(&mut self, name: &'static str, scope: &Scope, reconciler: R) {
        let changes = scope.changes(&watcher::Config::default(), None);
        let (sources, synced) = (scope.sources(), self.sync());
        self.spawn(
            name,
            reconcile::run(Arc::new(reconciler), changes, sources, synced),
        );
    }

    async fn until_shutdown(mut self) -> Result<(), ControllerError> {
        let syncs = std::mem::take(&mut self.syncs);
        self.tasks.spawn(async move {
            for mut sync in syncs {
                // An error means that the part ended, which is told elsewhere.
                if sync.wait_for(|synced| *synced).await.is_err() {
                    return "readiness";
                }
            }
            tracing::info!("ready");
            std::future::pending().await
        });
        let ended = tokio::select! {
            () = self.shutdown.cancelled() => return Ok(()),
            Some(ended) = self.tasks.join_next() => ended,
        };
        if self.shutdown.is_cancelled() {
            return Ok(());
        }
        let (part, reason) = match ended {
            Ok(part) => (part, "nothing is left for it to do".to_owned()),
            Err(error) => ("task", error.to_string()),
        };
        Err(ControllerError::Ended { part, reason })
    }
}
