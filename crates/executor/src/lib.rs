//! Makes the HTTP request it is handed, and nothing else: no Kubernetes API, no Secrets, nothing kept.
//!
//! [`Performer`] carries out one [`ExecuteRequest`](kubezap_step_protocol::ExecuteRequest) at a time for as many callers
//! as ask: in the process of `kubezap dev`, or behind `POST /execute` over mutual TLS ([`serve()`]). Every address it
//! dials has passed the [`egress`] guard, which is pure and can be asked without dialling.
//!
//! What a call may rely on:
//! - an execution id is carried out at most once in 5 minutes;
//! - the answer is whole or an error, never a cut;
//! - time, response size, calls in flight and calls per host are bounded;
//! - dropping or cancelling a call closes its HTTP/1.1 connection, or resets its HTTP/2 stream;
//! - no message holds a header value, a body, or a URL's path, query or user information;
//! - proxy variables are not read, and a response is not decompressed: `Accept-Encoding` goes out only where a step sets it.

mod clients;
mod connect;
mod counters;
mod duplicates;
pub mod egress;
mod failure;
pub mod perform;
pub mod resolve;
pub mod serve;
mod slots;
mod tls;

pub use egress::{AllowList, Denied, Guard};
pub use failure::Failure;
pub use perform::{Interceptor, Performer, PerformerConfig};
pub use serve::{ServeError, ServerTls, serve};
