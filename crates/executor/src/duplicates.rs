//! Remembers which executions were asked for, so that a request delivered twice is carried out once.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a finished execution is remembered.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// Finished executions kept, about 40 bytes each. At more than 1,600 calls a second for 5 minutes the oldest go early.
const MAX_FINISHED: usize = 500_000;

pub(crate) struct Duplicates {
    known: Mutex<Known>,
    /// Two keyed hashes make a fingerprint that a caller cannot aim at.
    keys: [RandomState; 2],
}

#[derive(Default)]
struct Known {
    /// By fingerprint, whether it is still in flight.
    in_flight: HashMap<u128, bool>,
    finished: VecDeque<(Instant, u128)>,
}

/// An execution in flight; from the moment it is dropped, one that has finished.
pub(crate) struct Claim<'a> {
    duplicates: &'a Duplicates,
    fingerprint: u128,
}

/// The execution was asked for before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicate {
    InFlight,
    Finished,
}

impl Duplicates {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            keys: [RandomState::new(), RandomState::new()],
        }
    }

    /// Claims `id`, once until 5 minutes after the claim is dropped.
    pub(crate) fn claim(&self, id: &str, now: Instant) -> Result<Claim<'_>, Duplicate> {
        let [low, high] = self.keys.each_ref().map(|key| u128::from(key.hash_one(id)));
        let fingerprint = high << 64 | low;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.forget(now);
        match known.in_flight.get(&fingerprint) {
            Some(true) => Err(Duplicate::InFlight),
            Some(false) => Err(Duplicate::Finished),
            None => {
                known.in_flight.insert(fingerprint, true);
                Ok(Claim {
                    duplicates: self,
                    fingerprint,
                })
            }
        }
    }
}

impl Known {
    fn forget(&mut self, now: Instant) {
        while let Some((at, fingerprint)) = self.finished.front() {
            if now.duration_since(*at) < REMEMBERED && self.finished.len() <= MAX_FINISHED {
                return;
            }
            self.in_flight.remove(fingerprint);
            self.finished.pop_front();
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut known = self
            .duplicates
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.in_flight.insert(self.fingerprint, false);
        known.finished.push_back((now, self.fingerprint));
        known.forget(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_in_flight_is_refused_whatever_its_age() {
        let duplicates = Duplicates::new();
        let start = Instant::now();
        let _claim = duplicates.claim("a", start).ok().unwrap();
        let again = duplicates.claim("a", start + 100 * REMEMBERED).err();
        assert_eq!(again, Some(Duplicate::InFlight));
        assert!(duplicates.claim("b", start).is_ok());
    }

    #[test]
    fn a_finished_execution_is_refused_for_five_minutes() {
        let duplicates = Duplicates::new();
        drop(duplicates.claim("a", Instant::now()).ok().unwrap());
        let end = Instant::now();
        let just_before = end + REMEMBERED - Duration::from_secs(1);
        assert_eq!(
            duplicates.claim("a", just_before).err(),
            Some(Duplicate::Finished)
        );
        assert!(duplicates.claim("a", end + REMEMBERED).is_ok());
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let duplicates = Duplicates::new();
        for number in 0..MAX_FINISHED + 10 {
            drop(duplicates.claim(&number.to_string(), Instant::now()));
        }
        let known = duplicates.known.lock().unwrap();
        assert_eq!(known.finished.len(), MAX_FINISHED);
        assert_eq!(known.in_flight.len(), MAX_FINISHED);
        drop(known);
        assert!(duplicates.claim("0", Instant::now()).is_ok());
        assert!(
            duplicates
                .claim(&(MAX_FINISHED + 9).to_string(), Instant::now())
                .is_err()
        );
    }
}
