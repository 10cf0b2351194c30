//! Time is up: of one call, or of the run.

use jiff::Timestamp;

use super::Machine;
use crate::effect::Effect;
use crate::graph::members;
use crate::run::{RunPhase, StepPhase, reason};

impl Machine<'_> {
    /// When the run has to be over; `None` before it starts.
    pub(super) fn run_deadline(&self) -> Option<Timestamp> {
        self.live.run.start_time.map(|start| {
            start
                .checked_add(self.flow.timeout)
                .unwrap_or(Timestamp::MAX)
        })
    }

    /// Ends a run that took too long; whether it did.
    pub(super) fn run_timed_out(&mut self) -> bool {
        if self
            .run_deadline()
            .is_none_or(|deadline| self.now < deadline)
        {
            return false;
        }
        let out = self.calls_out();
        self.abort_calls();
        for step in members(out) {
            self.conclude(
                step,
                StepPhase::Failed,
                reason::TIMED_OUT,
                "the run's time was up while the call was out",
            );
        }
        let message = format!(
            "the run took longer than its timeout of {:?}",
            self.flow.timeout
        );
        self.end(RunPhase::Failed, reason::TIMED_OUT, message);
        true
    }

    /// Aborts calls whose time is up; each is a failed attempt.
    pub(super) fn calls_timed_out(&mut self) {
        for step in members(self.calls_out()) {
            let call = &mut self.live.memory[step].call;
            let Some(call) =
                call.take_if(|call| call.deadline.is_some_and(|deadline| deadline <= self.now))
            else {
                continue;
            };
            self.effects.push(Effect::Abort {
                execution_id: call.execution_id,
            });
            let message = format!("timeout: no answer within {:?}", self.call_timeout(step));
            self.attempt_failed(step, reason::TIMED_OUT, &message, None);
        }
    }
}
