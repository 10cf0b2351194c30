//! What was asked of the API, in the order in which it was answered.

use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value;

/// One request.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// The verb, such as `update`.
    pub verb: String,
    /// The plural, such as `flowruns`.
    pub resource: String,
    /// `status`, or empty.
    pub subresource: String,
    /// The namespace, empty for all.
    pub namespace: String,
    /// The object; for a create, as it was named.
    pub name: String,
    /// The status code.
    pub code: u16,
    /// The `User-Agent`, empty for clients in the process that send none.
    pub user_agent: String,
    /// What was sent with a write.
    pub body: Option<Value>,
    /// When it was carried out.
    pub at: Instant,
}

/// The audit of one API; off unless asked for, since it grows without bound.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    pub(crate) on: bool,
    entries: Mutex<Vec<AuditEntry>>,
}

impl Audit {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            on,
            entries: Mutex::default(),
        }
    }

    pub(crate) fn record(&self, entry: AuditEntry) {
        self.entries
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<AuditEntry> {
        self.entries
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}
