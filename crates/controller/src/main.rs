//! `kubezap-controller`: keeps the kinds' conditions and carries FlowRuns out.

mod args;
mod process;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;

#[tokio::main]
async fn main() -> ExitCode {
    kubezap_chassis::crypto::install();
    if let Some(reason) = kubezap_chassis::refused::flag(std::env::args()) {
        return fail(2, &reason);
    }
    match process::run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(3, &format!("{error:#}")),
    }
}

#[allow(clippy::print_stderr)]
fn fail(code: u8, reason: &str) -> ExitCode {
    eprintln!("kubezap-controller: {reason}");
    ExitCode::from(code)
}
