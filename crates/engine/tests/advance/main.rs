//! What a run means, in virtual time. Tests named `compatibility_*` state a line of what existing
//! manifests rely on.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

mod cancellation;
#[expect(dead_code, reason = "shared with the tests of flow")]
mod draft;
mod durability;
mod failures;
mod order;
mod parameters;
mod properties;
mod results;
mod retries;
mod sizes;
mod timeouts;
mod waits;
mod world;
