//! From a request that was let in to a FlowRun that is stored.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use kubezap_api::flow_run::FlowRun;
use kubezap_api::lower;
use kubezap_api::metadata::{ANNOTATION_EVENT_HASH, ANNOTATION_TRACEPARENT};
use kubezap_engine::event::{Encoding, Event, Source};
use kubezap_engine::trigger::{Existing, RunRequest, redact, resolve_existing};
use tokio::time::Instant;
use uuid::Uuid;

use super::authenticate;
use super::route::Route;
use super::trace::Trace;

/// How often the create of one event is tried, under whatever name.
const ATTEMPTS: u32 = 4;
/// The pause before the second try; doubled before each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Why no FlowRun is known to be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdmitError {
    /// The API server finds the object too large.
    #[error("the API server refuses the FlowRun as too large: {message}")]
    TooLarge { message: String },
    /// The API server finds the object invalid.
    #[error("the API server refuses the FlowRun: {message}")]
    Invalid { message: String },
    /// It cannot be asked, does not answer, has too much to do, or does not allow it. Trying again may help.
    #[error("the FlowRun cannot be stored: {message}")]
    Unavailable {
        message: String,
        retry_after: Duration,
    },
}

/// Makes the event that is stored: names in canonical form, a binary body as base64, what is sensitive redacted.
pub(crate) fn event(route: &Route, head: &Parts, body: Bytes) -> Event {
    let (body, body_encoding) = match String::from_utf8(Vec::from(body)) {
        Ok(text) => (text, Encoding::Utf8),
        Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
    };
    let mut event = Event {
        source: Source::Webhook,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        body,
        body_encoding,
        ..Event::default()
    };
    for name in head.headers.keys() {
        // These two belong to the connection; what was written for kubezap-operator never saw them.
        if name == HOST || name == TRANSFER_ENCODING {
            continue;
        }
        let values: Vec<_> = head
            .headers
            .get_all(name)
            .iter()
            .map(|value| text(value.as_bytes()))
            .collect();
        event
            .headers
            .insert(canonical(name.as_str()), values.join(", "));
    }
    if let Some(content_type) = head.headers.get(CONTENT_TYPE) {
        event.content_type = text(content_type.as_bytes());
    }
    let mut sensitive: Vec<&str> = route.redact_headers.iter().map(String::as_str).collect();
    sensitive.extend(authenticate::header(&route.auth).map(http::HeaderName::as_str));
    redact(event, &sensitive, route.redact_body)
}

/// Header text is UTF-8 as a rule and ISO 8859-1 by old usage (RFC 9110, section 5.5).
fn text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// `x-github-event` to `X-Github-Event`.
fn canonical(name: &str) -> String {
    let mut start = true;
    name.chars()
        .map(|c| {
            let shown = if start {
                c.to_ascii_uppercase()
            } else {
                c.to_ascii_lowercase()
            };
            start = c == '-';
            shown
        })
        .collect()
}

/// Makes the end of a run's name of a version 7 UUID: 18 characters of base 32 that sort by time, and hold 48 bits of it
/// in milliseconds and 42 bits that tell the events of a millisecond apart.
pub fn time_ordered_id(uuid: Uuid) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let bits = uuid.as_u128();
    // Without the four bits of the version and the two of the variant, which are the same in all.
    let time = bits >> 80;
    let a = bits >> 64 & 0xfff;
    let b = bits >> 32 & 0x3fff_ffff;
    let number = time << 42 | a << 30 | b;
    (0..18)
        .rev()
        .map(|digit| char::from(DIGITS[(number >> (digit * 5) & 31) as usize]))
        .collect()
}

/// Stores the FlowRun of a request and gives its name, or says that it is not known to be stored.
///
/// A create whose answer got lost is repeated under the same name until `deadline`: the event's hash tells whether the run
/// that then exists is the same, so that one event makes one run. Nothing that the API server refuses is repeated.
pub(crate) async fn store(
    client: &Client,
    route: &Route,
    mut request: RunRequest,
    trace: &Trace,
    deadline: Instant,
) -> Result<String, AdmitError> {
    request
        .annotations
        .insert(ANNOTATION_TRACEPARENT.to_owned(), trace.parent());
    let runs: Api<FlowRun> = Api::namespaced(client.clone(), &route.namespace);
    let parameters = PostParams::default();
    let mut run = lower::flow_run(&request, &route.object);
    let mut names = 1;
    let mut last = AdmitError::Unavailable {
        message: "the API server did not answer in time".to_owned(),
        retry_after: RETRY_AFTER,
    };
    for attempt in 0..ATTEMPTS {
        if attempt > 0 && names == 1 {
            let pause = PAUSE * 2u32.pow(attempt - 1);
            if Instant::now() + pause >= deadline {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        let create = runs.create(&parameters, &run);
        match tokio::time::timeout_at(deadline, create).await {
            Ok(Ok(stored)) => return Ok(stored.name_any()),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                let exists = existing_hash(&runs, &run.name_any(), deadline).await?;
                names += 1;
                match resolve_existing(&request, exists.as_deref(), names) {
                    Existing::Same => return Ok(run.name_any()),
                    Existing::Next(name) => run.metadata.name = Some(name),
                }
            }
            Ok(Err(kube::Error::Api(status))) => match verdict(&status) {
                Verdict::Refused(error) => return Err(error),
                Verdict::MayBeStored(error) => last = error,
            },
            // No answer: the create may have been stored.
            Ok(Err(error)) => {
                last = AdmitError::Unavailable {
                    message: error.to_string(),
                    retry_after: RETRY_AFTER,
                };
            }
            Err(_) => break,
        }
    }
    Err(last)
}

/// What a sender is told to wait when the API server does not say.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

enum Verdict {
    /// Not stored, and the same create would be refused again, or must not be repeated now.
    Refused(AdmitError),
    /// The answer does not tell.
    MayBeStored(AdmitError),
}

fn verdict(status: &kube::core::Status) -> Verdict {
    let message = status.message.clone();
    let asked = status
        .details
        .as_ref()
        .map(|details| details.retry_after_seconds)
        .filter(|&seconds| seconds > 0);
    let retry_after = asked.map_or(RETRY_AFTER, |seconds| {
        Duration::from_secs(u64::from(seconds.min(60)))
    });
    let unavailable = AdmitError::Unavailable {
        message: message.clone(),
        retry_after,
    };
    match status.code {
        413 => Verdict::Refused(AdmitError::TooLarge { message }),
        400 | 415 | 422 => Verdict::Refused(AdmitError::Invalid { message }),
        // etcd's own limit comes as a 500, and would come again.
        500 if message.contains("request is too large") => {
            Verdict::Refused(AdmitError::TooLarge { message })
        }
        500 | 502 | 504 => Verdict::MayBeStored(unavailable),
        // 429 and 503: shed before it was stored. 401, 403 (a quota, rights, a namespace that ends), 404: for an operator to
        // mend, after which the sender's next try succeeds.
        _ => Verdict::Refused(unavailable),
    }
}

async fn existing_hash(
    runs: &Api<FlowRun>,
    name: &str,
    deadline: Instant,
) -> Result<Option<String>, AdmitError> {
    let unavailable = |message: String| AdmitError::Unavailable {
        message,
        retry_after: RETRY_AFTER,
    };
    match tokio::time::timeout_at(deadline, runs.get_metadata_opt(name)).await {
        Ok(Ok(existing)) => {
            Ok(existing.and_then(|run| run.annotations().get(ANNOTATION_EVENT_HASH).cloned()))
        }
        Ok(Err(error)) => Err(unavailable(error.to_string())),
        Err(_) => Err(unavailable(
            "the API server did not answer in time".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_names_are_canonical() {
        for (name, expected) in [
            ("x-github-event", "X-Github-Event"),
            ("content-type", "Content-Type"),
            ("etag", "Etag"),
            ("x--a", "X--A"),
        ] {
            assert_eq!(canonical(name), expected);
        }
    }

    #[test]
    fn ids_are_short_lower_case_and_sort_by_time() {
        let at = |millis: u64, rest: u128| {
            time_ordered_id(Uuid::from_u128(
                u128::from(millis) << 80 | 7 << 76 | 2 << 62 | rest,
            ))
        };
        let id = at(0x018f_0000_0000, 0);
        assert_eq!(id.len(), 18);
        assert!(
            id.bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        );
        assert!(at(1_000, 0x3fff_ffff_0000_0000) < at(1_001, 0));
        assert!(at(1 << 47, 0) > at((1 << 47) - 1, 0));
        assert_ne!(at(1_000, 1 << 32), at(1_000, 2 << 32));
        let mut ids: Vec<_> = (0..1_000)
            .map(|_| time_ordered_id(Uuid::now_v7()))
            .collect();
        let made = ids.clone();
        ids.sort();
        ids.dedup();
        assert_eq!(ids, made);
    }
}
