//! Templates and rendering through their public seam. Tests named `compatibility_*` state a line of what existing manifests
//! rely on.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

mod compatibility;
mod properties;
mod rendering;
mod setup;
