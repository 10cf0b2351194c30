//! The webhook gateway: takes HTTP requests for the Triggers of its namespaces and answers 202 once the API server has
//! stored the FlowRun.
//!
//! [`serve`] is the whole of it. A request goes through `handle`, which reads as the order of its checks: `route`,
//! `limiter`, `authenticate`, `body`, `admit`. `watch` keeps the routes current, `report` writes what became of events to
//! the Triggers' status, `listen` holds the connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use kube::Client;
use kubezap_chassis::admin::Readiness;
use kubezap_chassis::metrics::Metrics;
use kubezap_chassis::namespaces::Namespaces;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

mod access_log;
mod admit;
mod answer;
mod authenticate;
mod body;
mod handle;
mod limiter;
mod listen;
mod metrics;
mod report;
mod route;
mod secrets;
mod source;
mod trace;
mod watch;

pub use access_log::AccessLog;
pub use admit::time_ordered_id;
pub use route::{Changes, Routes, ServedRoute};

/// What a webhook gateway needs.
pub struct WebhookConfig {
    /// Asks the API server; without retries of its own.
    pub client: Client,
    /// Whose Triggers are served. In a cluster one namespace; of several, a path belongs to the oldest Trigger of all.
    pub namespaces: Namespaces,
    /// Where requests come in.
    pub listener: TcpListener,
    /// Shows what is served; the caller keeps a clone.
    pub routes: Routes,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Limits on requests and connections.
    pub limits: Limits,
    /// How requests are logged.
    pub access_log: AccessLog,
    /// Where requests are counted.
    pub metrics: Metrics,
    /// Not ready until the first list of Triggers is there.
    pub readiness: Readiness,
}

impl WebhookConfig {
    /// Takes what has no default.
    pub fn new(client: Client, namespaces: Namespaces, listener: TcpListener) -> Self {
        Self {
            client,
            namespaces,
            listener,
            routes: Routes::new(),
            trusted_proxies: Vec::new(),
            limits: Limits::default(),
            access_log: AccessLog::default(),
            metrics: Metrics::new(),
            readiness: Readiness::new(),
        }
    }
}

/// Limits on requests and connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once; more wait to be accepted.
    pub max_connections: usize,
    /// Requests at once on one HTTP/2 connection.
    pub max_streams: u32,
    /// Requests a second from one source address, twice that at once; 0 is no limit.
    pub source_rate: u32,
    /// Bytes of a body as it is stored, base64 counted.
    pub max_body_bytes: usize,
    /// Bytes of all header names and values.
    pub max_header_bytes: usize,
    /// Bytes of all bodies in flight together; beyond them requests are answered 503.
    pub body_memory: usize,
    /// Time for the head of a request.
    pub header_deadline: Duration,
    /// Time from the head of a request to the end of its body.
    pub body_deadline: Duration,
    /// Time for the API server to store the FlowRun.
    pub create_deadline: Duration,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// How long requests in flight may take to finish after the shutdown.
    pub drain: Duration,
}

/// The most that `max_body_bytes` may be: what a FlowRun can hold.
pub const MAX_BODY_BYTES: usize = kubezap_engine::trigger::MAX_BODY_BYTES;

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_streams: 100,
            source_rate: 1000,
            max_body_bytes: MAX_BODY_BYTES,
            max_header_bytes: 32 * 1024,
            body_memory: 128 << 20,
            header_deadline: Duration::from_secs(10),
            body_deadline: Duration::from_secs(30),
            create_deadline: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            drain: Duration::from_secs(25),
        }
    }
}

/// Serves webhooks until `shutdown`: then accepts no more, finishes what is in flight, writes what the Triggers' status
/// still lacks, and returns.
///
/// Paths are 404 until the first list of Triggers is there; `readiness` says when.
pub async fn serve(config: WebhookConfig, shutdown: CancellationToken) {
    let WebhookConfig {
        client,
        namespaces,
        listener,
        routes,
        trusted_proxies,
        limits,
        access_log,
        metrics,
        readiness,
    } = config;
    let gateway = Arc::new(handle::Gateway {
        client: client.clone(),
        routes: routes.clone(),
        proxies: source::Proxies::new(trusted_proxies),
        limiter: limiter::Limiter::new(limits.source_rate, Instant::now()),
        secrets: secrets::Secrets::new(client.clone(), &metrics),
        memory: body::Memory::new(limits.body_memory),
        reporter: report::Reporter::new(client.clone()),
        counts: metrics::Counts::new(&metrics),
        access_log,
        limits,
    });
    // Ends after the last request, so that its outcome is reported too.
    let drained = CancellationToken::new();
    let requests = async {
        listen::serve(listener, gateway.clone(), limits, shutdown.clone()).await;
        drained.cancel();
    };
    let triggers = watch::follow(client, namespaces, routes, readiness, drained.clone());
    let reports = gateway.reporter.run(drained.clone());
    let secrets = gateway.secrets.forget(drained.clone());
    tokio::join!(requests, triggers, reports, secrets);
}
