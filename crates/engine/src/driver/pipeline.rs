//! The writes of one run: at most one in flight, each conditional on the last, and the rule for conflicts.

use std::time::Duration;

use jiff::Timestamp;

use super::input::{ReadAnswer, RunObject, WriteAnswer};
use super::output::WriteReason;
use crate::advance::finished;
use crate::graph::StepSet;
use crate::run::Run;

/// What is stored, what is being stored, and what has to be.
#[derive(Debug)]
pub(super) struct Pipeline {
    /// The last resourceVersion known.
    resource_version: String,
    /// The status as last confirmed; `None` while nothing was written.
    stored: Option<Run>,
    /// The finished steps of `stored`.
    stored_steps: StepSet,
    state: State,
    /// When the state in memory has to be stored, unless something makes it urgent before.
    due: Option<(Timestamp, WriteReason)>,
    /// Answers in a row that did not come.
    failures: u32,
}

#[derive(Debug)]
enum State {
    Idle,
    /// A write is with the adapter.
    Writing(Write),
    /// It may or may not have been stored; the same is tried again then.
    WriteLater(Write, Timestamp),
    /// After a conflict a read is with the adapter.
    Reading(Write),
    /// It had no answer; the same is tried again then.
    ReadLater(Write, Timestamp),
}

#[derive(Debug)]
struct Write {
    run: Run,
    reason: WriteReason,
}

/// What to ask of the adapter.
#[derive(Debug)]
pub(super) enum Ask {
    Write {
        resource_version: String,
        run: Box<Run>,
        reason: WriteReason,
    },
    Read,
}

/// What an answer means for the run.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// What was being written is stored.
    Stored,
    /// Nothing is settled yet; ask again, see [`Pipeline::ask`].
    Pending,
    /// The status is what we last wrote and only metadata moved; the state in memory has to be written again.
    Moved,
    /// Someone else wrote a status.
    AnotherOwner(Box<Option<Run>>),
    /// The run was deleted.
    Gone,
    /// What was being written will never be stored.
    Refused,
}

impl Pipeline {
    pub(super) fn new(resource_version: String, stored: Option<Run>) -> Self {
        let stored = not_empty(stored);
        Self {
            resource_version,
            stored_steps: stored.as_ref().map_or(0, finished),
            stored,
            state: State::Idle,
            due: None,
            failures: 0,
        }
    }

    /// The steps whose outcome is in the store.
    pub(super) fn stored_steps(&self) -> StepSet {
        self.stored_steps
    }

    /// Nothing was written yet, by anyone.
    pub(super) fn untouched(&self) -> bool {
        self.stored.is_none()
    }

    /// An answer of the adapter is awaited.
    pub(super) fn awaits_answer(&self) -> bool {
        matches!(self.state, State::Writing(_) | State::Reading(_))
    }

    /// A terminal state may be in the store already, its answer is missing.
    pub(super) fn ending(&self) -> bool {
        match &self.state {
            State::Idle => false,
            State::Writing(write)
            | State::WriteLater(write, _)
            | State::Reading(write)
            | State::ReadLater(write, _) => write.run.phase.is_terminal(),
        }
    }

    /// Asks for the state in memory to be stored by then. The earliest counts.
    pub(super) fn demand(&mut self, at: Timestamp, reason: WriteReason) {
        if self.due.is_none_or(|(due, _)| at < due) {
            self.due = Some((at, reason));
        }
    }

    /// When [`Pipeline::ask`] has something to ask though nothing else happens.
    pub(super) fn wake(&self) -> Option<Timestamp> {
        match &self.state {
            State::Idle => self.due.map(|(at, _)| at),
            State::Writing(_) | State::Reading(_) => None,
            State::WriteLater(_, at) | State::ReadLater(_, at) => Some(*at),
        }
    }

    /// Whether [`Pipeline::ask`] may have something to ask, `urgent` being why the state has to be stored at once.
    pub(super) fn is_due(&self, urgent: Option<WriteReason>, now: Timestamp) -> bool {
        match self.state {
            State::Idle => urgent.is_some() || self.due.is_some_and(|(at, _)| at <= now),
            State::Writing(_) | State::Reading(_) => false,
            State::WriteLater(_, at) | State::ReadLater(_, at) => at <= now,
        }
    }

    /// What to ask now, `run` being the state to store.
    pub(super) fn ask(
        &mut self,
        run: Run,
        urgent: Option<WriteReason>,
        now: Timestamp,
    ) -> Option<Ask> {
        if !self.is_due(urgent, now) {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => {
                let due = self.due.take().map(|(_, reason)| reason);
                let reason = urgent.or(due)?;
                (self.stored.as_ref() != Some(&run)).then(|| self.write(Write { run, reason }))
            }
            State::WriteLater(write, _) => Some(self.write(write)),
            State::ReadLater(write, _) | State::Reading(write) => {
                self.state = State::Reading(write);
                Some(Ask::Read)
            }
            State::Writing(write) => {
                self.state = State::Writing(write);
                None
            }
        }
    }

    fn write(&mut self, write: Write) -> Ask {
        let ask = Ask::Write {
            resource_version: self.resource_version.clone(),
            run: Box::new(write.run.clone()),
            reason: write.reason,
        };
        self.state = State::Writing(write);
        ask
    }

    /// Takes the answer to a write. `backoff` gives the delay after so many failures.
    pub(super) fn written(
        &mut self,
        answer: WriteAnswer,
        now: Timestamp,
        backoff: impl FnOnce(u32) -> Duration,
    ) -> Verdict {
        let write = match std::mem::replace(&mut self.state, State::Idle) {
            State::Writing(write) => write,
            other => {
                self.state = other;
                return Verdict::Pending;
            }
        };
        match answer {
            WriteAnswer::Stored { resource_version } => self.confirm(write.run, resource_version),
            WriteAnswer::Conflict => {
                self.failures = 0;
                self.state = State::ReadLater(write, now);
                Verdict::Pending
            }
            WriteAnswer::Gone => Verdict::Gone,
            WriteAnswer::Refused { message: _ } => Verdict::Refused,
            WriteAnswer::Unavailable => {
                self.failures = self.failures.saturating_add(1);
                self.state = State::WriteLater(write, now + backoff(self.failures));
                Verdict::Pending
            }
        }
    }

    /// Takes the answer to a read. `uid` is the run's.
    pub(super) fn read(
        &mut self,
        answer: ReadAnswer,
        uid: &str,
        now: Timestamp,
        backoff: impl FnOnce(u32) -> Duration,
    ) -> Verdict {
        let write = match std::mem::replace(&mut self.state, State::Idle) {
            State::Reading(write) => write,
            other => {
                self.state = other;
                return Verdict::Pending;
            }
        };
        let RunObject {
            spec,
            resource_version,
            status,
            ..
        } = match answer {
            ReadAnswer::Found(object) => object,
            ReadAnswer::Gone => return Verdict::Gone,
            ReadAnswer::Unavailable => {
                self.failures = self.failures.saturating_add(1);
                self.state = State::ReadLater(write, now + backoff(self.failures));
                return Verdict::Pending;
            }
        };
        if spec.uid != uid {
            return Verdict::Gone;
        }
        let status = not_empty(status);
        if status.as_ref() == Some(&write.run) {
            self.confirm(write.run, resource_version)
        } else if status == self.stored {
            self.failures = 0;
            self.resource_version = resource_version;
            self.demand(now, write.reason);
            Verdict::Moved
        } else {
            Verdict::AnotherOwner(Box::new(status))
        }
    }

    fn confirm(&mut self, run: Run, resource_version: String) -> Verdict {
        self.failures = 0;
        self.resource_version = resource_version;
        self.stored_steps = finished(&run);
        self.stored = Some(run);
        Verdict::Stored
    }

    /// The last confirmed status.
    pub(super) fn stored(&self) -> Option<&Run> {
        self.stored.as_ref()
    }
}

/// An empty status is none.
pub(super) fn not_empty(status: Option<Run>) -> Option<Run> {
    status.filter(|run| *run != Run::default())
}
