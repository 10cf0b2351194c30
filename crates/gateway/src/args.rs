//! Arguments of `kubezap-webhook-gateway`.

use std::process::ExitCode;

use clap::Parser;
use ipnet::IpNet;
use kubezap_chassis::admin::{self, BindError};
use kubezap_chassis::args::{ConnectError, KubeArgs, LogArgs, LogLevel};
use kubezap_chassis::namespaces::Namespaces;
use tokio::net::TcpListener;

use crate::webhook::{AccessLog, Limits, MAX_BODY_BYTES, WebhookConfig};

/// Serves the webhook Triggers of its namespace.
#[derive(Parser, Debug)]
#[command(name = "kubezap-webhook-gateway", version)]
pub struct Args {
    /// Log flags.
    #[command(flatten)]
    pub log: LogArgs,

    #[command(flatten)]
    kube: KubeArgs,

    /// Address and port to take webhooks on.
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:8080")]
    listen: String,

    /// Port of /metrics, /healthz and /readyz.
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    metrics_port: u16,

    /// Namespaces to serve: empty is the pod's own, `a,b` are those, `*` is all.
    #[arg(
        long,
        value_name = "NAMES",
        env = "WATCH_NAMESPACES",
        default_value = ""
    )]
    watch_namespaces: String,

    /// The pod's own namespace.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", hide = true)]
    pod_namespace: Option<String>,

    /// Networks of proxies whose X-Forwarded-For is believed, separated by commas.
    #[arg(
        long,
        value_name = "CIDRS",
        env = "TRUSTED_PROXIES",
        default_value = "",
        value_parser = networks
    )]
    trusted_proxy_cidrs: Networks,

    /// The most bytes of a body as it is stored, base64 counted; 524288 at most.
    #[arg(long, value_name = "BYTES", default_value_t = MAX_BODY_BYTES, value_parser = body_bytes)]
    max_stored_body_bytes: usize,

    /// Connections at once; more wait to be accepted.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().max_connections, value_parser = at_least_one)]
    max_connections: usize,

    /// Requests a second from one source address, twice that at once; 0 is no limit.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().source_rate)]
    max_source_rate: u32,

    /// Name of the ConfigMap with a certificate revocation list. Without effect until client certificates are supported.
    #[arg(long, value_name = "NAME")]
    crl_configmap_name: Option<String>,

    /// Whether each request is logged.
    #[arg(
        long,
        value_name = "BOOL",
        env = "ACCESS_LOG_ENABLED",
        default_value_t = true,
        action = clap::ArgAction::Set
    )]
    access_log_enabled: bool,

    /// Level of the access log's lines.
    #[arg(long, value_enum, env = "ACCESS_LOG_LEVEL", default_value_t = LogLevel::Info, ignore_case = true)]
    access_log_level: LogLevel,

    /// Headers that the access log shows as `[REDACTED]`, separated by commas.
    #[arg(
        long,
        value_name = "NAMES",
        env = "ACCESS_LOG_REDACT_HEADERS",
        value_delimiter = ','
    )]
    access_log_redact_headers: Vec<String>,
}

#[derive(Clone, Debug)]
struct Networks(Vec<IpNet>);

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `WATCH_NAMESPACES`.
    #[error("--watch-namespaces: {0}")]
    Namespaces(String),
    /// No Kubernetes API.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A port that cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
}

impl Args {
    /// Connects, binds the ports, and gives what the gateway needs and the listener of its admin server.
    ///
    /// # Errors
    /// One line that says what is wrong and what to do.
    pub async fn start(self) -> Result<(WebhookConfig, TcpListener), StartError> {
        let Self {
            log: _,
            kube,
            listen,
            metrics_port,
            watch_namespaces,
            pod_namespace,
            trusted_proxy_cidrs: Networks(trusted_proxies),
            max_stored_body_bytes,
            max_connections,
            max_source_rate,
            crl_configmap_name,
            access_log_enabled,
            access_log_level,
            access_log_redact_headers,
        } = self;
        let listener = admin::bind(&listen).await?;
        let admin_listener = admin::bind(&format!("0.0.0.0:{metrics_port}")).await?;
        let connection = kube.connect().await?;
        let own = kube
            .namespace
            .or(pod_namespace)
            .unwrap_or(connection.namespace);
        let namespaces =
            Namespaces::parse(&watch_namespaces, &own).map_err(StartError::Namespaces)?;
        if crl_configmap_name.is_some() {
            tracing::warn!(
                "--crl-configmap-name has no effect: this version does not check client certificates"
            );
        }
        let address = listener
            .local_addr()
            .map_or(listen, |address| address.to_string());
        tracing::info!(listen = address, ?namespaces, "serving webhooks");
        let mut config = WebhookConfig::new(connection.client, namespaces, listener);
        config.trusted_proxies = trusted_proxies;
        config.limits.max_body_bytes = max_stored_body_bytes;
        config.limits.max_connections = max_connections;
        config.limits.source_rate = max_source_rate;
        config.access_log = AccessLog {
            enabled: access_log_enabled,
            level: access_log_level,
            redact_headers: access_log_redact_headers,
        };
        Ok((config, admin_listener))
    }
}

/// Says why a process ends, on standard error, and gives its exit code.
#[allow(clippy::print_stderr)] // The log may not stand yet, and a person reads this.
pub fn fail(code: u8, reason: &str) -> ExitCode {
    eprintln!("error: {reason}");
    ExitCode::from(code)
}

fn networks(text: &str) -> Result<Networks, String> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            entry
                .parse::<IpNet>()
                .or_else(|_| entry.parse::<std::net::IpAddr>().map(IpNet::from))
                .map_err(|_| format!("{entry:?} is not a network; write it as 10.0.0.0/8"))
        })
        .collect::<Result<_, _>>()
        .map(Networks)
}

fn body_bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if (1..=MAX_BODY_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!("write a number from 1 to {MAX_BODY_BYTES}")),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("write a number of 1 or more".to_owned()),
        Ok(count) => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args, String> {
        let all = ["kubezap-webhook-gateway"].iter().chain(arguments);
        Args::try_parse_from(all).map_err(|error| error.to_string())
    }

    #[test]
    fn gateway_flags_of_kubezap_operator_are_accepted() {
        let args = parse(&[
            "--trusted-proxy-cidrs=10.0.0.0/8, 192.0.2.1",
            "--max-stored-body-bytes=65536",
            "--crl-configmap-name=crl",
            "--metrics-port=9091",
        ])
        .unwrap();
        let networks: Vec<_> = args
            .trusted_proxy_cidrs
            .0
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(networks, ["10.0.0.0/8", "192.0.2.1/32"]);
        assert_eq!(args.max_stored_body_bytes, 65536);
        assert_eq!(args.metrics_port, 9091);
    }

    #[test]
    fn a_bad_value_is_named_with_what_to_write() {
        for (arguments, expected) in [
            (
                ["--trusted-proxy-cidrs=10.0.0.0/8,nonsense"],
                "\"nonsense\" is not a network; write it as 10.0.0.0/8",
            ),
            (
                ["--max-stored-body-bytes=524289"],
                "write a number from 1 to 524288",
            ),
            (["--max-connections=0"], "write a number of 1 or more"),
        ] {
            let said = parse(&arguments).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
