//! The trace a request belongs to: the sender's, when it sends a W3C `traceparent`, else a new one.

use http::HeaderMap;
use uuid::Uuid;

/// Trace context (W3C Trace Context, level 1) of the gateway's own span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// 32 hexadecimal digits.
    pub(crate) trace_id: String,
    /// 16 hexadecimal digits.
    pub(crate) span_id: String,
    sampled: bool,
}

impl Trace {
    /// Continues the sender's trace or begins one; `random` gives the ids that are needed.
    pub(crate) fn of(headers: &HeaderMap, random: [Uuid; 2]) -> Self {
        let [trace, span] = random;
        let span_id = hex::encode(&span.as_bytes()[..8]);
        let parent = headers
            .get("traceparent")
            .and_then(|value| value.to_str().ok())
            .and_then(parse);
        match parent {
            Some((trace_id, sampled)) => Self {
                trace_id: trace_id.to_owned(),
                span_id,
                sampled,
            },
            None => Self {
                trace_id: hex::encode(trace.as_bytes()),
                span_id,
                sampled: false,
            },
        }
    }

    /// The value of the annotation `kubezap.io/traceparent`.
    pub(crate) fn parent(&self) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{}-{}-{flags:02x}", self.trace_id, self.span_id)
    }
}

fn parse(text: &str) -> Option<(&str, bool)> {
    let mut fields = text.trim().split('-');
    let (version, trace, span, flags) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let digits = |field: &str, length: usize| {
        field.len() == length
            && field
                .bytes()
                .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
    };
    let zero = |field: &str| field.bytes().all(|c| c == b'0');
    let valid = digits(version, 2)
        && version != "ff"
        && (version != "00" || fields.next().is_none())
        && digits(trace, 32)
        && !zero(trace)
        && digits(span, 16)
        && !zero(span)
        && digits(flags, 2);
    let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
    valid.then_some((trace, sampled))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(traceparent: &str) -> Trace {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", traceparent.parse().unwrap());
        Trace::of(&headers, [Uuid::from_u128(1), Uuid::from_u128(2 << 64)])
    }

    #[test]
    fn the_senders_trace_is_continued_under_a_span_of_our_own() {
        let trace = of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(
            trace.parent(),
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000002-01"
        );
    }

    #[test]
    fn what_is_no_traceparent_begins_a_trace() {
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        ] {
            let trace = of(bad);
            assert_eq!(
                trace.parent(),
                "00-00000000000000000000000000000001-0000000000000002-00",
                "{bad}"
            );
        }
    }
}
