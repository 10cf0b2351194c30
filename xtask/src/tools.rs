//! Running commands, and the tools that a task fetches for itself.
#![allow(clippy::print_stderr)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Version of cargo-deny that `tidy` installs when it is missing.
const CARGO_DENY: &str = "0.20.2";

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(PathBuf::from)
        .unwrap_or_default()
}

/// Runs a command in the workspace's root and says so; its failure is an error that names the step.
pub(crate) fn step(
    what: &str,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<()> {
    eprintln!("==> {what}: {program} {}", arguments.join(" "));
    let begin = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("{what}: cannot start {program}"))?;
    if !status.success() {
        bail!(
            "{what} failed: {program} {} ended with {status}",
            arguments.join(" ")
        );
    }
    eprintln!("    {what}: {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Makes sure that the standard library for a target is there.
pub(crate) fn target(triple: &str) -> Result<()> {
    let installed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .output();
    match installed {
        Ok(output)
            if String::from_utf8_lossy(&output.stdout)
                .lines()
                .any(|line| line == triple) =>
        {
            Ok(())
        }
        _ => step("fetch a target", "rustup", &["target", "add", triple], &[]),
    }
}

/// The path of cargo-deny, installed into the cache folder first when it is not there.
pub(crate) fn cargo_deny() -> Result<String> {
    let folder = cache()?.join("tools");
    let binary = folder.join("bin/cargo-deny");
    if !binary.exists() {
        let folder = folder.to_string_lossy().into_owned();
        step(
            "build cargo-deny once",
            "cargo",
            &[
                "install",
                "cargo-deny",
                "--locked",
                "--version",
                CARGO_DENY,
                "--root",
                &folder,
            ],
            &[],
        )?;
    }
    Ok(binary.to_string_lossy().into_owned())
}

/// `$XDG_CACHE_HOME/kubezap`, or `~/.cache/kubezap`.
fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set, so there is no cache folder")?;
    Ok(base.join("kubezap"))
}
