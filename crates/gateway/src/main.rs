//! `kubezap-webhook-gateway`: serves the webhook Triggers of its namespace.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kubezap_chassis::{admin, crypto, log, refused, shutdown};
use kubezap_gateway::args::Args;
use kubezap_gateway::webhook;

fn main() -> ExitCode {
    crypto::install();
    if let Some(reason) = refused::flag(std::env::args().skip(1)) {
        return kubezap_gateway::args::fail(2, &reason);
    }
    let args = Args::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => kubezap_gateway::args::fail(3, &format!("{error:#}")),
    }
}

#[tokio::main]
async fn run(args: Args) -> Result<()> {
    log::init(&args.log)?;
    let shutdown = shutdown::on_signal()?;
    let (config, admin_listener) = args.start().await?;
    let admin = admin::serve(
        admin_listener,
        config.readiness.clone(),
        config.metrics.clone(),
        shutdown.clone(),
    );
    tokio::join!(admin, webhook::serve(config, shutdown));
    Ok(())
}
