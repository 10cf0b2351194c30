//! From [`KubeArgs`] to a client of the Kubernetes API, with errors that say what to do.

use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::args::KubeArgs;

/// How long an API server may take to answer the first question.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// A client, and what it was made from.
#[derive(Clone)]
pub struct Connection {
    /// Asks the API server. Does not retry by itself: what a failed request means is for its caller to decide, and a write
    /// repeated behind the caller's back would look like somebody else's.
    pub client: Client,
    /// `--namespace`, else the context's, else `default`.
    pub namespace: String,
    /// The API server's address.
    pub server: String,
}

/// Why there is no Kubernetes API to talk to. Each is one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a kubeconfig nor a pod's service account.
    #[error(
        "no kubeconfig was found and this is not a pod: give --kubeconfig FILE, set KUBECONFIG, or create ~/.kube/config"
    )]
    NoConfig,
    /// The kubeconfig file cannot be read.
    #[error(
        "cannot read the kubeconfig {path}: {reason}; give the path of a readable file with --kubeconfig or KUBECONFIG"
    )]
    Unreadable {
        /// Which file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The kubeconfig can be read and not used.
    #[error(
        "the kubeconfig cannot be used: {reason}; correct it, or choose another with --kubeconfig or --context"
    )]
    Unusable {
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers where the kubeconfig points to.
    #[error(
        "cannot reach the Kubernetes API at {server}: {reason}; start it, or choose another with --kubeconfig or --context"
    )]
    Unreachable {
        /// Its address.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// It answers, and does not accept these credentials.
    #[error(
        "the Kubernetes API at {server} does not accept the credentials ({status}); renew them, or choose another user with --kubeconfig or --context"
    )]
    Unauthorized {
        /// Its address.
        server: String,
        /// What it answered.
        status: u16,
    },
}

impl KubeArgs {
    /// Makes a client without asking the API server anything.
    ///
    /// # Errors
    /// When there is no configuration, or one that cannot be used.
    pub async fn client(&self) -> Result<Connection, ConnectError> {
        let mut config = self.config().await?;
        config.default_retry = false;
        let agent = concat!("kubezap/", env!("CARGO_PKG_VERSION"));
        config
            .headers
            .push((USER_AGENT, HeaderValue::from_static(agent)));
        if let Some(namespace) = &self.namespace {
            config.default_namespace = namespace.clone();
        }
        let namespace = config.default_namespace.clone();
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| ConnectError::Unusable {
            reason: one_line(&error),
        })?;
        Ok(Connection {
            client,
            namespace,
            server: server.trim_end_matches('/').to_owned(),
        })
    }

    /// Makes a client and asks the API server for its version, so that a configuration that points nowhere is told at once.
    ///
    /// # Errors
    /// As [`KubeArgs::client`]; when nobody answers within ten seconds; when the credentials are not accepted.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let connection = self.client().await?;
        let server = connection.server.clone();
        let asked = tokio::time::timeout(FIRST_ANSWER, connection.client.apiserver_version()).await;
        match asked {
            Err(_) => Err(ConnectError::Unreachable {
                server,
                reason: format!("no answer within {} s", FIRST_ANSWER.as_secs()),
            }),
            Ok(Ok(_)) => Ok(connection),
            Ok(Err(kube::Error::Api(status))) if status.code == 401 => {
                Err(ConnectError::Unauthorized {
                    server,
                    status: status.code,
                })
            }
            // Any other answer, a 403 on /version among them, is an answer: the server is there.
            Ok(Err(kube::Error::Api(_))) => Ok(connection),
            Ok(Err(error)) => Err(ConnectError::Unreachable {
                server,
                reason: one_line(&error),
            }),
        }
    }

    async fn config(&self) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let explicit = self.kubeconfig.is_some() || self.context.is_some();
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        match read {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(kubeconfig_error),
            Err(error) if !explicit && absent(&error) => {
                Config::incluster().map_err(|_| ConnectError::NoConfig)
            }
            Err(error) => Err(kubeconfig_error(error)),
        }
    }
}

/// No file where one was looked for, and nobody named one.
fn absent(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(source, path) => {
            source.kind() == std::io::ErrorKind::NotFound && path.ends_with(".kube/config")
        }
        _ => false,
    }
}

fn kubeconfig_error(error: KubeconfigError) -> ConnectError {
    match error {
        KubeconfigError::ReadConfig(source, path) => ConnectError::Unreadable {
            path: path.display().to_string(),
            reason: match source.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                _ => one_line(&source),
            },
        },
        other => ConnectError::Unusable {
            reason: one_line(&other),
        },
    }
}

/// The innermost cause says what happened; the wrappers only name their layers.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(path: &std::path::Path) -> KubeArgs {
        KubeArgs {
            kubeconfig: Some(path.to_owned()),
            ..KubeArgs::default()
        }
    }

    async fn error(args: KubeArgs) -> String {
        crate::crypto::install();
        match args.connect().await {
            Ok(_) => panic!("there is nothing to connect to"),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_missing_kubeconfig_is_named_with_what_to_do() {
        let said = error(args("/nowhere/kubeconfig".as_ref())).await;
        assert_eq!(
            said,
            "cannot read the kubeconfig /nowhere/kubeconfig: there is no such file; give the path of a readable file with --kubeconfig or KUBECONFIG"
        );
    }

    #[tokio::test]
    async fn a_kubeconfig_that_points_nowhere_is_one_line_that_says_what_to_do() {
        // Bound and dropped: nobody listens there.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
        );
        std::fs::write(&path, text).unwrap();

        let said = error(args(&path)).await;
        assert!(
            said.starts_with(&format!(
                "cannot reach the Kubernetes API at http://{address}: "
            )),
            "{said}"
        );
        assert!(said.contains("onnection refused"), "{said}");
        assert!(
            said.ends_with("; start it, or choose another with --kubeconfig or --context"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);

        let mut other = args(&path);
        other.context = Some("b".into());
        let said = error(other).await;
        assert!(
            said.starts_with("the kubeconfig cannot be used: "),
            "{said}"
        );
    }

    #[tokio::test]
    async fn text_that_is_no_kubeconfig_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, "clusters: 7\nmore: [").unwrap();
        let said = error(args(&path)).await;
        assert!(
            said.starts_with("the kubeconfig cannot be used: "),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
}
