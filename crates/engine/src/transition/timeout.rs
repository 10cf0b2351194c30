//! Time is up: of one call, or of the run.

use std::time::Duration;

use jiff::Timestamp;

use super::{Failed, Machine, after};
use crate::flow::{Action, StepIndex};
use crate::graph::members;
use crate::run::{RunPhase, reason};

impl Machine<'_> {
    /// When the run has to be over; `None` before anything of it begins.
    pub(super) fn run_deadline(&self) -> Option<Timestamp> {
        let start = self.live.run.start_time.filter(|_| self.live.begun)?;
        Some(after(start, self.flow.timeout))
    }

    /// Ends a run that took too long; whether it did.
    pub(super) fn run_timed_out(&mut self) -> bool {
        let is_over = self
            .run_deadline()
            .is_some_and(|deadline| deadline <= self.now);
        if is_over {
            let message = format!(
                "the run took longer than its timeout of {:?}",
                self.flow.timeout
            );
            self.end(RunPhase::Failed, reason::TIMED_OUT, message);
        }
        is_over
    }

    /// Aborts calls whose time is up; each is a failed attempt.
    pub(super) fn calls_timed_out(&mut self) {
        for step in members(self.unfinished()) {
            let call = self.live.memory[step].call.as_ref();
            if call
                .and_then(|call| call.deadline)
                .is_some_and(|deadline| deadline <= self.now)
            {
                self.abort_call(step);
                let message = format!("timeout: no answer within {:?}", self.call_timeout(step));
                self.attempt_failed(step, Failed::new(reason::TIMED_OUT, &message));
            }
        }
    }

    /// The smaller of the step's timeout and the call's own.
    pub(super) fn call_timeout(&self, index: StepIndex) -> Duration {
        let step = self.step(index);
        let own = match &step.action {
            Action::Http(action) => action.timeout,
            Action::Transform(_) | Action::Wait(_) => Duration::MAX,
        };
        step.timeout.map_or(own, |timeout| timeout.min(own))
    }
}
