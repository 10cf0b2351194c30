//! Templates and rendering through their public seam. Tests named `compatibility_*` state a line of what existing manifests
//! rely on.

mod compatibility;
mod properties;
mod rendering;
mod setup;
