//! Arguments that several binaries share, to be flattened into a binary's own `Args`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub use crate::kube_client::{ConnectError, Connection};

/// How and how much a process logs.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// How log lines are written: JSON objects for machines, or text for people.
    #[arg(long, value_enum, default_value_t = LogFormat::Json, env = "KUBEZAP_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// The least important level that is logged.
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "KUBEZAP_LOG_LEVEL")]
    pub log_level: LogLevel,
}

/// Values of `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line: ts, level, msg and the event's own fields.
    Json,
    /// Text for people.
    Text,
}

/// Values of `--log-level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Only what is wrong.
    Error,
    /// And what may become wrong.
    Warn,
    /// And what happens.
    Info,
    /// And why.
    Debug,
    /// And everything else.
    Trace,
}

/// Which Kubernetes API a process talks to.
///
/// Without `--kubeconfig`: the files that `KUBECONFIG` names, else `~/.kube/config`, else the service account of the pod
/// that the process runs in.
#[derive(Args, Clone, Debug, Default)]
pub struct KubeArgs {
    /// Path of the kubeconfig file.
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,

    /// Name of the kubeconfig context.
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,

    /// Namespace to work in; the context's own by default.
    #[arg(short, long, value_name = "NAME", global = true)]
    pub namespace: Option<String>,
}
