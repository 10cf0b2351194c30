//! The one test command.

use anyhow::Result;

use crate::tidy;
use crate::tools::step;

/// `cargo xtask test`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leaves out format, lints, documentation and licences.
    #[arg(long)]
    no_tidy: bool,
}

/// Runs tidy, builds the binaries that tests start, then every test.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Args { no_tidy } = args;
    if !no_tidy {
        tidy::run()?;
    }
    step(
        "binaries",
        "cargo",
        &["build", "--workspace", "--bins", "--locked"],
        &[],
    )?;
    step(
        "tests",
        "cargo",
        &["test", "--workspace", "--locked", "--no-fail-fast"],
        &[],
    )
}
