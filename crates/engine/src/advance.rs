//! What a run means: one pure step from (flow, run, observations, now) to (run, effects, wake).

use jiff::Timestamp;

use crate::effect::Effect;
use crate::flow::Flow;
use crate::graph::StepSet;
use crate::observation::Observation;
use crate::run::{Run, RunSpec};

/// A run in the memory of its owner: what is stored, and what needs no storing.
///
/// Made from a stored [`Run`] (or an empty one) when an owner takes the run up; a crash loses everything but `run`.
#[derive(Debug)]
pub struct LiveRun {
    /// What the next write stores.
    pub run: Run,
    // private: per step the dispatch time, the attempt's deadline, the not-delivered count, values read, parameters,
    // a counter for execution ids, whether a cancel was asked for.
}

impl LiveRun {
    /// Takes up a run: a new one, or one whose status was stored before a crash.
    ///
    /// `incarnation` is unique to this owner and start of the process (`[a-z0-9]`, at most 16 characters); execution ids
    /// begin with it.
    pub fn new(_flow: &Flow, _spec: &RunSpec, _stored: Option<Run>, _incarnation: &str) -> Self {
        unimplemented!()
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
    /// Nothing new, or only what is a pure function of stored state and time.
    #[default]
    None,
    /// Within 250 ms, or with the next write.
    Soon,
    /// Now: a wait or a backoff of 1 s or more that no outcome's write carries, or a terminal phase.
    Now,
}

/// Advances a run. Never panics, whatever the observations; unknown ones are ignored; a terminal run stays as it is.
pub fn advance(
    _flow: &std::sync::Arc<Flow>,
    _spec: &RunSpec,
    _live: &mut LiveRun,
    _observations: &[Observation],
    _now: Timestamp,
) -> Advance {
    unimplemented!()
}

/// The steps whose outcome must be in the store before a call of `step` may leave: its ancestors that are not pure.
pub fn must_be_stored(_flow: &Flow, _step: crate::flow::StepIndex) -> StepSet {
    unimplemented!()
}

/// The finished steps of a run, the stored one in particular.
pub fn finished(_run: &Run) -> StepSet {
    unimplemented!()
}
