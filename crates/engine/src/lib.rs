//! The KubeZap engine: what a flow run means, and how one owner keeps many runs on a conditional store.
//!
//! Everything here is pure. Time, randomness, credentials and the outcomes of calls are arguments; effects are data.
//! The same crate runs in the controller, in `kubezap dev` and in simulations, and builds for `wasm32-unknown-unknown`.

pub mod advance;
pub mod driver;
pub mod effect;
pub mod event;
pub mod expression;
pub mod flow;
pub mod graph;
pub mod observation;
pub mod render;
pub mod retry;
pub mod run;
pub mod secret;
mod transition;
pub mod trigger;
