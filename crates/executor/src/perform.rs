//! Carries a call out: once, within its limits, along its redirects.

mod exchange;
mod outgoing;
mod redirect;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kubezap_chassis::metrics::Metrics;
use kubezap_step_protocol::{
    Code, ExecuteRequest, ExecuteResponse, Limits, OLDEST_VERSION, VERSION,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clients::Clients;
use crate::counters::Counters;
use crate::duplicates::{Duplicate, Duplicates};
use crate::egress::{Guard, Target};
use crate::failure::Failure;
use crate::resolve::{Resolve, SystemResolver};
use crate::slots::Slots;

/// Longer ids are not what any controller makes.
const MAX_EXECUTION_ID: usize = 1024;

/// Answers calls in the place of their targets, before the guard sees them. The mocks of `kubezap dev`.
pub trait Interceptor: Send + Sync {
    /// The answer, or `None` to let the call go out. Asked again for each redirect, with what would be sent.
    ///
    /// Time limits, cancellation and size limits apply as they do to a target.
    fn intercept<'a>(
        &'a self,
        request: &'a ExecuteRequest,
    ) -> BoxFuture<'a, Option<ExecuteResponse>>;
}

/// What a [`Performer`] is made of.
#[derive(Clone)]
pub struct PerformerConfig {
    /// Judges targets.
    pub guard: Guard,
    /// Looks names up.
    pub resolver: Arc<dyn Resolve>,
    /// Answers in the place of targets; `None` outside of `kubezap dev`.
    pub interceptor: Option<Arc<dyn Interceptor>>,
    /// Calls that run at once; more wait, within their own time limit.
    pub max_calls: usize,
    /// Calls to one host and port that run at once, and idle connections kept to it.
    pub max_calls_per_host: usize,
    /// The most that a request's own limits may ask for.
    pub limits: Limits,
    /// Counts calls and refusals.
    pub metrics: Metrics,
}

impl Default for PerformerConfig {
    /// The system's resolver, the guard without additions, 512 calls, 64 per host, and the protocol's default limits.
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            resolver: Arc::new(SystemResolver::default()),
            interceptor: None,
            max_calls: 512,
            max_calls_per_host: 64,
            limits: Limits::default(),
            metrics: Metrics::new(),
        }
    }
}

/// Makes HTTP calls. Cheap to clone; clones share connections, limits and the memory of past executions.
#[derive(Clone)]
pub struct Performer(Arc<Inner>);

struct Inner {
    clients: Clients,
    duplicates: Duplicates,
    guard: Arc<Guard>,
    interceptor: Option<Arc<dyn Interceptor>>,
    limits: Limits,
    slots: Slots,
    counters: Counters,
}

impl Performer {
    /// Makes a performer. Nothing is resolved, read or dialled before the first call.
    pub fn new(config: PerformerConfig) -> Self {
        let PerformerConfig {
            guard,
            resolver,
            interceptor,
            max_calls,
            max_calls_per_host,
            limits,
            metrics,
        } = config;
        let guard = Arc::new(guard);
        Self(Arc::new(Inner {
            clients: Clients::new(Arc::clone(&guard), resolver, max_calls_per_host),
            duplicates: Duplicates::new(),
            guard,
            interceptor,
            limits,
            slots: Slots::new(max_calls, max_calls_per_host),
            counters: Counters::new(&metrics),
        }))
    }

    /// Carries `request` out and returns what became of it, within its time limit.
    ///
    /// An execution id is carried out once: while the first is in flight, and for 5 minutes after, a second is refused
    /// as `invalid_request`. When `cancel` fires, or the returned future is dropped, the call's HTTP/1.1 connection is
    /// closed (its HTTP/2 stream is reset), and whether the target acted on it is unknown.
    pub async fn perform(
        &self,
        request: ExecuteRequest,
        cancel: CancellationToken,
    ) -> ExecuteResponse {
        let outcome = self.0.perform(request, cancel).await;
        self.0.counters.count(&outcome);
        outcome.unwrap_or_else(ExecuteResponse::from)
    }
}

impl Inner {
    async fn perform(
        &self,
        request: ExecuteRequest,
        cancel: CancellationToken,
    ) -> Result<ExecuteResponse, Failure> {
        let started = Instant::now();
        if !(OLDEST_VERSION..=VERSION).contains(&request.version) {
            return Err(Failure::invalid(format!(
                "protocol version {} is not understood here ({OLDEST_VERSION} to {VERSION} are): roll out the executor's image of this controller",
                request.version
            )));
        }
        if request.execution_id.is_empty() || request.execution_id.len() > MAX_EXECUTION_ID {
            return Err(Failure::invalid(format!(
                "an execution id has 1 to {MAX_EXECUTION_ID} bytes"
            )));
        }
        let _claim = self
            .duplicates
            .claim(&request.execution_id, started)
            .map_err(|duplicate| {
                let when = match duplicate {
                    Duplicate::InFlight => "is in flight already",
                    Duplicate::Finished => "was carried out less than 5 minutes ago",
                };
                Failure::invalid(format!(
                    "execution {} {when}; it is not carried out twice",
                    request.execution_id
                ))
            })?;
        let limit = Duration::from_millis(request.timeout_millis);
        // Beyond what the clock can hold there is no limit to speak of.
        let deadline = started
            .checked_add(limit)
            .unwrap_or_else(|| started + Duration::from_secs(u64::from(u32::MAX)));
        let progress = Progress::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::new(Code::Canceled, "the call was cancelled")),
            outcome = self.follow(request, &progress) => outcome,
            () = tokio::time::sleep_until(deadline) => Err(progress.timed_out(limit)),
        }
    }

    /// Sends the request, and again to wherever it is redirected.
    async fn follow(
        &self,
        mut request: ExecuteRequest,
        progress: &Progress,
    ) -> Result<ExecuteResponse, Failure> {
        request.limits = Limits {
            response_bytes: request
                .limits
                .response_bytes
                .min(self.limits.response_bytes),
            header_bytes: request.limits.header_bytes.min(self.limits.header_bytes),
        };
        loop {
            let url = outgoing::url(&mut request)?;
            let answer = match self.intercepted(&request, &url, progress).await? {
                Some(answer) => answer,
                None => self.send(&mut request, &url, progress).await?,
            };
            match redirect::follow(&mut request, &url, &answer)? {
                redirect::Next::Done => return Ok(answer),
                redirect::Next::Again => {}
            }
        }
    }

    async fn intercepted(
        &self,
        request: &ExecuteRequest,
        url: &url::Url,
        progress: &Progress,
    ) -> Result<Option<ExecuteResponse>, Failure> {
        let Some(interceptor) = &self.interceptor else {
            return Ok(None);
        };
        let target = Target::of(url)?;
        progress.at(&target, true);
        match interceptor.intercept(request).await {
            None => Ok(None),
            Some(ExecuteResponse::Failed { code, message }) => Err(Failure::new(code, message)),
            Some(ExecuteResponse::Response {
                status,
                headers,
                body,
            }) => {
                exchange::check_headers(
                    &target,
                    headers
                        .iter()
                        .map(|(name, value)| (name.len(), value.len())),
                    request.limits,
                )?;
                let body = if request.discard_body {
                    Vec::new()
                } else if body.len() as u64 > request.limits.response_bytes {
                    return Err(Failure::body_too_large(
                        &target,
                        request.limits.response_bytes,
                    ));
                } else {
                    body
                };
                Ok(Some(ExecuteResponse::Response {
                    status,
                    headers,
                    body,
                }))
            }
        }
    }

    async fn send(
        &self,
        request: &mut ExecuteRequest,
        url: &url::Url,
        progress: &Progress,
    ) -> Result<ExecuteResponse, Failure> {
        let shared = self.clients.for_request(request)?;
        let target = Target::of(url)?;
        self.guard.check_target(&target, &shared.allow)?;
        progress.at(&target, false);
        let _slot = self
            .slots
            .enter(&format!("{}:{}", target.host, target.port))
            .await;
        progress.at(&target, true);
        exchange::exchange(&shared.http, request, url, &target).await
    }
}

/// How far a call has come, for the message when its time is up.
#[derive(Default)]
struct Progress {
    host: Mutex<String>,
    sent: AtomicBool,
}

impl Progress {
    fn at(&self, target: &Target, sent: bool) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = target.to_string();
        self.sent.store(sent, Ordering::Relaxed);
    }

    fn timed_out(&self, limit: Duration) -> Failure {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let message = if host.is_empty() {
            format!("no answer within {limit:?}")
        } else if self.sent.load(Ordering::Relaxed) {
            format!("{host}: no answer within {limit:?}")
        } else {
            format!("{host}: not sent within {limit:?}, too many calls are running")
        };
        Failure::new(Code::Timeout, message)
    }
}
