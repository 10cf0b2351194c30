//! What of an event is never stored.

use crate::event::{Encoding, Event};

/// Stands where a value was.
pub const REDACTED: &str = "[REDACTED]";

/// Headers that are redacted whatever the Trigger says.
const ALWAYS: [&str; 10] = [
    "Authorization",
    "Proxy-Authorization",
    "Cookie",
    "Set-Cookie",
    "X-Api-Key",
    "X-Auth-Token",
    "X-Webhook-Secret",
    "X-Hub-Signature",
    "X-Hub-Signature-256",
    "X-Amz-Security-Token",
];

/// Puts [`REDACTED`] in the place of the values that must not be stored: headers that always carry credentials, headers
/// named in `names` (the one an auth check read, and `redactHeaders`), whatever their case, and with `body` the body.
pub fn redact<S: AsRef<str>>(mut event: Event, names: &[S], body: bool) -> Event {
    for (header, value) in &mut event.headers {
        let named = |name: &str| name.trim().eq_ignore_ascii_case(header);
        if ALWAYS.into_iter().any(named) || names.iter().any(|name| named(name.as_ref())) {
            REDACTED.clone_into(value);
        }
    }
    if body {
        REDACTED.clone_into(&mut event.body);
        event.body_encoding = Encoding::Utf8;
    }
    event
}
