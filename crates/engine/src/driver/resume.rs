//! Runs found under way are taken up oldest first, at a bounded rate.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::RunId;

/// Turns that were not used are kept for this long.
const SLACK: Duration = Duration::from_millis(100);

/// Runs that wait to be taken up.
#[derive(Debug)]
pub(super) struct Resume {
    waiting: BTreeSet<(Timestamp, RunId)>,
    interval: Duration,
    next: Timestamp,
}

impl Resume {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            waiting: BTreeSet::new(),
            interval: Duration::from_secs(1) / per_second.max(1),
            next: Timestamp::MIN,
        }
    }

    /// Lets a run wait. The first to wait is not taken at once: the list it came from may bring an older one.
    pub(super) fn push(&mut self, created: Timestamp, run: RunId, now: Timestamp) {
        if self.waiting.is_empty() {
            self.next = self.next.max(now + self.interval);
        }
        self.waiting.insert((created, run));
    }

    pub(super) fn remove(&mut self, created: Timestamp, run: RunId) {
        self.waiting.remove(&(created, run));
    }

    /// Takes out the oldest run if its turn has come.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<RunId> {
        if self.next > now {
            return None;
        }
        let (_, run) = self.waiting.pop_first()?;
        self.next = self.next.max(now - SLACK) + self.interval;
        Some(run)
    }

    /// When the next turn comes.
    pub(super) fn next(&self) -> Option<Timestamp> {
        (!self.waiting.is_empty()).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn oldest_first_at_the_rate() {
        let mut resume = Resume::new(10);
        for (age, run) in [(30, 1), (10, 2), (20, 3)] {
            resume.push(at(age), run, at(1000));
        }
        assert_eq!(resume.take_due(at(1000)), None);
        assert_eq!(resume.next(), Some(at(1100)));
        assert_eq!(resume.take_due(at(1100)), Some(2));
        assert_eq!(resume.take_due(at(1100)), None);
        resume.remove(at(20), 3);
        assert_eq!(resume.take_due(at(1200)), Some(1));
        assert_eq!(resume.next(), None);
    }

    #[test]
    fn a_late_tick_catches_up_a_little_and_no_more() {
        let mut resume = Resume::new(100);
        for run in 0..100 {
            resume.push(at(run as i64), run, at(0));
        }
        let taken = std::iter::from_fn(|| resume.take_due(at(5_000))).count();
        assert_eq!(taken, 11);
    }
}
