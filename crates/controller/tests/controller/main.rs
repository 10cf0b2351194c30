//! The controller against a Kubernetes API in the process, with an executor that a test decides.

#![allow(clippy::unwrap_used)]

mod conditions;
mod crashes;
mod credentials;
mod flows;
mod remote;
mod rig;
mod runs;
