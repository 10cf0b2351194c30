//! The `kubezap` command.

mod commands;
mod detail;
mod dev;
mod failure;
mod follow;
mod listing;
mod manifest;
mod mocks;
mod output;
mod run_view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kubezap_chassis::args::KubeArgs;

use crate::commands::{dev as dev_command, fire, flows, history, triggers, version, watch};
use crate::output::Palette;

/// Event-driven automation inside Kubernetes: fire Triggers, watch FlowRuns, develop Flows without a cluster.
#[derive(Debug, Parser)]
#[command(name = "kubezap", version, arg_required_else_help = true)]
struct Args {
    /// Any value turns colours off.
    #[arg(long, env = "NO_COLOR", hide = true, global = true)]
    no_color: Option<String>,
    #[command(flatten)]
    kube: KubeArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole product in one process, without a cluster.
    Dev(dev_command::Args),
    /// Fires a Trigger by hand.
    Fire(fire::Args),
    /// Watches runs and their steps.
    Watch(watch::Args),
    /// Lists runs, or shows one: what event, which steps, why.
    History(history::Args),
    /// Lists Triggers.
    Triggers(triggers::Args),
    /// Lists Flows.
    Flows(flows::Args),
    /// Prints versions.
    Version(version::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    kubezap_chassis::crypto::install();
    let Args {
        no_color,
        kube,
        command,
    } = Args::parse();
    let palette = Palette::detect(no_color.as_deref());
    let ended = match command {
        Command::Dev(args) => dev_command::run(args, &kube, palette).await,
        Command::Fire(args) => fire::run(args, &kube, palette).await,
        Command::Watch(args) => watch::run(args, &kube, palette).await,
        Command::History(args) => history::run(args, &kube, palette).await,
        Command::Triggers(args) => triggers::run(args, &kube).await,
        Command::Flows(args) => flows::run(args, &kube).await,
        Command::Version(args) => version::run(args, &kube).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(format!("kubezap: {failure}"));
            failure.exit_code()
        }
    }
}
