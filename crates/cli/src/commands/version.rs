//! `kubezap version`: this program's version, and the API server's if one can be reached.

use kubezap_chassis::args::KubeArgs;
use serde_json::json;

use crate::failure::Failure;
use crate::output::{self, Format};

/// Prints versions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Does not ask the API server.
    #[arg(long)]
    client: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Prints the versions. An API server that cannot be reached is said, and is no failure.
///
/// # Errors
/// None but a value that cannot be printed.
pub(crate) async fn run(args: Args, kube: &KubeArgs) -> Result<(), Failure> {
    let Args {
        client: client_only,
        output,
    } = args;
    let server = if client_only {
        None
    } else {
        match kube.connect().await {
            Ok(connection) => connection
                .client
                .apiserver_version()
                .await
                .ok()
                .map(|info| info.git_version),
            Err(_) => None,
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    match output {
        Format::Table | Format::Name => {
            output::line(format!("kubezap     {version}"));
            if !client_only {
                output::line(format!(
                    "Kubernetes  {}",
                    server.as_deref().unwrap_or("not reached")
                ));
            }
        }
        Format::Json | Format::Yaml => {
            output::structured(output, &json!({"kubezap": version, "kubernetes": server}))?
        }
    }
    Ok(())
}
