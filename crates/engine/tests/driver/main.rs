//! The driver against a store in memory, in virtual time.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stand outside of test functions"
)]

mod conflicts;
mod fairness;
mod flows;
mod nature;
mod ownership;
mod store;
mod world;
mod writes;
