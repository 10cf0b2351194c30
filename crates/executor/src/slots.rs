//! Bounds how many calls run at once, in all and per host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Hosts remembered before those without a call are forgotten.
const SWEEP_AT: usize = 1024;

pub(crate) struct Slots {
    all: Arc<Semaphore>,
    per_host: usize,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A call's right to run; given back when dropped.
pub(crate) struct Slot {
    _all: OwnedSemaphorePermit,
    _host: OwnedSemaphorePermit,
}

impl Slots {
    pub(crate) fn new(all: usize, per_host: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all.max(1))),
            per_host: per_host.max(1),
            hosts: Mutex::default(),
        }
    }

    /// Waits for a slot for `host`, first come first served. The host's comes first, so that calls which wait for a
    /// slow host hold up nobody else.
    pub(crate) async fn enter(&self, host: &str) -> Slot {
        let host = Arc::clone(&self.host(host));
        // Neither semaphore is ever closed.
        #[allow(clippy::expect_used)]
        let host = host.acquire_owned().await.expect("never closed");
        #[allow(clippy::expect_used)]
        let all = Arc::clone(&self.all)
            .acquire_owned()
            .await
            .expect("never closed");
        Slot {
            _all: all,
            _host: host,
        }
    }

    fn host(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host).and_then(Weak::upgrade) {
            return known;
        }
        if hosts.len() >= SWEEP_AT {
            hosts.retain(|_, known| known.strong_count() > 0);
        }
        let fresh = Arc::new(Semaphore::new(self.per_host));
        hosts.insert(host.to_owned(), Arc::downgrade(&fresh));
        fresh
    }
}
