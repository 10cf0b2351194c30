//! One file per verb.

pub(crate) mod dev;
pub(crate) mod fire;
pub(crate) mod flows;
pub(crate) mod history;
pub(crate) mod triggers;
pub(crate) mod version;
pub(crate) mod watch;
