//! How long to wait before asking the store again.

use std::time::Duration;

use sha2::{Digest, Sha256};

const FIRST: Duration = Duration::from_millis(100);
const LAST: Duration = Duration::from_secs(5);

/// The delay after `failures` answers that did not come, the first being 1: 100 ms, doubling up to 5 s, of which up to
/// the half is taken off. What is taken off depends on the incarnation and the run, so that runs which failed together
/// do not come back together and a simulation can be repeated.
pub(super) fn backoff(incarnation: &str, uid: &str, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let most = FIRST.saturating_mul(1 << doublings).min(LAST);
    let mut hasher = Sha256::new();
    hasher.update(incarnation);
    hasher.update("/");
    hasher.update(uid);
    hasher.update(failures.to_be_bytes());
    let digest = hasher.finalize();
    let share = u32::from(u16::from_be_bytes([digest[0], digest[1]]));
    let half = most / 2;
    half + half * share / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_five_seconds_and_stays() {
        for failures in 1..40 {
            let most = Duration::from_millis(100 * 2u64.pow(failures.min(10) - 1)).min(LAST);
            let delay = backoff("a", "uid", failures);
            assert!(delay <= most && delay >= most / 2, "{failures}: {delay:?}");
        }
        assert!(backoff("a", "uid", u32::MAX) >= LAST / 2);
    }

    #[test]
    fn runs_do_not_come_back_together() {
        let delays: std::collections::BTreeSet<_> =
            (0..100).map(|n| backoff("a", &n.to_string(), 8)).collect();
        assert!(delays.len() > 90);
        assert_eq!(backoff("a", "1", 3), backoff("a", "1", 3));
    }
}
