//! One call: its credentials are read, it is rendered, handed to an executor, and what comes back is masked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use kubezap_engine::effect::Call;
use kubezap_engine::observation::{CallOutcome, Failure, Response};
use kubezap_engine::render::{Request, render};
use kubezap_engine::run::reason;
use kubezap_engine::secret::Redactor;
use kubezap_step_protocol::{Code, ExecuteRequest, ExecuteResponse, Header, Limits, VERSION};
use tokio_util::sync::CancellationToken;

use super::credentials::{self, CredentialError};
use crate::executors::{DispatchError, Executors};

/// Redirects that are followed where following one repeats nothing.
const REDIRECTS: u32 = 10;

/// Makes calls.
#[derive(Clone)]
pub(super) struct Dispatcher {
    pub(super) client: Client,
    pub(super) executors: Arc<dyn Executors>,
    pub(super) egress_allow: Arc<[String]>,
    pub(super) limits: Limits,
}

impl Dispatcher {
    /// Makes one call, within its time limit.
    pub(super) async fn call(
        &self,
        namespace: &str,
        call: &Call,
        traceparent: String,
        discard_body: bool,
        cancel: CancellationToken,
    ) -> CallOutcome {
        let begun = Instant::now();
        let read = credentials::read(&self.client, namespace, &call.references);
        let credentials = tokio::select! {
            biased;
            () = cancel.cancelled() => return canceled(),
            read = tokio::time::timeout(call.timeout, read) => match read {
                Ok(Ok(credentials)) => credentials,
                Ok(Err(error)) => return unreadable(&error),
                Err(_) => return CallOutcome::NotDelivered {
                    message: "the API server did not answer in time".to_owned(),
                },
            },
        };
        let redactor = credentials.redactor();
        let request = match render(call, &credentials) {
            Ok(request) => request,
            Err(error) => return failed(error.reason, redactor.mask(&error.message)),
        };
        drop(credentials);
        let left = call.timeout.saturating_sub(begun.elapsed());
        let Some(mut request) = self.request(call, &request, left, discard_body) else {
            let message = "the url or a header is not text".to_owned();
            return failed(reason::INVALID_REQUEST, message);
        };
        add_traceparent(&mut request, traceparent);
        let answer = self.executors.execute(namespace, request, cancel).await;
        outcome(answer, &redactor)
    }

    /// `None` when something is not UTF-8.
    fn request(
        &self,
        call: &Call,
        request: &Request,
        left: Duration,
        discard_body: bool,
    ) -> Option<ExecuteRequest> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let headers = request
            .headers
            .iter()
            .map(|header| {
                Some(Header {
                    name: header.name.clone(),
                    value: text(header.value.expose())?,
                    sensitive: header.sensitive,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(ExecuteRequest {
            version: VERSION,
            execution_id: call.execution_id.clone(),
            method: request.method.clone(),
            url: text(request.url.expose())?,
            headers,
            body: request.body.as_ref().map(|body| body.expose().to_vec()),
            timeout_millis: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            limits: self.limits,
            max_redirects: if request.method == "GET" {
                REDIRECTS
            } else {
                0
            },
            allow: self.egress_allow.to_vec(),
            ca_bundle: None,
            client_certificate: None,
            discard_body,
        })
    }
}

/// A step's own header wins.
fn add_traceparent(request: &mut ExecuteRequest, value: String) {
    const NAME: &str = "traceparent";
    let is_set = |header: &Header| header.name.eq_ignore_ascii_case(NAME);
    if !request.headers.iter().any(is_set) {
        request.headers.push(Header {
            name: NAME.to_owned(),
            value,
            sensitive: false,
        });
    }
}

fn failed(reason: &'static str, message: String) -> CallOutcome {
    CallOutcome::Failed(Failure { reason, message })
}

fn canceled() -> CallOutcome {
    let message = format!("{}: the call was aborted", Code::Canceled);
    failed(reason::CANCELED, message)
}

fn unreadable(error: &CredentialError) -> CallOutcome {
    let message = error.to_string();
    if error.may_pass() {
        CallOutcome::NotDelivered { message }
    } else {
        failed(reason::REFERENCE_NOT_FOUND, message)
    }
}

fn outcome(answer: Result<ExecuteResponse, DispatchError>, redactor: &Redactor) -> CallOutcome {
    match answer {
        Ok(ExecuteResponse::Response {
            status,
            headers,
            body,
        }) => CallOutcome::Response(Response {
            status,
            headers: headers
                .into_iter()
                .map(|(name, value)| (name, redactor.mask(&value)))
                .collect(),
            body: redactor.mask_bytes(&body),
        }),
        Ok(ExecuteResponse::Failed { code, message }) => failed(
            reason_of(code),
            format!("{code}: {}", redactor.mask(&message)),
        ),
        Err(DispatchError::NotDelivered(message)) => CallOutcome::NotDelivered {
            message: redactor.mask(&message),
        },
        Err(DispatchError::Lost(message)) => failed(
            reason::EXECUTOR_LOST,
            format!("executor_lost: {}", redactor.mask(&message)),
        ),
    }
}

fn reason_of(code: Code) -> &'static str {
    match code {
        Code::EgressDenied => reason::EGRESS_DENIED,
        Code::Dns => reason::DNS,
        Code::Connect => reason::CONNECT,
        Code::Tls => reason::TLS,
        Code::Timeout => reason::TIMED_OUT,
        Code::ResponseTooLarge => reason::RESPONSE_TOO_LARGE,
        Code::InvalidRequest => reason::INVALID_REQUEST,
        Code::Canceled => reason::CANCELED,
        Code::MockUnmatched => reason::MOCK_UNMATCHED,
    }
}
