//! The trace context that a call carries (W3C Trace Context, version 00).

use rand::RngExt as _;

/// Makes the `traceparent` of a call: a child of the run's, or of a trace of the run's own.
pub(super) fn child(parent: Option<&str>, run_uid: &str) -> String {
    let (trace, flags) = parent
        .and_then(read)
        .unwrap_or_else(|| (own(run_uid), "00"));
    let span = rand::rng().random_range(1..=u64::MAX);
    format!("00-{trace}-{span:016x}-{flags}")
}

fn read(parent: &str) -> Option<(String, &str)> {
    let mut parts = parent.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let valid = version.len() == 2
        && version != "ff"
        && is_id(trace, 32)
        && is_id(span, 16)
        && flags.len() == 2
        && is_hex(flags);
    valid.then(|| (trace.to_owned(), flags))
}

/// A uid is a UUID: as many digits as a trace has, and never all zero.
fn own(run_uid: &str) -> String {
    let digits: String = run_uid.chars().filter(|c| *c != '-').collect();
    if is_id(&digits, 32) {
        digits
    } else {
        format!("{:032x}", rand::rng().random_range(1..=u128::MAX))
    }
}

fn is_id(text: &str, digits: usize) -> bool {
    text.len() == digits && is_hex(text) && text.bytes().any(|b| b != b'0')
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    #[test]
    fn a_call_is_a_child_of_the_runs_trace() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let call = child(Some(parent), UID);
        assert!(
            call.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"),
            "{call}"
        );
        assert!(call.ends_with("-01"), "{call}");
        assert!(!call.contains("00f067aa0ba902b7"), "{call}");
        assert!(read(&call).is_some(), "{call}");
    }

    #[test]
    fn a_run_without_a_usable_trace_has_its_own() {
        for parent in [None, Some("what"), Some("00-0-0-00")] {
            let call = child(parent, UID);
            assert!(
                call.starts_with("00-0f8fad5bd9cb469fa16570867728950e-"),
                "{call}"
            );
            assert!(read(&call).is_some(), "{call}");
        }
    }
}
