//! Gateways: where events from outside come in. Each turns what it hears into FlowRuns, and says "accepted" only of what
//! the API server has stored.

pub mod args;
pub mod webhook;
