//! The arguments of `kubezap-controller`.

use std::path::PathBuf;

use clap::Parser;
use kubezap_chassis::args::{KubeArgs, LogArgs};

/// Watches Flows, Triggers and FlowRuns, keeps their conditions, and carries FlowRuns out.
///
/// It opens no connection to a step's target: every call goes to the http executor of its namespace.
#[derive(Debug, Parser)]
#[command(name = "kubezap-controller", version)]
pub(crate) struct Args {
    /// Namespaces to work in: empty is its own, `a,b` are those, `*` is all.
    #[arg(
        long,
        env = "WATCH_NAMESPACES",
        default_value = "",
        value_name = "NAMES"
    )]
    pub(crate) watch_namespaces: String,

    /// The namespace that the controller runs in; that of the kubeconfig's context by default.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    pub(crate) own_namespace: Option<String>,

    /// URL of the http executors, https; `{namespace}` stands for the namespace of a call's run.
    #[arg(
        long,
        default_value = "https://kubezap-http-executor.{namespace}.svc:8091",
        value_name = "URL"
    )]
    pub(crate) executor_url: String,

    /// Certificate chain of this controller, PEM; looked at every 30 seconds for a newer one.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: PathBuf,

    /// Key of that certificate, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: PathBuf,

    /// Certificates of the installation's CA, PEM; several while it rotates.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: PathBuf,

    /// Name of the installation; only `spiffe://<name>/ns/<namespace>/executor` is given a namespace's calls.
    #[arg(long, value_name = "NAME")]
    pub(crate) installation: String,

    /// A target that calls may reach beyond the public internet: `[*.]host[:port|:*]` or `CIDR[:port]`. Repeatable.
    #[arg(long, value_name = "TARGET")]
    pub(crate) egress_allow: Vec<String>,

    /// Calls in flight per namespace; more wait.
    #[arg(long, default_value_t = 64, value_name = "COUNT")]
    pub(crate) calls_per_namespace: usize,

    /// Calls in flight in all; more wait.
    #[arg(long, default_value_t = 1024, value_name = "COUNT")]
    pub(crate) calls_total: usize,

    /// Runs taken up per second after a restart, oldest first.
    #[arg(long, default_value_t = 200, value_name = "COUNT")]
    pub(crate) resume_per_second: u32,

    /// Address for /healthz and /readyz, plain HTTP.
    #[arg(long, default_value = ":8081", value_name = "[IP]:PORT")]
    pub(crate) health_probe_bind_address: String,

    /// Address for /metrics, plain HTTP; `0` turns it off.
    #[arg(long, default_value = ":9090", value_name = "[IP]:PORT")]
    pub(crate) metrics_bind_address: String,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub(crate) kube: KubeArgs,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub(crate) retired: RetiredArgs,
}

/// Flags of kubezap-operator that are accepted and have no effect, so that its manifests still start.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Accepted without effect")]
pub(crate) struct RetiredArgs {
    /// FlowRuns are kept for now.
    #[arg(long, value_name = "DURATION", hide = true)]
    pub(crate) flowrun_ttl_succeeded: Option<String>,
    /// FlowRuns are kept for now.
    #[arg(long, value_name = "DURATION", hide = true)]
    pub(crate) flowrun_ttl_failed: Option<String>,
    /// FlowRuns are kept for now.
    #[arg(long, value_name = "COUNT", hide = true)]
    pub(crate) flowrun_gc_max_succeeded: Option<String>,
    /// FlowRuns are kept for now.
    #[arg(long, value_name = "COUNT", hide = true)]
    pub(crate) flowrun_gc_max_failed: Option<String>,
    /// The budget of an expression is fixed.
    #[arg(long, value_name = "UNITS", hide = true)]
    pub(crate) cel_cost_limit: Option<String>,
    /// Calls are bounded instead, by --calls-per-namespace and --calls-total.
    #[arg(long, value_name = "COUNT", hide = true)]
    pub(crate) max_concurrent_flowruns: Option<String>,
    /// Private networks are refused by the executor.
    #[arg(long, value_name = "CIDRS", hide = true)]
    pub(crate) http_step_blocked_cidrs: Option<String>,
    /// Targets inside the cluster are named one by one, by --egress-allow.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide = true)]
    pub(crate) ssrf_allow_in_cluster: Option<String>,
    /// Executors are not provisioned yet.
    #[arg(long, value_name = "IMAGE", hide = true)]
    pub(crate) executor_image: Option<String>,
    /// The port is part of --executor-url.
    #[arg(long, value_name = "PORT", hide = true)]
    pub(crate) executor_port: Option<String>,
    /// A call's own time limit bounds it.
    #[arg(long, value_name = "DURATION", hide = true)]
    pub(crate) executor_rpc_timeout: Option<String>,
    /// The channel to executors is always mutual TLS.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide = true)]
    pub(crate) executor_mtls: Option<String>,
    /// One replica holds everything for now.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide = true)]
    pub(crate) leader_elect: Option<String>,
}

impl RetiredArgs {
    /// The flags that were given, each with why it has no effect.
    pub(crate) fn given(&self) -> Vec<(&'static str, &'static str)> {
        let Self {
            flowrun_ttl_succeeded,
            flowrun_ttl_failed,
            flowrun_gc_max_succeeded,
            flowrun_gc_max_failed,
            cel_cost_limit,
            max_concurrent_flowruns,
            http_step_blocked_cidrs,
            ssrf_allow_in_cluster,
            executor_image,
            executor_port,
            executor_rpc_timeout,
            executor_mtls,
            leader_elect,
        } = self;
        const KEPT: &str = "finished FlowRuns are kept for now";
        [
            ("--flowrun-ttl-succeeded", flowrun_ttl_succeeded, KEPT),
            ("--flowrun-ttl-failed", flowrun_ttl_failed, KEPT),
            ("--flowrun-gc-max-succeeded", flowrun_gc_max_succeeded, KEPT),
            ("--flowrun-gc-max-failed", flowrun_gc_max_failed, KEPT),
            (
                "--cel-cost-limit",
                cel_cost_limit,
                "the budget of an expression is fixed",
            ),
            (
                "--max-concurrent-flowruns",
                max_concurrent_flowruns,
                "calls are bounded instead: --calls-per-namespace, --calls-total",
            ),
            (
                "--http-step-blocked-cidrs",
                http_step_blocked_cidrs,
                "the executor blocks: give it --blocked-cidrs",
            ),
            (
                "--ssrf-allow-in-cluster",
                ssrf_allow_in_cluster,
                "targets inside the cluster are named one by one: --egress-allow",
            ),
            (
                "--executor-image",
                executor_image,
                "executors are not provisioned yet",
            ),
            (
                "--executor-port",
                executor_port,
                "the port is part of --executor-url",
            ),
            (
                "--executor-rpc-timeout",
                executor_rpc_timeout,
                "a call's own time limit bounds it",
            ),
            (
                "--executor-mtls",
                executor_mtls,
                "the channel to executors is always mutual TLS",
            ),
            (
                "--leader-elect",
                leader_elect,
                "one replica holds everything for now",
            ),
        ]
        .into_iter()
        .filter(|(_, value, _)| value.is_some())
        .map(|(name, _, why)| (name, why))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: [&str; 9] = [
        "kubezap-controller",
        "--tls-cert",
        "c",
        "--tls-key",
        "k",
        "--tls-ca",
        "a",
        "--installation",
        "i",
    ];

    #[test]
    fn flags_of_kubezap_operator_are_accepted_and_named() {
        let flags = [
            "--flowrun-ttl-succeeded=24h",
            "--flowrun-ttl-failed=72h",
            "--flowrun-gc-max-succeeded=10",
            "--flowrun-gc-max-failed=5",
            "--cel-cost-limit=1000000",
            "--max-concurrent-flowruns=10",
            "--http-step-blocked-cidrs=10.0.0.0/8",
            "--ssrf-allow-in-cluster",
            "--executor-image=example.com/executor:1",
            "--executor-port=8091",
            "--executor-rpc-timeout=5m",
            "--leader-elect",
        ];
        let args = Args::parse_from(NEEDED.iter().chain(&flags).chain(&[
            "--health-probe-bind-address=:8081",
            "--metrics-bind-address=:8443",
        ]));
        let given = args.retired.given();
        let names: Vec<_> = given.iter().map(|(name, _)| *name).collect();
        let expected: Vec<_> = flags
            .iter()
            .map(|flag| flag.split('=').next().unwrap())
            .collect();
        assert_eq!(names, expected);
        assert_eq!(args.metrics_bind_address, ":8443");
        assert!(Args::parse_from(NEEDED).retired.given().is_empty());
    }
}
