//! What a run means: one pure step from (flow, run, observations, now) to (run, effects, wake).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::effect::{Effect, KeyRef};
use crate::expression::StepView;
use crate::flow::{Action, Flow, OnFailure, StepIndex};
use crate::graph::{StepSet, members, single};
use crate::observation::Observation;
use crate::run::{Run, RunSpec, StepPhase, StepState};
use crate::transition::Machine;
use crate::transition::size::StepSize;

/// A run in the memory of its owner: what is stored, and what needs no storing.
///
/// Made from a stored [`Run`] (or an empty one) when an owner takes the run up; a crash loses everything but `run`.
#[derive(Debug)]
pub struct LiveRun {
    /// What the next write stores. Only [`Run::revision`] may be set from outside.
    pub run: Run,
    pub(crate) incarnation: String,
    /// Calls handed out so far.
    pub(crate) dispatches: u64,
    /// Someone asked for the end.
    pub(crate) cancel: bool,
    /// Something of this run has begun, so that its time runs. A run whose calls all wait for their turn has not.
    pub(crate) begun: bool,
    /// A failure that nothing absorbs has happened.
    pub(crate) stopping: bool,
    /// The steps that have their outcome.
    pub(crate) finished: StepSet,
    /// Resolved parameters.
    pub(crate) params: Option<Arc<BTreeMap<String, String>>>,
    pub(crate) memory: Vec<StepMemory>,
}

/// What is known of a step and needs no storing.
#[derive(Debug, Default)]
pub(crate) struct StepMemory {
    /// The call that is out.
    pub(crate) call: Option<CallMemory>,
    /// The newest attempt is counted and has not left: it waits for the store, for its turn, or for an executor.
    pub(crate) unsent: bool,
    /// When this attempt's call left for the first time.
    pub(crate) attempt_begin: Option<Timestamp>,
    /// How often this attempt could not be delivered.
    pub(crate) undelivered: u32,
    /// When it is handed out again.
    pub(crate) redeliver_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub(crate) last_failure: Option<&'static str>,
    /// ConfigMap values that were read for it.
    pub(crate) values: Option<BTreeMap<KeyRef, String>>,
    /// Whether they have been asked for.
    pub(crate) reading: bool,
    /// What expressions see of it, made once: they see finished steps only, and an outcome never changes.
    pub(crate) view: Option<Arc<StepView>>,
    /// What it takes in the store.
    pub(crate) size: StepSize,
}

/// A call that is out.
#[derive(Debug)]
pub(crate) struct CallMemory {
    pub(crate) execution_id: String,
    /// When its time is up; `None` before it leaves.
    pub(crate) deadline: Option<Timestamp>,
}

impl LiveRun {
    /// Takes up a run: a new one, or one whose status was stored before a crash.
    ///
    /// `incarnation` is unique to this owner and start of the process (`[a-z0-9]`, at most 16 characters); execution ids
    /// begin with it. Steps are found by name: one that the stored status lacks is pending.
    pub fn new(flow: &Flow, _spec: &RunSpec, stored: Option<Run>, incarnation: &str) -> Self {
        let mut run = stored.unwrap_or_default();
        let mut known: BTreeMap<_, _> = std::mem::take(&mut run.steps)
            .into_iter()
            .map(|step| (step.name.clone(), step))
            .collect();
        run.steps = flow
            .steps
            .iter()
            .map(|step| {
                known.remove(&step.name).unwrap_or_else(|| StepState {
                    name: step.name.clone(),
                    ..StepState::default()
                })
            })
            .collect();
        let stops = |(state, step): (&StepState, &crate::flow::Step)| {
            state.phase == StepPhase::Failed && step.on_failure == OnFailure::Fail
        };
        Self {
            incarnation: incarnation.to_owned(),
            dispatches: 0,
            cancel: false,
            begun: run.start_time.is_some(),
            stopping: run.steps.iter().zip(&flow.steps).any(stops),
            finished: finished(&run),
            params: None,
            memory: run
                .steps
                .iter()
                .map(|state| StepMemory {
                    size: StepSize::of(state),
                    ..StepMemory::default()
                })
                .collect(),
            run,
        }
    }

    /// The steps whose outcome must be in the store before a call of `step` may leave: those before it whose outcome
    /// could not be computed again after a crash.
    ///
    /// A step that was skipped because of its conditions, for one, needs no storing though it is an http step.
    pub fn must_be_stored(&self, flow: &Flow, step: StepIndex) -> StepSet {
        members(flow.graph.ancestors[step])
            .filter(|before| !self.is_recomputable(flow, *before))
            .map(single)
            .fold(0, |set, step| set | step)
    }

    /// Whether a step's outcome is a function of stored state and time: nothing outside was asked for it.
    pub(crate) fn is_recomputable(&self, flow: &Flow, step: StepIndex) -> bool {
        let Some(plan) = flow.steps.get(step) else {
            return false;
        };
        let called = matches!(plan.action, Action::Http(_)) && self.run.steps[step].attempts > 0;
        !called && plan.configmaps.configmaps.is_empty()
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
///
/// The whole run is written at once, so what needs no write of its own rides on the next one: the outcome of a call and
/// the wait that it starts are one write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteNeed {
    /// Nothing new, or only what is a pure function of stored state and time: a transform, a condition that was false, a
    /// backoff under 1 s. Nor does a first start: whoever keeps runs shows one that is still at work after 250 ms.
    #[default]
    None,
    /// Within 250 ms, or with the next write: the outcome of a call, the end of a wait.
    Soon,
    /// Now: a wait that begins, a backoff of 1 s or more, or a terminal phase.
    Now,
}

/// Advances a run.
///
/// Never panics, whatever the observations. Each is taken in by itself, so that it makes no difference in how many calls
/// they come; one that is unknown, or comes again, changes nothing. A terminal run stays as it is.
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
    if observations.is_empty() {
        machine.settle();
    }
    for observation in observations {
        machine.observe(observation);
        machine.settle();
    }
    machine.finish()
}

/// The finished steps of a run, the stored one in particular.
pub fn finished(run: &Run) -> StepSet {
    run.steps
        .iter()
        .take(crate::flow::MAX_STEPS)
        .enumerate()
        .filter(|(_, step)| step.phase.is_final())
        .map(|(index, _)| single(index))
        .fold(0, |set, step| set | step)
}

/// Times are stored in whole microseconds.
pub(crate) fn whole_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
