//! A wait begins, and ends at the instant that was stored, whenever that is noticed.

use std::time::Duration;

use jiff::Timestamp;

use super::Machine;
use crate::advance::WriteNeed;
use crate::flow::StepIndex;
use crate::run::{StepPhase, reason};

impl Machine<'_> {
    pub(super) fn begin_wait(&mut self, step: StepIndex, duration: Duration) {
        let now = self.now;
        let state = self.change(step);
        state.phase = StepPhase::Waiting;
        state.start_time = Some(now);
        state.attempts = 1;
        state.reason = reason::WAITING.to_owned();
        state.resume_after = Some(now.checked_add(duration).unwrap_or(Timestamp::MAX));
        self.need(WriteNeed::Now);
    }

    /// A restart never lengthens a wait: it was over at `resumeAfter`.
    pub(super) fn end_wait(&mut self, step: StepIndex) {
        let Some(resume_after) = self
            .state(step)
            .resume_after
            .filter(|resume_after| *resume_after <= self.now)
        else {
            return;
        };
        let state = self.change(step);
        state.phase = StepPhase::Succeeded;
        state.completion_time = Some(resume_after);
        state.resume_after = None;
        state.reason.clear();
        self.need(WriteNeed::Soon);
    }
}
