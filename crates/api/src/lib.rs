//! The kinds of `automation.kubezap.io/v1alpha1`, their conditions, and how a spec becomes what the engine runs.
//!
//! A kind is a file each. The Rust types are the source of the CustomResourceDefinitions in `config/crd`
//! ([`crds`]); [`lower`] is the only place that reads a spec, [`status`] the only one that reads or makes the status
//! of a FlowRun. No client lives here.

#![allow(
    clippy::duplicated_attributes,
    reason = "columns of one type in #[kube(printcolumn(...))] count as duplicates"
)]

pub mod conditions;
pub mod duration;
pub mod flow;
pub mod flow_run;
pub mod integration;
pub mod lower;
pub mod metadata;
pub mod reference;
mod schema;
pub mod status;
mod structural;
pub mod trigger;
pub mod webhook_gateway_config;

pub use flow::{Flow, FlowSpec, FlowStatus};
pub use flow_run::{FlowRun, FlowRunSpec, FlowRunStatus};
pub use integration::{Integration, IntegrationSpec, IntegrationStatus};
pub use structural::crds;
pub use trigger::{Trigger, TriggerSpec, TriggerStatus};
pub use webhook_gateway_config::{
    WebhookGatewayConfig, WebhookGatewayConfigSpec, WebhookGatewayConfigStatus,
};

/// The API group of all kinds.
pub const GROUP: &str = "automation.kubezap.io";

/// Its only version.
pub const VERSION: &str = "v1alpha1";
