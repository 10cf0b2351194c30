//! The executor against real sockets on loopback, and as a process.

mod calls;
mod conformance;
mod names;
mod process;
mod redirects;
mod serve;
mod support;
mod tls;
