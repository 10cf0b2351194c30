//! `kubezap dev`: the whole product in one process, on loopback, with nothing to install.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use kubezap_chassis::args::KubeArgs;
use kubezap_chassis::namespaces::Namespaces;
use kubezap_controller::ControllerConfig;
use kubezap_executor::egress::AllowList;
use kubezap_executor::{Performer, PerformerConfig};
use kubezap_gateway::webhook::WebhookConfig;
use kubezap_local_api::{LocalApi, Options};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::dev::apply::Applier;
use crate::dev::executor::InProcess;
use crate::dev::mocking::Mocking;
use crate::dev::report::{Report, Sources};
use crate::dev::{files, kubeconfig};
use crate::failure::Failure;
use crate::mocks::Mocks;
use crate::output::Palette;

/// Runs everything in one process, without a cluster. Writes a kubeconfig for kubectl and the other commands to
/// `--kubeconfig`, by default `.kubezap/kubeconfig`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Manifest files, and folders searched for them; a folder's `mocks.yaml` answers requests instead of the network.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Address of the webhook gateway; loopback only.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Address of the local Kubernetes API; loopback only.
    #[arg(long, default_value = "127.0.0.1:8001", value_name = "ADDRESS")]
    api: SocketAddr,
    /// A target that steps may reach although it is loopback, private or local by name: `[*.]HOST[:PORT|:*]` or
    /// `CIDR[:PORT]`. May be given several times.
    #[arg(long, value_name = "HOST|CIDR")]
    allow: Vec<String>,
    /// Shows each mocked request and its answer.
    #[arg(long)]
    show_requests: bool,
    /// `json` prints one JSON object a line, for scripts.
    #[arg(short, long, value_enum)]
    output: Option<DevOutput>,
}

/// How `dev` prints.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DevOutput {
    /// One JSON object a line.
    Json,
}

/// Runs until Ctrl-C.
///
/// # Errors
/// An address that is taken or not loopback, a path that cannot be read, mocks that do not parse.
pub(crate) async fn run(args: Args, kube: &KubeArgs, palette: Palette) -> Result<(), Failure> {
    let Args {
        paths,
        listen,
        api,
        allow,
        show_requests,
        output,
    } = args;
    let kubeconfig = kube
        .kubeconfig
        .clone()
        .unwrap_or_else(|| PathBuf::from(".kubezap/kubeconfig"));
    let interrupted = kubezap_chassis::shutdown::on_signal()
        .map_err(|error| Failure::Failed(error.to_string()))?;
    let shutdown = CancellationToken::new();
    let mut report = Report::new(matches!(output, Some(DevOutput::Json)), palette);

    let gateway_listener = bind(listen, "--listen").await?;
    let api_listener = bind(api, "--api").await?;
    let addresses = (local(&gateway_listener)?, local(&api_listener)?);
    let (shown, requests) = mpsc::unbounded_channel();
    let mocking = Mocking::load(paths.clone(), show_requests.then_some(shown))
        .map_err(|complaint| Failure::Usage(complaint.to_string()))?;
    let performer = performer(&allow, mocking.mocks())?;

    let local_api = LocalApi::new(Options::new(kubezap_api::crds()));
    let client = local_api.client("default");
    let text = local_api
        .kubeconfig(addresses.1)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    kubeconfig::write(&kubeconfig, &text)?;
    let mut applier = Applier::new(client.clone(), paths.clone());
    let first = applier
        .pass()
        .await
        .map_err(|complaint| Failure::Usage(complaint.to_string()))?;

    let config = WebhookConfig::new(client.clone(), Namespaces::All, gateway_listener);
    let routes = config.routes.clone();
    let gateway = kubezap_gateway::webhook::serve(config, shutdown.clone());
    let controller = kubezap_controller::run(
        ControllerConfig {
            egress_allow: allow,
            ..ControllerConfig::new(
                client.clone(),
                Namespaces::All,
                Arc::new(InProcess(performer)),
            )
        },
        shutdown.clone(),
    );
    let api_server = local_api.clone().serve(api_listener, shutdown.clone());

    report.listening(addresses.0, addresses.1, &kubeconfig);
    report.pass(&first);
    let files = files::watch(paths);
    tokio::select! {
        ended = api_server => Err(Failure::Failed(format!("the local API stopped: {ended:?}"))),
        () = gateway => Err(Failure::Failed("the webhook gateway stopped".to_owned())),
        ended = controller => Err(Failure::Failed(format!("the controller stopped: {ended:?}"))),
        ended = report.follow(&client, &routes, requests, Sources { applier, mocking, files }, addresses.0) => ended,
        () = interrupted.cancelled() => Ok(()),
    }
}

/// The executor, with mocks in front of the network.
fn performer(allow: &[String], mocks: Mocks) -> Result<Performer, Failure> {
    AllowList::parse(allow).map_err(|error| Failure::Usage(format!("--allow: {error}")))?;
    Ok(Performer::new(PerformerConfig {
        interceptor: Some(Arc::new(mocks)),
        ..PerformerConfig::default()
    }))
}

async fn bind(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    if !address.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "{flag} {address}: not a loopback address; `kubezap dev` is a development server with one token and listens on this machine only"
        )));
    }
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::Unreachable(format!(
            "{address} is taken by another process: stop it, or choose another address with {flag} {}:PORT (port 0 takes a free one)",
            address.ip()
        )),
        _ => Failure::Unreachable(format!("cannot listen on {address}: {error}; choose another address with {flag}")),
    })
}

fn local(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    listener
        .local_addr()
        .map_err(|error| Failure::Unreachable(error.to_string()))
}
