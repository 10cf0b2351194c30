//! The transitions of a run, a file each, over one [`Machine`] that lives for one advance.

mod cancel;
mod fail;
mod params;
mod retry;
pub(crate) mod size;
mod skip;
mod start;
mod succeed;
mod timeout;
mod view;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::advance::{Advance, LiveRun, WriteNeed};
use crate::effect::Effect;
use crate::flow::{Flow, OnFailure, Step, StepIndex};
use crate::graph::{StepSet, all, members, single};
use crate::observation::{CallOutcome, Observation};
use crate::run::{RunPhase, RunSpec, StepPhase, StepResult, StepState, reason};
use retry::Failed;

/// One advance under way.
pub(crate) struct Machine<'a> {
    flow: &'a Arc<Flow>,
    spec: &'a RunSpec,
    live: &'a mut LiveRun,
    now: Timestamp,
    effects: Vec<Effect>,
    write: WriteNeed,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(
        flow: &'a Arc<Flow>,
        spec: &'a RunSpec,
        live: &'a mut LiveRun,
        now: Timestamp,
    ) -> Self {
        Self {
            flow,
            spec,
            live,
            now,
            effects: Vec::new(),
            write: WriteNeed::None,
        }
    }

    /// Takes in what was seen, without starting anything new.
    pub(crate) fn observe(&mut self, observation: &Observation) {
        if self.is_over() {
            return;
        }
        match observation {
            Observation::CancelRequested => self.live.cancel = true,
            Observation::ReferencesRead { step, result } => self.references_read(*step, result),
            Observation::CallStarted { execution_id } => {
                if let Some(step) = self.step_of_call(execution_id) {
                    self.call_left(step);
                }
            }
            Observation::CallFinished {
                execution_id,
                outcome,
            } => {
                let Some(step) = self.step_of_call(execution_id) else {
                    return;
                };
                self.live.memory[step].call = None;
                match outcome {
                    CallOutcome::Response(response) => self.response(step, response),
                    CallOutcome::Failed(failure) => {
                        self.attempt_failed(step, Failed::new(failure.reason, &failure.message));
                    }
                    CallOutcome::NotDelivered { message } => self.not_delivered(step, message),
                }
            }
        }
    }

    /// Carries on until nothing more can happen at this instant.
    pub(crate) fn settle(&mut self) {
        if self.is_over() {
            return;
        }
        if self.live.cancel {
            return self.cancel();
        }
        self.end_waits();
        if self.unfinished() != 0 && self.run_timed_out() {
            return;
        }
        self.calls_timed_out();
        if !self.resolve_params() {
            return;
        }
        // Each round finishes at least one step, so this ends.
        while !self.live.stopping && self.round() {}
        if self.live.stopping {
            self.stop();
        } else if self.unfinished() == 0 {
            self.end(RunPhase::Succeeded, reason::COMPLETED, String::new());
        }
    }

    /// One look at every step; whether a step has finished in it, so that others may start.
    fn round(&mut self) -> bool {
        let before = self.live.finished;
        for step in members(self.unfinished()) {
            match self.state(step).phase {
                StepPhase::Pending
                    if self.flow.graph.dependencies[step] & !self.live.finished == 0 =>
                {
                    self.start(step)
                }
                StepPhase::Running => self.resume_call(step),
                StepPhase::Pending
                | StepPhase::Waiting
                | StepPhase::Succeeded
                | StepPhase::Failed
                | StepPhase::Skipped => {}
            }
            if self.live.stopping {
                break;
            }
        }
        self.live.finished != before
    }

    /// Ends the run. Calls that are out are aborted, and steps that have no outcome get one.
    fn end(&mut self, phase: RunPhase, reason: &'static str, message: String) {
        for step in members(self.unfinished()) {
            self.abort_call(step);
            self.give_up(step, phase, reason);
        }
        let run = &mut self.live.run;
        run.phase = phase;
        run.reason = reason.to_owned();
        run.message = size::cut(&message, size::MAX_MESSAGE_BYTES, usize::MAX);
        run.start_time = run.start_time.or(Some(self.now));
        run.completion_time = Some(self.now);
        self.write = WriteNeed::Now;
    }

    /// What is left to do, and when to look again.
    pub(crate) fn finish(self) -> Advance {
        let wake = if self.is_over() { None } else { self.wake() };
        Advance {
            effects: self.effects,
            wake,
            write: self.write,
        }
    }

    fn wake(&self) -> Option<Timestamp> {
        let times = members(self.unfinished()).flat_map(|step| {
            let memory = &self.live.memory[step];
            let deadline = memory.call.as_ref().and_then(|call| call.deadline);
            let attempt = self.next_attempt(step).filter(|_| !self.live.stopping);
            [deadline, self.wait_end(step), attempt]
        });
        times.flatten().chain(self.run_deadline()).min()
    }

    fn need(&mut self, write: WriteNeed) {
        self.write = self.write.max(write);
    }

    fn step(&self, step: StepIndex) -> &'a Step {
        &self.flow.steps[step]
    }

    fn state(&self, step: StepIndex) -> &StepState {
        &self.live.run.steps[step]
    }

    /// Gives access to a step's state. Outcomes, messages and results have setters of their own.
    fn change(&mut self, step: StepIndex) -> &mut StepState {
        &mut self.live.run.steps[step]
    }

    /// Sets the message, cut to the room there is.
    fn set_message(&mut self, step: StepIndex, message: &str) {
        let message = self.live.cut_message(step, message);
        self.live.memory[step].size.message(&message);
        self.change(step).message = message;
    }

    fn set_results(&mut self, step: StepIndex, results: Vec<StepResult>) {
        self.live.memory[step].size.results(&results);
        self.change(step).results = results;
    }

    /// Gives a step its outcome.
    fn conclude(&mut self, step: StepIndex, phase: StepPhase, at: Timestamp) {
        let state = self.change(step);
        state.phase = phase;
        state.completion_time = Some(at);
        state.resume_after = None;
        self.live.finished |= single(step);
        self.live.stopping |=
            phase == StepPhase::Failed && self.step(step).on_failure == OnFailure::Fail;
    }

    /// Something begins: the run is under way, and its time runs.
    fn begin(&mut self) {
        self.show_running();
        if !std::mem::replace(&mut self.live.begun, true) {
            self.live.run.start_time = Some(self.now);
        }
    }

    /// Shows the run as under way. A run that was stored while it waited for its turn says so until now.
    fn show_running(&mut self) {
        let run = &mut self.live.run;
        if run.phase == RunPhase::Pending {
            run.phase = RunPhase::Running;
            run.reason.clear();
            run.message.clear();
        }
        run.start_time = run.start_time.or(Some(self.now));
    }

    fn is_over(&self) -> bool {
        self.live.run.phase.is_terminal()
    }

    fn unfinished(&self) -> StepSet {
        all(self.flow.steps.len()) & !self.live.finished
    }

    fn step_of_call(&self, execution_id: &str) -> Option<StepIndex> {
        let matches = |call: &crate::advance::CallMemory| call.execution_id == execution_id;
        self.live
            .memory
            .iter()
            .position(|memory| memory.call.as_ref().is_some_and(matches))
    }
}

/// An instant; at the end of time at the latest.
fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
