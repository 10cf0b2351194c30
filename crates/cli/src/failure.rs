//! How a command ends badly: one line that says what and what to do, and an exit code.

use std::process::ExitCode;

use kubezap_chassis::args::ConnectError;

/// A command's bad end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The thing asked about failed: exit 1.
    #[error("{0}")]
    Failed(String),
    /// The command was used wrongly, or names a file that cannot be used: exit 2.
    #[error("{0}")]
    Usage(String),
    /// The API server, or an address to listen on, cannot be reached: exit 3.
    #[error("{0}")]
    Unreachable(String),
}

impl Failure {
    /// The exit code: 1 the thing asked about failed, 2 bad usage, 3 cannot reach.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Failed(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Unreachable(_) => 3,
        })
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 401 || status.code == 403 => {
                Failure::Failed(format!("the API server refused: {}", status.message))
            }
            kube::Error::Api(status) => Failure::Failed(status.message.clone()),
            error => Failure::Unreachable(format!(
                "cannot reach the API server: {}; check --kubeconfig and --context, or whether `kubezap dev` is still running",
                root(&error)
            )),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NoConfig
            | ConnectError::Unreadable { .. }
            | ConnectError::Unusable { .. } => Failure::Usage(error.to_string()),
            ConnectError::Unreachable { .. } | ConnectError::Unauthorized { .. } => {
                Failure::Unreachable(error.to_string())
            }
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Failed(format!("{error:#}"))
    }
}

/// The innermost cause, which is the one a person can act on.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
