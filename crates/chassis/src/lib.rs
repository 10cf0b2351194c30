//! What every KubeZap process needs: log, metrics, admin server, shutdown, shared arguments, TLS files.
//!
//! A main is a table of contents of these rooms: [`crypto::install`], parse its arguments, [`log::init`],
//! [`shutdown::on_signal`], [`args::KubeArgs::connect`], [`admin::serve`], then its own work.

pub mod admin;
pub mod args;
pub mod crypto;
mod kube_client;
pub mod log;
pub mod metrics;
pub mod namespaces;
pub mod refused;
pub mod shutdown;
pub mod tls;
