//! What a run means: one pure step from (flow, run, observations, now) to (run, effects, wake).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Timestamp, TimestampRound, Unit};

use crate::effect::{Effect, KeyRef};
use crate::expression::StepView;
use crate::flow::{Flow, StepIndex, StepName};
use crate::graph::{StepSet, members, single};
use crate::observation::Observation;
use crate::run::{Run, RunSpec, StepPhase, StepState};
use crate::transition::Machine;

/// A run in the memory of its owner: what is stored, and what needs no storing.
///
/// Made from a stored [`Run`] (or an empty one) when an owner takes the run up; a crash loses everything but `run`.
#[derive(Debug)]
pub struct LiveRun {
    /// What the next write stores.
    pub run: Run,
    pub(crate) incarnation: String,
    pub(crate) dispatches: u64,
    pub(crate) cancel: bool,
    pub(crate) params: Option<Arc<BTreeMap<String, String>>>,
    pub(crate) memory: Vec<StepMemory>,
    /// What expressions see of the steps; `None` after a step has changed.
    pub(crate) views: Option<Arc<BTreeMap<StepName, StepView>>>,
}

/// What is known of a step and needs no storing.
#[derive(Debug, Default)]
pub(crate) struct StepMemory {
    /// The call that is out.
    pub(crate) call: Option<CallMemory>,
    /// The first time this attempt was handed out.
    pub(crate) attempt_begin: Option<Timestamp>,
    /// How often this attempt could not be delivered.
    pub(crate) undelivered: u32,
    /// When it is handed out again.
    pub(crate) redeliver_at: Option<Timestamp>,
    /// ConfigMap values that were read for it.
    pub(crate) values: Option<BTreeMap<KeyRef, String>>,
    /// Whether they have been asked for.
    pub(crate) reading: bool,
}

/// A call that is out.
#[derive(Debug)]
pub(crate) struct CallMemory {
    pub(crate) execution_id: String,
    /// When its time is up; `None` while it waits for its turn.
    pub(crate) deadline: Option<Timestamp>,
}

impl LiveRun {
    /// Takes up a run: a new one, or one whose status was stored before a crash.
    ///
    /// `incarnation` is unique to this owner and start of the process (`[a-z0-9]`, at most 16 characters); execution ids
    /// begin with it.
    pub fn new(flow: &Flow, _spec: &RunSpec, stored: Option<Run>, incarnation: &str) -> Self {
        let mut run = stored.unwrap_or_default();
        if run.steps.len() != flow.steps.len() {
            // Nothing was stored yet: the first write shows all steps at once.
            run.steps = flow
                .steps
                .iter()
                .map(|step| StepState {
                    name: step.name.clone(),
                    ..StepState::default()
                })
                .collect();
        }
        Self {
            memory: run.steps.iter().map(|_| StepMemory::default()).collect(),
            run,
            incarnation: incarnation.to_owned(),
            dispatches: 0,
            cancel: false,
            params: None,
            views: None,
        }
    }

    /// Whether a call of this step is out, in the queue or on its way.
    pub fn has_call(&self, step: StepIndex) -> bool {
        self.memory[step].call.is_some()
    }
}

/// What one advance gives.
#[derive(Debug, Default)]
pub struct Advance {
    /// Things to do, in order.
    pub effects: Vec<Effect>,
    /// When to advance again though nothing is observed.
    pub wake: Option<Timestamp>,
    /// Why the new state has to be stored soon, beyond the gate of a dependent call.
    pub write: WriteNeed,
}

/// How urgently the state has to be stored. Ordered: the greatest wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteNeed {
    /// Nothing new, or only what is a pure function of stored state and time: a transform, a skip, a first start.
    #[default]
    None,
    /// Within 250 ms, or with the next write: the outcome of a call or of a wait.
    Soon,
    /// Now: a wait that begins, a backoff of 1 s or more, or a terminal phase.
    Now,
}

/// Advances a run. Never panics, whatever the observations; unknown ones are ignored; a terminal run stays as it is.
pub fn advance(
    flow: &Arc<Flow>,
    spec: &RunSpec,
    live: &mut LiveRun,
    observations: &[Observation],
    now: Timestamp,
) -> Advance {
    if live.run.phase.is_terminal() {
        return Advance::default();
    }
    let mut machine = Machine::new(flow, spec, live, whole_micros(now));
    for observation in observations {
        machine.observe(observation);
    }
    machine.settle();
    machine.finish()
}

/// The steps whose outcome must be in the store before a call of `step` may leave: its ancestors that are not pure.
pub fn must_be_stored(flow: &Flow, step: StepIndex) -> StepSet {
    members(flow.graph.ancestors[step])
        .filter(|before| !flow.is_pure(*before))
        .map(single)
        .fold(0, |set, step| set | step)
}

/// The finished steps of a run, the stored one in particular.
pub fn finished(run: &Run) -> StepSet {
    in_phase(run, StepPhase::is_final)
}

pub(crate) fn in_phase(run: &Run, test: impl Fn(StepPhase) -> bool) -> StepSet {
    run.steps
        .iter()
        .enumerate()
        .filter(|(_, step)| test(step.phase))
        .map(|(index, _)| single(index))
        .fold(0, |set, step| set | step)
}

/// Times are stored in whole microseconds.
fn whole_micros(time: Timestamp) -> Timestamp {
    time.round(
        TimestampRound::new()
            .smallest(Unit::Microsecond)
            .mode(jiff::RoundMode::Trunc),
    )
    .unwrap_or(time)
}
