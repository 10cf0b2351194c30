//! `cargo xtask`: the chores of this repository.

mod manifests;

use clap::{Parser, Subcommand};

/// Chores of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Writes the files in config/ that are generated from Rust types.
    Manifests {
        /// Writes nothing; fails when a file differs.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    let Args { chore } = Args::parse();
    match chore {
        Chore::Manifests { check } => manifests::run(check),
    }
}
