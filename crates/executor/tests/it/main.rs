//! The executor against real sockets on loopback, and as a process.

// Clippy tells a test by its attribute, which helpers do not have; a skipped test says so.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod calls;
mod conformance;
mod names;
mod process;
mod redirects;
mod serve;
mod support;
mod tls;
