//! What is refused when a Flow is read, and what is warned of. Tests named `compatibility_*` state a line of what existing
//! manifests rely on.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

#[path = "../advance/draft.rs"]
#[expect(dead_code, reason = "shared with the tests of advance")]
mod draft;
mod problems;
mod warnings;
