//! The arguments of `kubezap-http-executor`.

use std::path::PathBuf;

use clap::Parser;
use ipnet::IpNet;
use kubezap_chassis::args::LogArgs;

/// Makes the HTTP requests of one namespace's Flows, as the installation's controller hands them over.
///
/// It reaches no Kubernetes API and keeps nothing. Only globally routable addresses are dialled, and what the operator's
/// allow-list, which comes with each request, names.
#[derive(Debug, Parser)]
#[command(name = "kubezap-http-executor", version)]
pub(crate) struct Args {
    /// Address for `POST /execute` over mutual TLS.
    #[arg(long, default_value = "0.0.0.0:8091", value_name = "IP:PORT")]
    pub(crate) listen: String,

    /// Address for /healthz, /readyz and /metrics, plain HTTP.
    #[arg(long, default_value = "0.0.0.0:8092", value_name = "IP:PORT")]
    pub(crate) health_listen: String,

    /// Certificate chain of this executor, PEM; looked at every 30 seconds for a newer one.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: PathBuf,

    /// Key of that certificate, PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: PathBuf,

    /// Certificates of the installation's CA, PEM; several while it rotates.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: PathBuf,

    /// Name of the installation; only `spiffe://<name>/controller` is served.
    #[arg(long, value_name = "NAME")]
    pub(crate) installation: String,

    /// The largest response body, in bytes, that a request may ask for; a larger response fails its step.
    #[arg(long, default_value_t = 1024 * 1024, value_name = "BYTES")]
    pub(crate) body_limit_bytes: u64,

    /// Networks that are refused on top of the built-in ones, whatever an allow-list says; comma-separated.
    #[arg(long, value_delimiter = ',', value_name = "CIDR")]
    pub(crate) blocked_cidrs: Vec<IpNet>,

    /// The only ports that may be reached, unless an allow-list entry names another; comma-separated, any by default.
    #[arg(long, value_delimiter = ',', value_name = "PORT")]
    pub(crate) ports: Option<Vec<u16>>,

    /// DNS domain of the cluster, whose names are refused.
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub(crate) cluster_domain: String,

    /// Calls that run at once; more wait within their own time limit.
    #[arg(long, default_value_t = 512, value_name = "COUNT")]
    pub(crate) max_calls: usize,

    /// Calls to one host and port that run at once, and idle connections kept to it.
    #[arg(long, default_value_t = 64, value_name = "COUNT")]
    pub(crate) max_calls_per_host: usize,

    #[command(flatten)]
    pub(crate) log: LogArgs,
}
