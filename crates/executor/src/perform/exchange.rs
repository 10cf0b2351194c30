//! One request and its response, read under its limits as it arrives.

use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use kubezap_step_protocol::{ExecuteRequest, ExecuteResponse, Limits};
use url::Url;

use super::{outgoing, redirect};
use crate::connect::Connector;
use crate::egress::Target;
use crate::failure::Failure;

/// A body that nobody reads is taken in up to here, so that its connection can be used again.
const DRAINED: u64 = 64 * 1024;

/// ... and for this long: the answer is known already.
const DRAINED_FOR: Duration = Duration::from_millis(500);

pub(super) async fn exchange(
    client: &Client<Connector, Full<Bytes>>,
    request: &mut ExecuteRequest,
    url: &Url,
    target: &Target,
) -> Result<ExecuteResponse, Failure> {
    let outgoing = outgoing::build(request, url)?;
    let response = client
        .request(outgoing)
        .await
        .map_err(|error| Failure::of(target, &error))?;
    let (head, incoming) = response.into_parts();
    check_headers(
        target,
        head.headers
            .iter()
            .map(|(name, value)| (name.as_str().len(), value.len())),
        request.limits,
    )?;
    let status = head.status.as_u16();
    let followed = request.max_redirects > 0
        && redirect::is_redirect(status)
        && head.headers.contains_key(LOCATION);
    let body = if request.discard_body || followed {
        // What does not fit is left, which closes the connection.
        let _ = tokio::time::timeout(DRAINED_FOR, drain(incoming)).await;
        Vec::new()
    } else {
        read(incoming, target, request.limits.response_bytes).await?
    };
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    Ok(ExecuteResponse::Response {
        status,
        headers,
        body,
    })
}

/// Counts names and values as the head of HTTP/1.1 does, separators included.
pub(super) fn check_headers(
    target: &Target,
    headers: impl Iterator<Item = (usize, usize)>,
    limits: Limits,
) -> Result<(), Failure> {
    let bytes: usize = headers.map(|(name, value)| name + value + 4).sum();
    if bytes as u64 > limits.header_bytes {
        return Err(Failure::headers_too_large(target));
    }
    Ok(())
}

async fn read(mut incoming: Incoming, target: &Target, limit: u64) -> Result<Vec<u8>, Failure> {
    // What is announced too large need not be waited for.
    let announced = incoming.size_hint().lower();
    if announced > limit {
        return Err(Failure::body_too_large(target, limit));
    }
    let mut body = Vec::with_capacity(announced as usize);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| Failure::of(target, &error))?;
        if let Some(data) = frame.data_ref() {
            if (body.len() + data.len()) as u64 > limit {
                return Err(Failure::body_too_large(target, limit));
            }
            body.extend_from_slice(data);
        }
    }
    Ok(body)
}

async fn drain(mut incoming: Incoming) {
    if incoming.size_hint().lower() > DRAINED {
        return;
    }
    let mut drained = 0;
    while let Some(Ok(frame)) = incoming.frame().await {
        drained += frame.data_ref().map_or(0, |data| data.len() as u64);
        if drained > DRAINED {
            return;
        }
    }
}
