//! Everything that is checked without running the product.

use anyhow::Result;

use crate::manifests;
use crate::tools::{cargo_deny, step, target};

/// Runs the checks in the order in which they are cheapest to fail.
pub(crate) fn run() -> Result<()> {
    step("format", "cargo", &["fmt", "--all", "--check"], &[])?;
    manifests::run(true)?;
    step(
        "lints",
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )?;
    step(
        "documentation",
        "cargo",
        &[
            "doc",
            "--workspace",
            "--no-deps",
            "--locked",
            "--document-private-items",
        ],
        &[(
            "RUSTDOCFLAGS",
            "-D warnings -A rustdoc::private-intra-doc-links",
        )],
    )?;
    target("wasm32-unknown-unknown")?;
    step(
        "engine for wasm32",
        "cargo",
        &[
            "check",
            "-p",
            "kubezap-engine",
            "--target",
            "wasm32-unknown-unknown",
            "--locked",
        ],
        &[],
    )?;
    step(
        "licences and sources",
        &cargo_deny()?,
        &[
            "--workspace",
            "--locked",
            "check",
            "licenses",
            "bans",
            "sources",
        ],
        &[],
    )
}
