//! One alarm per run, and the earliest of them all.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::RunId;

/// Alarms of runs. Everything costs the logarithm of how many there are.
#[derive(Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeSet<(Timestamp, RunId)>,
    by_run: BTreeMap<RunId, Timestamp>,
}

impl Timers {
    /// Sets a run's alarm, or takes it away.
    pub(super) fn set(&mut self, run: RunId, at: Option<Timestamp>) {
        let before = match at {
            Some(at) => self.by_run.insert(run, at),
            None => self.by_run.remove(&run),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, run));
        }
        if let Some(at) = at {
            self.by_time.insert((at, run));
        }
    }

    /// Takes out a run whose alarm is due, the earliest first.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<RunId> {
        let &(at, run) = self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(run, None);
        Some(run)
    }

    /// When the next alarm goes off.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn due_alarms_come_in_order_and_once() {
        let mut timers = Timers::default();
        timers.set(1, Some(at(5)));
        timers.set(2, Some(at(3)));
        timers.set(3, Some(at(9)));
        timers.set(1, Some(at(2)));
        assert_eq!(timers.next(), Some(at(2)));
        assert_eq!(timers.take_due(at(4)), Some(1));
        assert_eq!(timers.take_due(at(4)), Some(2));
        assert_eq!(timers.take_due(at(4)), None);
        timers.set(3, None);
        assert_eq!(timers.next(), None);
    }
}
