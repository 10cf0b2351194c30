//! A wait begins, and ends at the instant that was stored, whenever that is noticed.

use std::time::Duration;

use jiff::Timestamp;

use super::{Machine, after};
use crate::advance::WriteNeed;
use crate::flow::StepIndex;
use crate::graph::members;
use crate::run::{StepPhase, reason};

impl Machine<'_> {
    pub(super) fn begin_wait(&mut self, step: StepIndex, duration: Duration) {
        self.begin();
        let now = self.now;
        let state = self.change(step);
        state.phase = StepPhase::Waiting;
        state.start_time = Some(now);
        state.attempts = 1;
        state.reason = reason::WAITING.to_owned();
        state.resume_after = Some(after(now, duration));
        self.need(WriteNeed::Now);
        // A wait of no time is over at once.
        if let Some(end) = self.wait_end(step).filter(|end| *end <= now) {
            self.end_wait(step, end);
        }
    }

    /// Ends the waits whose time has come within the run's time. A restart never lengthens one: it was over then.
    pub(super) fn end_waits(&mut self) {
        let until = self
            .run_deadline()
            .map_or(self.now, |deadline| deadline.min(self.now));
        for step in members(self.unfinished()) {
            if let Some(end) = self.wait_end(step).filter(|end| *end <= until) {
                self.end_wait(step, end);
            }
        }
    }

    fn end_wait(&mut self, step: StepIndex, end: Timestamp) {
        let in_time = self.state(step).resume_after == Some(end);
        if in_time {
            self.conclude(step, StepPhase::Succeeded, end);
            self.change(step).reason.clear();
            self.need(WriteNeed::Soon);
        } else {
            let timeout = self.step(step).timeout.unwrap_or_default();
            let message = format!("timeout: the wait is longer than the step's {timeout:?}");
            self.fail(step, reason::TIMED_OUT, &message);
            self.change(step).completion_time = Some(end);
            self.need(WriteNeed::Soon);
        }
    }

    /// When a wait that has begun is over: at its end, or when the step's time is up.
    pub(super) fn wait_end(&self, step: StepIndex) -> Option<Timestamp> {
        let state = self.state(step);
        let end = state
            .resume_after
            .filter(|_| state.phase == StepPhase::Waiting)?;
        let limit = state
            .start_time
            .zip(self.step(step).timeout)
            .map(|(start, timeout)| after(start, timeout));
        Some(limit.map_or(end, |limit| limit.min(end)))
    }
}
