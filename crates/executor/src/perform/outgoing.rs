//! Turns the request that was asked for into the one that is sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use kubezap_step_protocol::{ExecuteRequest, Header};
use percent_encoding::percent_decode_str;
use url::Url;
use zeroize::Zeroizing;

use crate::failure::Failure;

const OUR_NAME: &str = concat!("kubezap/", env!("CARGO_PKG_VERSION"));

/// Reads the request's URL; user information in it becomes a Basic credential, unless the step sends its own.
pub(super) fn url(request: &mut ExecuteRequest) -> Result<Url, Failure> {
    // The parser would drop tabs and line ends silently, and so call something else than was written.
    if request.url.chars().any(|c| c.is_ascii_control()) {
        return Err(Failure::invalid("the URL holds a control character"));
    }
    let mut url = Url::parse(&request.url)
        .map_err(|error| Failure::invalid(format!("the URL cannot be read: {error}")))?;
    url.set_fragment(None);
    if url.username().is_empty() && url.password().is_none() {
        return Ok(url);
    }
    let given = request
        .headers
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
    if !given {
        let mut pair = Zeroizing::new(Vec::new());
        pair.extend(percent_decode_str(url.username()));
        pair.push(b':');
        pair.extend(percent_decode_str(url.password().unwrap_or_default()));
        request.headers.push(Header {
            name: AUTHORIZATION.to_string(),
            value: format!("Basic {}", STANDARD.encode(&*pair)),
            sensitive: true,
        });
    }
    // Both fail only for URLs that cannot have user information.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(url)
}

/// Builds what is sent. Takes the body out of `request` when no redirect can need it again.
pub(super) fn build(
    request: &mut ExecuteRequest,
    url: &Url,
) -> Result<Request<Full<Bytes>>, Failure> {
    let method = Method::from_bytes(request.method.as_bytes())
        .ok()
        .filter(|method| *method != Method::CONNECT)
        .ok_or_else(|| Failure::invalid("the method is not one that can be sent"))?;
    let uri: Uri = url
        .as_str()
        .parse()
        .map_err(|_| Failure::invalid("the URL holds a character that HTTP does not allow"))?;
    let mut headers = headers(&request.headers)?;
    if !headers.contains_key(USER_AGENT) {
        headers.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
    }
    let body = if request.max_redirects == 0 {
        request.body.take()
    } else {
        request.body.clone()
    };
    if body.as_ref().is_none_or(Vec::is_empty)
        && [Method::POST, Method::PUT, Method::PATCH].contains(&method)
    {
        // RFC 9110, section 8.6; some servers answer 411 without it.
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let body = body.map_or_else(Bytes::new, |body| Bytes::from_owner(Zeroizing::new(body)));
    let mut outgoing = Request::new(Full::new(body));
    *outgoing.method_mut() = method;
    *outgoing.uri_mut() = uri;
    *outgoing.headers_mut() = headers;
    Ok(outgoing)
}

/// Headers as given, except those that belong to the connection and not to the message: these are ours to set.
fn headers(given: &[Header]) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::with_capacity(given.len() + 2);
    for Header {
        name,
        value,
        sensitive,
    } in given
    {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::invalid(format!("{name:?} is not a header name")))?;
        if of_the_connection(&parsed) {
            continue;
        }
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            Failure::invalid(format!(
                "the value of header {name:?} holds a character that HTTP does not allow, such as a line end"
            ))
        })?;
        // Keeps it out of HTTP/2's compression table as well as out of debug output.
        value.set_sensitive(*sensitive);
        if parsed == HOST {
            headers.insert(parsed, value);
        } else {
            headers.append(parsed, value);
        }
    }
    Ok(headers)
}

fn of_the_connection(name: &HeaderName) -> bool {
    [
        CONNECTION,
        CONTENT_LENGTH,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ]
    .contains(name)
        || ["keep-alive", "proxy-connection", "http2-settings"].contains(&name.as_str())
}
