//! End to end on real processes and real sockets, all on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are not test functions"
)]

mod bad_input;
mod crash;
mod dev;
mod docs;
mod installation;
mod limits;
mod throughput;
