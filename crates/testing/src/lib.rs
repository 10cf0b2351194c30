//! What tests of several crates share: processes, fake targets, identities, and the contract of a Kubernetes API.
//! Nothing here goes into a binary.

pub mod identity;
pub mod process;
pub mod target;
pub mod wait;
