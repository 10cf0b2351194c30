//! End to end on real processes and real sockets, all on loopback.

mod bad_input;
mod crash;
mod dev;
mod docs;
mod installation;
mod limits;
mod throughput;
