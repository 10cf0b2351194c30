//! One request, from its head to its answer. The order of the checks is the order of the lines of [`Gateway::decide`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::Timestamp;
use kube::Client;
use uuid::Uuid;

use super::Limits;
use super::access_log::{AccessLog, Checked, Seen};
use super::admit::{self, AdmitError};
use super::answer::Answer;
use super::authenticate::{self, Refusal};
use super::body::{self, BodyError, Memory};
use super::limiter::Limiter;
use super::metrics::Counts;
use super::report::{Outcome, Reporter};
use super::route::{Route, Routes};
use super::secrets::Secrets;
use super::source::Proxies;
use super::trace::Trace;

/// What all requests share.
pub(crate) struct Gateway {
    pub(crate) client: Client,
    pub(crate) routes: Routes,
    pub(crate) proxies: Proxies,
    pub(crate) limiter: Limiter,
    pub(crate) secrets: Secrets,
    pub(crate) memory: Memory,
    pub(crate) reporter: Reporter,
    pub(crate) counts: Counts,
    pub(crate) access_log: AccessLog,
    pub(crate) limits: Limits,
}

impl Gateway {
    /// Answers a request, counts it, and writes its access line.
    pub(crate) async fn handle(
        self: Arc<Self>,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let (head, mut body) = request.into_parts();
        let source = self.proxies.source(peer.ip(), &head.headers);
        let trace = Trace::of(&head.headers, [Uuid::new_v4(), Uuid::new_v4()]);
        let mut seen = Seen::new(&head, peer, source, trace.clone(), &self.access_log);

        let answer = self
            .decide(&head, &mut body, source, &trace, began, &mut seen)
            .await;

        let took = began.elapsed();
        let now = Timestamp::now();
        self.counts
            .request(seen.route.as_deref(), &answer, took, now.as_second());
        seen.write(&self.access_log, &answer, took);
        // Reading on would ask a sender that waits for "100 Continue" for the body that was just refused. A stream of
        // HTTP/2 ends alone and needs no help.
        if !hyper::body::Body::is_end_stream(&body)
            && head.version < Version::HTTP_2
            && !head.headers.contains_key(EXPECT)
        {
            tokio::spawn(body::discard(body));
        }
        answer.response()
    }

    async fn decide(
        &self,
        head: &Parts,
        body: &mut Incoming,
        source: std::net::IpAddr,
        trace: &Trace,
        began: Instant,
        seen: &mut Seen,
    ) -> Answer {
        let Limits {
            max_body_bytes,
            max_header_bytes,
            body_deadline,
            create_deadline,
            ..
        } = self.limits;

        let Some(route) = self.routes.find(head.uri.path()) else {
            return Answer::NotFound;
        };
        seen.route = Some(route.clone());
        if head.method != route.method {
            return Answer::MethodNotAllowed {
                allow: route.method.clone(),
            };
        }
        if let Err(retry_after) = self.limiter.take(source, began) {
            self.report(&route, Outcome::RateLimited);
            return Answer::TooMany { retry_after };
        }
        let pending = match authenticate::before_body(&route, &head.headers, &self.secrets).await {
            Ok(pending) => pending,
            Err(refusal) => return self.refuse(&route, refusal, seen),
        };
        if body::headers_size(&head.headers) > max_header_bytes {
            return Answer::HeadersTooLarge {
                limit: max_header_bytes,
            };
        }
        let too_large = Answer::TooLarge {
            limit: max_body_bytes,
        };
        if body::refuse_by_length(&head.headers, max_body_bytes).is_err() {
            return too_large;
        }
        let deadline = tokio::time::Instant::from_std(began + body_deadline);
        let read = match body::read(body, max_body_bytes, deadline, &self.memory).await {
            Ok(read) => read,
            Err(BodyError::TooLarge) => return too_large,
            Err(BodyError::TooSlow) => return Answer::TooSlow,
            Err(BodyError::Broken) => return Answer::BrokenBody,
            Err(BodyError::Busy) => {
                return Answer::Unavailable {
                    why: "too many bodies at once; nothing was accepted",
                    retry_after: Duration::from_secs(1),
                };
            }
        };
        // The share of the memory is held until the FlowRun is stored.
        let body::Read {
            bytes,
            share: _share,
        } = read;
        seen.body_bytes = bytes.len();
        if !route.redact_body && body::stored_size(&bytes) > max_body_bytes {
            return too_large;
        }
        if let Err(refusal) = pending
            .with_body(&bytes, &self.secrets, route.flow_name())
            .await
        {
            return self.refuse(&route, refusal, seen);
        }
        if !authenticate::name(&route.auth).is_empty() {
            seen.auth = Checked::Success;
        }

        let event = admit::event(&route, head, bytes);
        let id = admit::time_ordered_id(Uuid::now_v7());
        let request = route.engine.admit(event, &id);
        let deadline = tokio::time::Instant::now() + create_deadline;
        match admit::store(&self.client, &route, request, trace, deadline).await {
            Ok(flow_run) => {
                self.report(&route, Outcome::Succeeded);
                Answer::Accepted {
                    namespace: route.namespace.clone(),
                    flow_run,
                    deduplicated: false,
                }
            }
            Err(error) => {
                tracing::error!(
                    namespace = route.namespace,
                    trigger = route.trigger(),
                    trace_id = trace.trace_id,
                    %error,
                    "an event was not accepted"
                );
                self.report(&route, Outcome::Failed(error.to_string()));
                match error {
                    AdmitError::TooLarge { .. } => too_large,
                    AdmitError::Invalid { .. } => Answer::Invalid,
                    AdmitError::Unavailable { retry_after, .. } => Answer::Unavailable {
                        why: "the event cannot be stored at the moment; nothing was accepted",
                        retry_after,
                    },
                }
            }
        }
    }

    fn refuse(&self, route: &Route, refusal: Refusal, seen: &mut Seen) -> Answer {
        match refusal {
            Refusal::Failed(failure) => {
                seen.auth = Checked::Failure(failure.as_str());
                let kind = authenticate::name(&route.auth);
                self.counts
                    .auth_failure(route.trigger(), kind, failure.as_str());
                self.report(route, Outcome::AuthFailed);
                Answer::Unauthorized {
                    bearer: kind == "bearer",
                }
            }
            Refusal::Unavailable(error) => {
                seen.auth = Checked::Impossible(error);
                self.report(
                    route,
                    Outcome::Failed(format!("the sender cannot be checked: {error}")),
                );
                Answer::Unavailable {
                    why: "the request cannot be checked at the moment; nothing was accepted",
                    retry_after: admit::RETRY_AFTER,
                }
            }
        }
    }

    fn report(&self, route: &Route, outcome: Outcome) {
        self.reporter
            .record(&route.namespace, route.trigger(), outcome, Timestamp::now());
    }
}
