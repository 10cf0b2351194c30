//! A step fails for good, and what that does to the run.

use super::Machine;
use crate::advance::WriteNeed;
use crate::effect::Effect;
use crate::flow::{OnFailure, StepIndex};
use crate::graph::members;
use crate::run::{RunPhase, StepPhase, reason};

impl Machine<'_> {
    /// The step has its outcome: Failed, or Skipped where its author says that a failure counts as that.
    pub(super) fn fail(&mut self, step: StepIndex, why: &'static str, message: &str) {
        let phase = match self.step(step).on_failure {
            OnFailure::Fail | OnFailure::Continue => StepPhase::Failed,
            OnFailure::Skip => StepPhase::Skipped,
        };
        if phase == StepPhase::Skipped {
            self.set_results(step, Vec::new());
        }
        self.conclude_because(step, phase, why, message);
        if !self.live.is_recomputable(self.flow, step) {
            self.need(WriteNeed::Soon);
        }
    }

    /// Writes an outcome that is no success.
    pub(super) fn conclude_because(
        &mut self,
        step: StepIndex,
        phase: StepPhase,
        why: &'static str,
        message: &str,
    ) {
        self.conclude(step, phase, self.now);
        self.set_message(step, message);
        self.change(step).reason = why.to_owned();
    }

    /// After a failure that nothing absorbs: what is in flight finishes, what has not left never does, and when nothing
    /// is in flight the run ends.
    pub(super) fn stop(&mut self) {
        let mut in_flight = false;
        for step in members(self.unfinished()) {
            if self.live.memory[step].unsent {
                self.abort_call(step);
            }
            in_flight |= self.live.memory[step].call.is_some();
        }
        if in_flight {
            return;
        }
        let steps = self.live.run.steps.iter().zip(&self.flow.steps);
        let message = steps
            .filter(|(state, step)| {
                state.phase == StepPhase::Failed && step.on_failure == OnFailure::Fail
            })
            .map(|(state, _)| state)
            .min_by_key(|state| state.completion_time)
            .map(|state| format!("step {} failed: {}", state.name, state.message));
        self.end(
            RunPhase::Failed,
            reason::STEP_FAILED,
            message.unwrap_or_default(),
        );
    }

    /// Gives a step without outcome one, because the run ends as `phase` for the reason `why`: what never started was
    /// not reached; what was in flight or between two attempts has failed.
    pub(super) fn give_up(&mut self, step: StepIndex, phase: RunPhase, why: &'static str) {
        let unsent = std::mem::take(&mut self.live.memory[step].unsent);
        let state = self.change(step);
        let in_flight =
            state.phase == StepPhase::Running && state.resume_after.is_none() && !unsent;
        if unsent {
            state.attempts = state.attempts.saturating_sub(1);
            state.execution_id = None;
        }
        if state.attempts == 0 {
            state.start_time = None;
        }
        if state.phase == StepPhase::Waiting {
            let message = "the run ended before the wait did";
            return self.conclude_because(step, StepPhase::Skipped, reason::NOT_REACHED, message);
        }
        if state.attempts == 0 {
            return self.conclude_because(step, StepPhase::Skipped, reason::NOT_REACHED, "");
        }
        let (why, message) = if in_flight {
            match (phase, why) {
                (RunPhase::Cancelled, _) => (
                    reason::CANCELED,
                    "the run was cancelled while the call was out",
                ),
                (_, reason::TIMED_OUT) => (
                    reason::TIMED_OUT,
                    "timeout: the run's time was up while the call was out",
                ),
                _ => (reason::CANCELED, "the run ended while the call was out"),
            }
        } else {
            let why = self.live.memory[step].last_failure;
            let message = match self.state(step).message.as_str() {
                "" => "the run ended before another attempt",
                message => message,
            };
            (why.unwrap_or(reason::CANCELED), message)
        };
        let message = message.to_owned();
        self.conclude_because(step, StepPhase::Failed, why, &message);
    }

    /// Takes a call back, or closes its socket; the step keeps its phase.
    pub(super) fn abort_call(&mut self, step: StepIndex) {
        if let Some(call) = self.live.memory[step].call.take() {
            self.effects.push(Effect::Abort {
                execution_id: call.execution_id,
            });
        }
    }
}
