//! How one owner keeps many runs on a conditional store: slots, the write pipeline, conflicts, timers, and the dispatch
//! queue with its fairness. Pure: adapters carry inputs in and outputs out and decide nothing.
//!
//! An adapter answers every [`Output::LoadFlow`], [`Output::Label`], [`Output::Write`] and [`Output::Read`] exactly
//! once, with `Unavailable` when it cannot tell. The driver asks one of them at a time per run.
//!
//! A run is taken up when it is seen, its slot is held and it is not terminal. From then on the store is asked for it
//! only after a conflict. One input costs what its run costs, and the logarithm of how many runs are held.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

mod answers;
mod backoff;
mod dispatch;
mod held;
mod input;
mod intake;
mod last;
mod live;
mod output;
mod pipeline;
mod resume;
mod slot;
mod timers;

pub use input::{FlowAnswer, Input, ReadAnswer, RunKey, RunObject, WriteAnswer};
pub use output::{Output, WriteReason};
pub use slot::{SLOTS, Slot, slot_of};

use crate::observation::Observation;
use dispatch::Dispatch;
use held::{Held, Stage};
use live::{Context, Live, Names};
use resume::Resume;
use timers::Timers;

/// Names a run inside one driver.
type RunId = u64;

/// How long a run is left alone after someone else wrote its status, before it is looked at again. Longer than a lease,
/// so that an owner whose time was up has stopped by then.
const LEFT_ALONE: Duration = Duration::from_secs(15);

/// Settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Unique to this process start, `[a-z0-9]`, at most 16 characters, of the same length for all owners.
    pub incarnation: String,
    /// Calls in flight per namespace.
    pub calls_per_namespace: usize,
    /// Calls in flight in all.
    pub calls_total: usize,
    /// Runs taken up per second after a restart.
    pub resume_per_second: u32,
    /// How long an outcome that nothing waits for may stay unwritten.
    pub coalesce: Duration,
}

/// Keeps the runs of the slots it holds.
#[derive(Debug)]
pub struct Driver {
    config: Config,
    slots: BTreeSet<Slot>,
    ids: BTreeMap<RunKey, RunId>,
    runs: BTreeMap<RunId, Held>,
    next_id: RunId,
    /// Runs that are over for this owner, though a watch that lags may still show them as if they were not.
    over: BTreeMap<RunKey, Slot>,
    /// Runs that were given up under way and may come back; part of later execution ids.
    given_up: u32,
    dispatch: Dispatch,
    resume: Resume,
    timers: Timers,
    /// Runs that this input has touched.
    touched: Vec<RunId>,
    out: Vec<Output>,
}

impl Driver {
    /// Starts with no slots.
    pub fn new(config: Config) -> Self {
        Self {
            dispatch: Dispatch::new(config.calls_per_namespace, config.calls_total),
            resume: Resume::new(config.resume_per_second),
            config,
            slots: BTreeSet::new(),
            ids: BTreeMap::new(),
            runs: BTreeMap::new(),
            next_id: 0,
            over: BTreeMap::new(),
            given_up: 0,
            timers: Timers::default(),
            touched: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes one input and says what to do.
    pub fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        match input {
            Input::Slots(slots) => self.hold_slots(slots, now),
            Input::Seen(object) => self.seen(object, now),
            Input::Gone(key) => self.gone(&key, now),
            Input::FlowLoaded(key, answer) => self.flow_loaded(&key, answer, now),
            Input::Written(key, answer) => self.written(&key, answer, now),
            Input::Read(key, answer) => self.read(&key, answer, now),
            Input::CallFinished(key, execution_id, outcome) => {
                self.with_key(&key, now, |live, names, context| {
                    live.call_finished(execution_id, outcome, names, context);
                });
            }
            Input::ReferencesRead(key, step, result) => {
                let observation = Observation::ReferencesRead { step, result };
                self.with_key(&key, now, |live, names, context| {
                    live.advance(&[observation], names, context);
                });
            }
            Input::Tick => self.tick(now),
        }
        self.let_calls_leave(now);
        self.settle(now);
        std::mem::take(&mut self.out)
    }

    /// When [`Input::Tick`] is due.
    pub fn wake(&self) -> Option<Timestamp> {
        [self.timers.next(), self.resume.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// How many runs are held, those that wait to be taken up included.
    pub fn held(&self) -> usize {
        self.runs.len()
    }

    fn tick(&mut self, now: Timestamp) {
        while let Some(id) = self.timers.take_due(now) {
            self.touched.push(id);
            self.with_id(id, now, |live, names, context| live.tick(names, context));
        }
        while let Some(id) = self.resume.take_due(now) {
            self.resume_turn(id, now);
        }
    }

    /// Calls that have a place leave.
    fn let_calls_leave(&mut self, now: Timestamp) {
        while let Some(leaving) = self.dispatch.next() {
            let left = self.with_id(leaving.run, now, |live, names, context| {
                live.leave(leaving.execution_id, names, context)
            });
            if left != Some(true) {
                self.dispatch.release(&leaving.namespace);
            }
        }
    }

    /// Asks what is due of the runs that were touched, and sets their alarms.
    fn settle(&mut self, now: Timestamp) {
        for id in std::mem::take(&mut self.touched) {
            let Some(held) = self.runs.get_mut(&id) else {
                continue;
            };
            let key = || held.key.clone();
            let alarm = match &mut held.stage {
                Stage::Labelling { found, question } => {
                    if question.ask(now) {
                        self.out.push(Output::Label {
                            key: key(),
                            resource_version: found.resource_version.clone(),
                            slot: slot::slot_of_run(&held.spec),
                        });
                    }
                    question.due()
                }
                Stage::Loading { found, question } => {
                    if question.ask(now) {
                        let status = found.status.as_ref();
                        self.out.push(Output::LoadFlow {
                            key: key(),
                            spec: held.spec.clone(),
                            pinned: status.and_then(|run| run.revision.clone()),
                        });
                    }
                    question.due()
                }
                Stage::Looking { question, .. } => {
                    if question.ask(now) {
                        self.out.push(Output::Read { key: key() });
                    }
                    question.due()
                }
                Stage::Live(live) => {
                    let names = Names {
                        id,
                        key: &held.key,
                        spec: &held.spec,
                    };
                    let mut context = Context {
                        config: &self.config,
                        dispatch: &mut self.dispatch,
                        out: &mut self.out,
                        now,
                    };
                    live.settle(names, &mut context)
                }
                Stage::Waiting(_) | Stage::Draining { .. } => None,
            };
            self.timers.set(id, alarm);
        }
    }

    /// Does something with a run that is under way; `None` when it is not.
    fn with_id<T>(
        &mut self,
        id: RunId,
        now: Timestamp,
        act: impl FnOnce(&mut Live, Names<'_>, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let held = self.runs.get_mut(&id)?;
        let Stage::Live(live) = &mut held.stage else {
            return None;
        };
        self.touched.push(id);
        let names = Names {
            id,
            key: &held.key,
            spec: &held.spec,
        };
        let mut context = Context {
            config: &self.config,
            dispatch: &mut self.dispatch,
            out: &mut self.out,
            now,
        };
        Some(act(live, names, &mut context))
    }

    fn with_key<T>(
        &mut self,
        key: &RunKey,
        now: Timestamp,
        act: impl FnOnce(&mut Live, Names<'_>, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let id = *self.ids.get(key)?;
        self.with_id(id, now, act)
    }

    /// Gives a run up without a write. It is forgotten, or remembered until an answer that is out has come.
    fn give_up(&mut self, id: RunId, why: &'static str, now: Timestamp) {
        self.stop_calls(id, why, now);
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        if let Stage::Waiting(_) = held.stage {
            self.resume.remove(held.spec.created, id);
        }
        if held.awaits_answer() {
            held.stage = Stage::Draining { again: false };
            self.timers.set(id, None);
        } else {
            self.forget(id);
        }
    }

    /// Aborts the calls of a run that is under way and says that it is dropped.
    fn stop_calls(&mut self, id: RunId, why: &'static str, now: Timestamp) {
        let was_live = self.with_id(id, now, |live, names, context| {
            live.abort_all(names, context);
            let key = names.key.clone();
            context.out.push(Output::Dropped { key, why });
        });
        if was_live.is_some() {
            self.given_up = self.given_up.saturating_add(1);
        }
    }

    /// Does not take the run up again, however old the watch is.
    fn mark_over(&mut self, id: RunId) {
        if let Some(held) = self.runs.get(&id).filter(|held| !held.left) {
            self.over.insert(held.key.clone(), held.slot);
        }
    }

    fn forget(&mut self, id: RunId) {
        if let Some(held) = self.runs.remove(&id) {
            self.ids.remove(&held.key);
        }
        self.timers.set(id, None);
    }

    /// The beginning of execution ids. A run may come back that this owner had under way before, so it changes then.
    fn incarnation(&self) -> String {
        match self.given_up {
            0 => self.config.incarnation.clone(),
            n => format!("{}x{n}", self.config.incarnation),
        }
    }
}
