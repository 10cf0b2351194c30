//! Development tasks: `cargo xtask <task>`.

mod manifests;
mod test;
mod tidy;
mod tools;

use clap::{Parser, Subcommand};

/// Development tasks of KubeZap.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the generated manifests, or with --check fails if they are out of date.
    Manifests {
        /// Writes nothing; fails when a file differs.
        #[arg(long)]
        check: bool,
    },
    /// Checks format, lints, documentation, generated files, licences, and that the engine builds for wasm32.
    Tidy,
    /// Runs everything CI runs: tidy, then every test. Fetches and builds what it needs.
    Test(test::Args),
}

fn main() -> anyhow::Result<()> {
    let Args { task } = Args::parse();
    match task {
        Task::Manifests { check } => manifests::run(check),
        Task::Tidy => tidy::run(),
        Task::Test(args) => test::run(&args),
    }
}
