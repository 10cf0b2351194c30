//! A step fails for good, and what that does to the run.

use super::{Machine, size};
use crate::advance::WriteNeed;
use crate::flow::{OnFailure, StepIndex};
use crate::graph::members;
use crate::run::{RunPhase, StepPhase, reason};

impl Machine<'_> {
    /// The step has its outcome: Failed, or Skipped where its author says that a failure counts as that.
    pub(super) fn fail(&mut self, step: StepIndex, reason: &str, message: &str) {
        let phase = match self.step(step).on_failure {
            OnFailure::Fail | OnFailure::Continue => StepPhase::Failed,
            OnFailure::Skip => StepPhase::Skipped,
        };
        self.conclude(step, phase, reason, message);
        self.need(WriteNeed::Soon);
    }

    /// Writes an outcome that is no success.
    pub(super) fn conclude(
        &mut self,
        step: StepIndex,
        phase: StepPhase,
        reason: &str,
        message: &str,
    ) {
        let now = self.now;
        self.live.memory[step].call = None;
        self.live.memory[step].redeliver_at = None;
        let room = size::message_room(&self.live.run, step);
        let state = self.change(step);
        state.phase = phase;
        state.start_time = state.start_time.or((state.attempts > 0).then_some(now));
        state.completion_time = Some(now);
        state.reason = reason.to_owned();
        state.message = size::cut(message, room);
        state.resume_after = None;
    }

    /// Nothing is in flight any more after a failure that nothing absorbs.
    pub(super) fn end_stopped(&mut self) {
        let Some(stopper) = self.stopper() else {
            return;
        };
        let message = format!(
            "step {} failed: {}",
            self.step(stopper).name,
            self.state(stopper).message
        );
        self.end(RunPhase::Failed, reason::STEP_FAILED, message);
    }

    /// Gives a step without outcome one, because the run ends: what never started was not reached, what waited or stood
    /// between two attempts keeps what is known of it.
    pub(super) fn give_up(&mut self, step: StepIndex) {
        let state = self.state(step);
        match (state.phase, state.resume_after) {
            (StepPhase::Running, Some(_)) => {
                let (why, message) = (state.reason.clone(), state.message.clone());
                self.conclude(step, StepPhase::Failed, &why, &message);
            }
            (StepPhase::Running, None) => self.conclude(
                step,
                StepPhase::Failed,
                reason::CANCELED,
                "the run ended while the call was out",
            ),
            (StepPhase::Waiting, _) => self.conclude(
                step,
                StepPhase::Skipped,
                reason::NOT_REACHED,
                "the run ended before the wait did",
            ),
            (StepPhase::Pending, _) => {
                self.conclude(step, StepPhase::Skipped, reason::NOT_REACHED, "")
            }
            (StepPhase::Succeeded | StepPhase::Failed | StepPhase::Skipped, _) => {}
        }
    }

    /// Closes the sockets of every call that is out; the steps keep their phase.
    pub(super) fn abort_calls(&mut self) {
        for step in members(self.calls_out()) {
            if let Some(call) = self.live.memory[step].call.take() {
                self.effects.push(crate::effect::Effect::Abort {
                    execution_id: call.execution_id,
                });
            }
        }
    }
}
