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
mod wait;

use std::sync::Arc;

use jiff::Timestamp;

use crate::advance::{Advance, LiveRun, WriteNeed, in_phase};
use crate::effect::Effect;
use crate::expression::{Scope, StepView};
use crate::flow::{Flow, OnFailure, Step, StepIndex};
use crate::graph::{StepSet, members, single};
use crate::observation::{CallOutcome, Observation};
use crate::run::{RunPhase, RunSpec, StepPhase, StepState, reason};

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
        match observation {
            Observation::CancelRequested => self.live.cancel = true,
            Observation::ReferencesRead { step, result } => self.references_read(*step, result),
            Observation::CallStarted { execution_id } => {
                if let Some(step) = self.step_of_call(execution_id) {
                    let deadline = self.now.checked_add(self.call_timeout(step)).ok();
                    if let Some(call) = &mut self.live.memory[step].call {
                        call.deadline = call.deadline.or(deadline);
                    }
                }
            }
            Observation::CallFinished {
                execution_id,
                outcome,
            } => {
                if let Some(step) = self.step_of_call(execution_id) {
                    self.live.memory[step].call = None;
                    match outcome {
                        CallOutcome::Response(response) => self.response(step, response),
                        CallOutcome::Failed(failure) => {
                            self.attempt_failed(step, failure.reason, &failure.message, None)
                        }
                        CallOutcome::NotDelivered { message } => self.not_delivered(step, message),
                    }
                }
            }
        }
    }

    /// Carries on until nothing more can happen at this instant.
    pub(crate) fn settle(&mut self) {
        if self.live.cancel {
            return self.cancel();
        }
        if self.run_timed_out() {
            return;
        }
        self.calls_timed_out();
        if !self.resolve_params() {
            return;
        }
        // Each round finishes at least one step, so this ends.
        while !self.is_stopping() && self.round() {}
        self.end_if_done();
    }

    /// One look at every step; whether a step has finished in it, so that others may start.
    fn round(&mut self) -> bool {
        let before = self.finished();
        for step in 0..self.flow.steps.len() {
            match self.state(step).phase {
                StepPhase::Pending
                    if self.flow.graph.dependencies[step] & !self.finished() == 0 =>
                {
                    self.start(step)
                }
                StepPhase::Running => self.resume_call(step),
                StepPhase::Waiting => self.end_wait(step),
                StepPhase::Pending
                | StepPhase::Succeeded
                | StepPhase::Failed
                | StepPhase::Skipped => {}
            }
            if self.is_stopping() {
                break;
            }
        }
        self.finished() != before
    }

    /// The run ends when every step has, or when a failure stops it and nothing is in flight.
    fn end_if_done(&mut self) {
        if self.is_stopping() {
            if self.calls_out() == 0 {
                self.end_stopped();
            }
        } else if self.finished() == crate::graph::all(self.flow.steps.len()) {
            self.end(RunPhase::Succeeded, reason::COMPLETED, String::new());
        }
    }

    /// Ends the run. Steps that have no outcome get one.
    fn end(&mut self, phase: RunPhase, reason: &str, message: String) {
        for step in members(crate::graph::all(self.flow.steps.len()) & !self.finished()) {
            self.give_up(step);
        }
        let run = &mut self.live.run;
        run.phase = phase;
        run.reason = reason.to_owned();
        run.message = size::cut(&message, size::MAX_MESSAGE_BYTES);
        run.start_time = run.start_time.or(Some(self.now));
        run.completion_time = Some(self.now);
        self.write = WriteNeed::Now;
    }

    /// What is left to do, and when to look again.
    pub(crate) fn finish(self) -> Advance {
        let wake = (!self.live.run.phase.is_terminal())
            .then(|| self.wake())
            .flatten();
        Advance {
            effects: self.effects,
            wake,
            write: self.write,
        }
    }

    fn wake(&self) -> Option<Timestamp> {
        let steps = self.live.run.steps.iter().zip(&self.live.memory);
        let times =
            steps
                .filter(|(state, _)| !state.phase.is_final())
                .flat_map(|(state, memory)| {
                    let deadline = memory.call.as_ref().and_then(|call| call.deadline);
                    [state.resume_after, memory.redeliver_at, deadline]
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

    /// Gives access to a step's state; what expressions see is made anew.
    fn change(&mut self, step: StepIndex) -> &mut StepState {
        self.live.views = None;
        &mut self.live.run.steps[step]
    }

    fn finished(&self) -> StepSet {
        in_phase(&self.live.run, StepPhase::is_final)
    }

    fn calls_out(&self) -> StepSet {
        let memory = self.live.memory.iter().enumerate();
        memory
            .filter(|(_, memory)| memory.call.is_some())
            .map(|(step, _)| single(step))
            .fold(0, |set, step| set | step)
    }

    /// Whether a failure that nothing absorbs has happened: a function of the stored state.
    fn is_stopping(&self) -> bool {
        self.stopper().is_some()
    }

    /// The step whose failure stops the run.
    fn stopper(&self) -> Option<StepIndex> {
        let steps = self.live.run.steps.iter().zip(&self.flow.steps);
        let failed = |(state, step): (&StepState, &Step)| {
            state.phase == StepPhase::Failed && step.on_failure == OnFailure::Fail
        };
        steps.into_iter().position(failed)
    }

    fn step_of_call(&self, execution_id: &str) -> Option<StepIndex> {
        let matches = |call: &crate::advance::CallMemory| call.execution_id == execution_id;
        self.live
            .memory
            .iter()
            .position(|memory| memory.call.as_ref().is_some_and(matches))
    }

    /// What expressions of a step see.
    fn scope(&mut self, step: StepIndex) -> Scope {
        let now = members(self.flow.graph.dependencies[step])
            .filter_map(|before| self.state(before).completion_time)
            .max()
            .unwrap_or(self.spec.created);
        let configmaps = self.live.memory[step].values.clone().unwrap_or_default();
        Scope {
            configmaps,
            now,
            ..self.run_scope()
        }
    }

    /// What expressions of the run itself see.
    fn run_scope(&mut self) -> Scope {
        let trigger = self.spec.trigger.as_ref();
        let views = self
            .live
            .views
            .get_or_insert_with(|| Arc::new(self.live.run.steps.iter().map(view).collect()));
        Scope {
            event: self.spec.event.clone(),
            trigger_name: trigger
                .map(|trigger| trigger.name.clone())
                .unwrap_or_default(),
            trigger_type: trigger
                .map(|trigger| trigger.kind.clone())
                .unwrap_or_default(),
            run_name: self.spec.name.clone(),
            run_namespace: self.spec.namespace.clone(),
            run_uid: self.spec.uid.clone(),
            params: self.live.params.clone().unwrap_or_default(),
            steps: views.clone(),
            configmaps: Default::default(),
            now: self.spec.created,
        }
    }
}

fn view(state: &StepState) -> (crate::flow::StepName, StepView) {
    let view = StepView {
        status: state.phase.as_str().to_owned(),
        message: state.message.clone(),
        attempts: state.attempts,
        results: state
            .results
            .iter()
            .map(|result| (result.name.clone(), result.value.clone()))
            .collect(),
    };
    (state.name.clone(), view)
}
