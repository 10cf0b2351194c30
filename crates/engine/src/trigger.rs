//! A trigger and an event give a run request: its name, labels and data.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Event;

/// What the engine needs to know of a Trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid; goes into every hash.
    pub uid: String,
    /// Its type, such as `webhook`.
    pub kind: String,
    /// Its Flow; `None` with an `action`.
    pub flow: Option<String>,
}

/// A FlowRun to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// RFC 1123, at most 63 characters.
    pub name: String,
    /// The trigger's, its kind, the flow's and the slot's.
    pub labels: BTreeMap<String, String>,
    /// `kubezap.io/event-hash`.
    pub annotations: BTreeMap<String, String>,
    /// What fired it, redacted.
    pub event: Arc<Event>,
}
