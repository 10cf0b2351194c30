//! What tests of several crates share: processes, fake targets, identities, and the contract of a Kubernetes API.
//! Nothing here goes into a binary.

pub mod contract;
pub mod identity;
pub mod process;
pub mod target;
pub mod wait;
