//! The parts of `kubezap dev`: applying files, the executor in this process, mocks, and what the terminal shows.

pub(crate) mod apply;
pub(crate) mod executor;
pub(crate) mod files;
pub(crate) mod kubeconfig;
pub(crate) mod mocking;
pub(crate) mod report;
