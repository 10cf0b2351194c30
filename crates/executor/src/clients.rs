//! HTTP clients, one per (allow-list, CA bundle, client certificate): a pooled connection is only ever reused by calls
//! that could have opened it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kubezap_step_protocol::ExecuteRequest;
use sha2::{Digest as _, Sha256};

use crate::connect::Connector;
use crate::egress::{AllowList, Guard};
use crate::failure::Failure;
use crate::resolve::Resolve;
use crate::tls::{ClientTls, SystemTrust};

/// Clients kept; the one unused for longest goes first, with its idle connections.
const MAX_CLIENTS: usize = 256;

/// Shorter than the idle limits of common servers and load balancers (60 s), so that we close first.
const IDLE: Duration = Duration::from_secs(50);

/// Our own count of header bytes decides; the parsers' bounds only have to be beyond it.
const HEADER_BUFFER: usize = 256 * 1024;

/// What the calls of one allow-list and TLS identity share.
pub(crate) struct Shared {
    pub(crate) allow: Arc<AllowList>,
    pub(crate) http: Client<Connector, Full<Bytes>>,
}

pub(crate) struct Clients {
    guard: Arc<Guard>,
    resolver: Arc<dyn Resolve>,
    max_idle_per_host: usize,
    trust: Arc<SystemTrust>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    clients: HashMap<Key, (Arc<Shared>, u64)>,
    /// Counts uses; the lowest is the one unused for longest.
    clock: u64,
}

/// A digest, so that no key material stays in memory for comparing.
type Key = [u8; 32];

impl Clients {
    pub(crate) fn new(
        guard: Arc<Guard>,
        resolver: Arc<dyn Resolve>,
        max_idle_per_host: usize,
    ) -> Self {
        Self {
            guard,
            resolver,
            max_idle_per_host,
            trust: Arc::default(),
            kept: Mutex::default(),
        }
    }

    /// The client for `request`, made where there is none.
    pub(crate) fn for_request(&self, request: &ExecuteRequest) -> Result<Arc<Shared>, Failure> {
        let key = key(request);
        if let Some(shared) = self.find(&key) {
            return Ok(shared);
        }
        let made = Arc::new(self.make(request)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let shared = Arc::clone(&kept.clients.entry(key).or_insert((made, now)).0);
        if kept.clients.len() > MAX_CLIENTS {
            let oldest = kept.clients.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                kept.clients.remove(&oldest);
            }
        }
        Ok(shared)
    }

    fn find(&self, key: &Key) -> Option<Arc<Shared>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        let (shared, used) = kept.clients.get_mut(key)?;
        *used = now;
        Some(Arc::clone(shared))
    }

    fn make(&self, request: &ExecuteRequest) -> Result<Shared, Failure> {
        let allow = AllowList::parse(&request.allow)
            .map(Arc::new)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let tls = ClientTls::new(
            &self.trust,
            request.ca_bundle.as_deref(),
            request.client_certificate.as_ref(),
        )
        .map_err(|error| Failure::invalid(error.to_string()))?;
        let connector = Connector {
            guard: Arc::clone(&self.guard),
            allow: Arc::clone(&allow),
            resolver: Arc::clone(&self.resolver),
            tls: Arc::new(tls),
        };
        let http = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(self.max_idle_per_host)
            .http1_max_buf_size(HEADER_BUFFER)
            .http1_max_headers(1024)
            .http2_max_header_list_size(HEADER_BUFFER as u32)
            .http2_keep_alive_interval(Duration::from_secs(20))
            .build(connector);
        Ok(Shared { allow, http })
    }
}

fn key(request: &ExecuteRequest) -> Key {
    let mut digest = Sha256::new();
    // Every part is preceded by what it is and how long it is, so that no two requests read the same.
    let mut part = |name: u8, text: &str| {
        digest.update([name]);
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    };
    for entry in &request.allow {
        part(0, entry);
    }
    if let Some(pem) = &request.ca_bundle {
        part(1, pem);
    }
    if let Some(certificate) = &request.client_certificate {
        part(2, &certificate.certificate);
        part(3, &certificate.key);
    }
    digest.finalize().into()
}
