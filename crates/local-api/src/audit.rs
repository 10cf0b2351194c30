//! The order of requests, for tests that prove one.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

/// One request, recorded after what it wrote was stored and before its answer was sent. Of two writes at the same time the
/// resource versions tell which was stored first.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// Position, from 1.
    pub seq: u64,
    /// When it was recorded; for a watch, when it was opened.
    pub at: Instant,
    /// get, list, watch, create, update, patch, delete or deletecollection.
    pub verb: String,
    /// Plural of the kind.
    pub resource: String,
    /// `status`, or empty.
    pub subresource: String,
    /// Empty for a request across namespaces.
    pub namespace: String,
    /// Empty for a request about many objects.
    pub name: String,
    /// HTTP status. The answer of a write may have been lost all the same.
    pub code: u16,
    /// The resourceVersion after a write.
    pub resource_version: Option<u64>,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// What a create, update or patch sent.
    pub body: Option<Value>,
}

#[derive(Debug, Default)]
pub(crate) struct Audit {
    entries: Mutex<Vec<AuditEntry>>,
}

impl Audit {
    pub(crate) fn record(&self, mut entry: AuditEntry) {
        let mut entries = self.lock();
        entry.seq = entries.len() as u64 + 1;
        entries.push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<AuditEntry> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<AuditEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
