//! How many requests one source address may make: a token bucket for each, in memory that does not grow.
//!
//! Buckets are cells of a fixed table, found by a keyed hash, so no sender can fill the memory or choose whose bucket it
//! shares. Two sources that fall into one cell share its budget.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CELLS: usize = 1 << 14;

/// Decides by the generic cell rate algorithm: a cell holds the instant at which its bucket is full again.
pub(crate) struct Limiter {
    start: Instant,
    hasher: RandomState,
    cells: Box<[AtomicU64]>,
    /// Nanoseconds that one request costs; 0 is no limit.
    cost: u64,
    /// Nanoseconds that a full bucket holds.
    burst: u64,
}

impl Limiter {
    /// Allows `rate` requests a second and twice that at once; 0 is no limit.
    pub(crate) fn new(rate: u32, start: Instant) -> Self {
        let cost = match rate {
            0 => 0,
            rate => 1_000_000_000 / u64::from(rate),
        };
        Self {
            start,
            hasher: RandomState::new(),
            cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(),
            cost,
            burst: cost * 2 * u64::from(rate),
        }
    }

    /// Takes one token of the source's bucket; an empty one answers how long until the next.
    pub(crate) fn take(&self, source: IpAddr, now: Instant) -> Result<(), Duration> {
        if self.cost == 0 {
            return Ok(());
        }
        let slot = self.hasher.hash_one(subnet(source)) as usize % CELLS;
        let now = u64::try_from(now.saturating_duration_since(self.start).as_nanos())
            .unwrap_or(u64::MAX / 2);
        let mut wait = 0;
        let taken =
            self.cells[slot].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
                let next = full_at.max(now) + self.cost;
                wait = (next - now).saturating_sub(self.burst);
                (wait == 0).then_some(next)
            });
        match taken {
            Ok(_) => Ok(()),
            Err(_) => Err(Duration::from_nanos(wait)),
        }
    }
}

/// A site that has IPv6 has a whole /64, and could take another address for each request.
fn subnet(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_source_has_twice_its_rate_at_once_and_then_its_rate() {
        let start = Instant::now();
        let limiter = Limiter::new(10, start);
        for _ in 0..20 {
            limiter.take(ip("192.0.2.1"), start).unwrap();
        }
        let wait = limiter.take(ip("192.0.2.1"), start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        limiter.take(ip("192.0.2.1"), start + wait).unwrap();
        limiter.take(ip("192.0.2.1"), start + wait).unwrap_err();
    }

    #[test]
    fn another_source_has_a_bucket_of_its_own() {
        let start = Instant::now();
        let limiter = Limiter::new(1, start);
        limiter.take(ip("192.0.2.1"), start).unwrap();
        limiter.take(ip("192.0.2.1"), start).unwrap();
        limiter.take(ip("192.0.2.1"), start).unwrap_err();
        // One in 16384 shares the cell; of two, hardly both do.
        assert!(
            ["192.0.2.2", "192.0.2.3"]
                .iter()
                .any(|other| limiter.take(ip(other), start).is_ok())
        );
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_a_bucket() {
        assert_eq!(subnet(ip("2001:db8::1")), subnet(ip("2001:db8::ffff:2")));
        assert_ne!(subnet(ip("2001:db8::1")), subnet(ip("2001:db8:0:1::1")));
        assert_eq!(subnet(ip("::ffff:192.0.2.1")), ip("192.0.2.1"));
    }

    #[test]
    fn a_rate_of_zero_is_no_limit() {
        let start = Instant::now();
        let limiter = Limiter::new(0, start);
        for _ in 0..10_000 {
            limiter.take(ip("192.0.2.1"), start).unwrap();
        }
    }
}
