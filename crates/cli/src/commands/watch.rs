//! `kubezap watch [RUN]`: runs and their steps as they go.

use std::pin::pin;

use futures::TryStreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use kubezap_api::flow_run::FlowRun;
use kubezap_chassis::args::{Connection, KubeArgs};

use crate::failure::Failure;
use crate::follow::{Follower, Style};
use crate::listing;
use crate::output::Palette;
use crate::run_view::RunView;

/// Watches runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A FlowRun; the command ends when it does: 0 Succeeded, 1 Failed or Cancelled.
    #[arg(conflicts_with = "all_namespaces")]
    run: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// `json` prints one JSON object a line.
    #[arg(short, long, value_enum)]
    output: Option<WatchOutput>,
}

/// How `watch` prints.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum WatchOutput {
    /// One JSON object a line.
    Json,
}

/// Watches until the run ends, or until Ctrl-C.
///
/// # Errors
/// A run that does not exist or does not succeed, or what the API server answers.
pub(crate) async fn run(args: Args, kube: &KubeArgs, palette: Palette) -> Result<(), Failure> {
    let Args {
        run,
        all_namespaces,
        output,
    } = args;
    let Connection {
        client, namespace, ..
    } = kube.connect().await?;
    let api = listing::api::<FlowRun>(client, all_namespaces, &namespace);
    if let Some(name) = &run {
        api.get(name).await?;
    }
    follow(api, run.as_deref(), output.is_some(), palette, |_| true).await
}

/// Shows the runs that `takes` takes; with a name, until that run ends.
///
/// # Errors
/// A named run that does not succeed or is deleted, or what the API server answers.
pub(crate) async fn follow(
    api: Api<FlowRun>,
    name: Option<&str>,
    json: bool,
    palette: Palette,
    takes: impl Fn(&FlowRun) -> bool,
) -> Result<(), Failure> {
    let mut follower = Follower::new(Style::detect(json), palette);
    let config = match name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default(),
    };
    let mut events = pin!(watcher(api, config).default_backoff());
    loop {
        match events.try_next().await {
            Ok(Some(watcher::Event::Apply(run) | watcher::Event::InitApply(run)))
                if takes(&run) =>
            {
                follower.show(&run);
                let view = RunView::of(&run);
                match view.phase.as_str() {
                    "Succeeded" if name.is_some() => return Ok(()),
                    _ if name.is_some() && view.finished => {
                        return Err(Failure::Failed(format!(
                            "{} is {}: {}",
                            view.name, view.phase, view.message
                        )));
                    }
                    _ => {}
                }
            }
            Ok(Some(watcher::Event::Delete(run))) => match name {
                Some(name) => return Err(Failure::Failed(format!("FlowRun {name} was deleted"))),
                None => follower.forget(&run.uid().unwrap_or_default()),
            },
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(watcher::Error::InitialListFailed(error)) => return Err(error.into()),
            // A watch that breaks is taken up again by the watcher itself.
            Err(_) => {}
        }
    }
}
