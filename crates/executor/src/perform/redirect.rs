//! Redirects, followed by hand: each hop goes through the guard like a call of its own, and carries no credential away.

use http::header::{AUTHORIZATION, COOKIE, HOST, LOCATION, PROXY_AUTHORIZATION};
use kubezap_step_protocol::{ExecuteRequest, ExecuteResponse};
use url::Url;
use zeroize::Zeroize as _;

use crate::failure::Failure;

pub(super) enum Next {
    /// `answer` is the call's.
    Done,
    /// The request now is the one to send next.
    Again,
}

/// Whether a status asks to go elsewhere. 300 and 304 do not: the first offers a choice, the second is about caches.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Turns `request` into the one that `answer` asks for, if it does and redirects are left. With none left, the redirect
/// itself is the call's answer.
pub(super) fn follow(
    request: &mut ExecuteRequest,
    from: &Url,
    answer: &ExecuteResponse,
) -> Result<Next, Failure> {
    let ExecuteResponse::Response {
        status, headers, ..
    } = answer
    else {
        return Ok(Next::Done);
    };
    let location = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(LOCATION.as_str()))
        .map(|(_, value)| value);
    let (true, Some(location)) = (request.max_redirects > 0 && is_redirect(*status), location)
    else {
        return Ok(Next::Done);
    };
    let to = from.join(location).map_err(|error| {
        Failure::invalid(format!(
            "{} redirects to something that is not a URL: {error}",
            from.host_str().unwrap_or_default()
        ))
    })?;
    request.max_redirects -= 1;
    if becomes_get(*status, &request.method) {
        "GET".clone_into(&mut request.method);
        drop_body(request);
    }
    if to.origin() != from.origin() {
        drop_credentials(request);
        drop_body(request);
    }
    request.url.zeroize();
    request.url = to.into();
    Ok(Next::Again)
}

/// RFC 9110, sections 15.4.2 to 15.4.4: 303 always asks for a look elsewhere; 301 and 302 turn POST into GET, as every
/// user agent does; 307 and 308 never change the method.
fn becomes_get(status: u16, method: &str) -> bool {
    match status {
        303 => method != "GET" && method != "HEAD",
        301 | 302 => method == "POST",
        _ => false,
    }
}

fn drop_body(request: &mut ExecuteRequest) {
    if let Some(mut body) = request.body.take() {
        body.zeroize();
    }
    request
        .headers
        .retain(|header| !starts_with_ignoring_case(&header.name, "content-"));
}

/// What proves who we are to one origin is nobody else's: headers made from Secrets, those that hold credentials by
/// definition, the client certificate, and a Host that was chosen for the old target.
fn drop_credentials(request: &mut ExecuteRequest) {
    request.headers.retain_mut(|header| {
        let dropped = header.sensitive
            || [AUTHORIZATION, COOKIE, HOST, PROXY_AUTHORIZATION]
                .iter()
                .any(|name| header.name.eq_ignore_ascii_case(name.as_str()))
            || CREDENTIALS
                .iter()
                .any(|name| header.name.eq_ignore_ascii_case(name));
        if dropped {
            header.value.zeroize();
        }
        !dropped
    });
    if let Some(mut certificate) = request.client_certificate.take() {
        certificate.key.zeroize();
    }
}

/// Credentials by custom, whether or not they came from a Secret.
const CREDENTIALS: [&str; 6] = [
    "x-api-key",
    "x-auth-token",
    "x-webhook-secret",
    "x-hub-signature",
    "x-hub-signature-256",
    "x-amz-security-token",
];

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
