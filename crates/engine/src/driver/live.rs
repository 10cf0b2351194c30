//! A run that is under way: its state, its calls and its writes.

use std::sync::Arc;

use jiff::Timestamp;

use super::backoff::backoff;
use super::dispatch::Dispatch;
use super::input::{ReadAnswer, RunKey, WriteAnswer};
use super::output::{Output, WriteReason};
use super::pipeline::{Ask, Pipeline, Verdict};
use super::{Config, RunId, last};
use crate::advance::{LiveRun, WriteNeed, advance};
use crate::effect::Effect;
use crate::flow::Flow;
use crate::observation::{CallOutcome, Observation};
use crate::run::{Run, RunPhase, RunSpec, StepPhase, StepState, reason};
use calls::Calls;

mod calls;

/// How long a run waits for its first turn before its status says so.
const QUEUED_SHOWN_AFTER: std::time::Duration = std::time::Duration::from_secs(10);

/// What a run needs of its driver while one input is taken.
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) dispatch: &'a mut Dispatch,
    pub(super) out: &'a mut Vec<Output>,
    pub(super) now: Timestamp,
}

/// The names of a run.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) id: RunId,
    pub(super) key: &'a RunKey,
    pub(super) spec: &'a Arc<RunSpec>,
}

/// A run under way.
#[derive(Debug)]
pub(super) struct Live {
    state: State,
    calls: Calls,
    pipeline: Pipeline,
    /// When to advance though nothing is observed.
    wake: Option<Timestamp>,
    /// The minimal status is being written: there is nothing smaller to fall back to.
    minimal: bool,
}

#[derive(Debug)]
enum State {
    /// Advances.
    Flow { flow: Arc<Flow>, live: LiveRun },
    /// Has ended without its Flow; only the write is left.
    Ended(Run),
}

/// What is left of a run after an input.
pub(super) enum Outcome {
    /// It goes on.
    Held,
    /// Its terminal state is stored.
    Finished(Box<Run>),
    /// It was deleted.
    Gone,
    /// Someone else wrote this status.
    Lost(Box<Option<Run>>),
    /// Not even the minimal status is accepted.
    Unwritable,
}

impl Live {
    /// Takes up a run whose Flow was found.
    pub(super) fn new(
        flow: Arc<Flow>,
        revision: String,
        spec: &RunSpec,
        resource_version: String,
        status: Option<Run>,
        incarnation: &str,
    ) -> Self {
        let mut live = LiveRun::new(&flow, spec, status.clone(), incarnation);
        live.run.revision.get_or_insert(revision);
        Self::with(State::Flow { flow, live }, resource_version, status)
    }

    /// Takes up a run that can only fail.
    pub(super) fn refused(
        reason: &str,
        message: &str,
        resource_version: String,
        status: Option<Run>,
        now: Timestamp,
    ) -> Self {
        let ended = last::failed(status.as_ref(), reason, message, now);
        Self::with(State::Ended(ended), resource_version, status)
    }

    fn with(state: State, resource_version: String, status: Option<Run>) -> Self {
        Self {
            state,
            calls: Calls::default(),
            pipeline: Pipeline::new(resource_version, status),
            wake: None,
            minimal: false,
        }
    }

    /// Begins: what was not written by then is shown after a while.
    pub(super) fn begin(&mut self, cancel: bool, names: Names<'_>, context: &mut Context<'_>) {
        let observations: &[_] = if cancel {
            &[Observation::CancelRequested]
        } else {
            &[]
        };
        self.advance(observations, names, context);
        if self.pipeline.untouched() {
            // A short queue is no news, and a write for each run would lengthen it.
            let wait = if self.as_queued().is_some() {
                QUEUED_SHOWN_AFTER
            } else {
                context.config.coalesce
            };
            self.pipeline
                .demand(context.now + wait, WriteReason::Running);
        }
    }

    /// Advances and carries its effects out, apart from the write.
    pub(super) fn advance(
        &mut self,
        observations: &[Observation],
        names: Names<'_>,
        context: &mut Context<'_>,
    ) {
        let State::Flow { flow, live } = &mut self.state else {
            return;
        };
        let flow = flow.clone();
        let step = advance(&flow, names.spec, live, observations, context.now);
        // A time that has passed without effect would be asked for at once, again and again.
        let later = context.now + context.config.coalesce;
        self.wake = step
            .wake
            .map(|wake| if wake > context.now { wake } else { later });
        match step.write {
            WriteNeed::None => {}
            WriteNeed::Soon => self.pipeline.demand(
                context.now + context.config.coalesce,
                WriteReason::Coalesced,
            ),
            WriteNeed::Now => self.pipeline.demand(context.now, WriteReason::Resume),
        }
        for effect in step.effects {
            match effect {
                Effect::Call(call) => {
                    let needs = live.must_be_stored(&flow, call.step);
                    let stored = self.pipeline.stored_steps();
                    self.calls.add(call, needs, stored, names, context.dispatch);
                }
                Effect::Read { step, references } => context.out.push(Output::ReadReferences {
                    key: names.key.clone(),
                    step,
                    references,
                }),
                Effect::Abort { execution_id } => {
                    let abort = self.calls.abort(&execution_id, names, context.dispatch);
                    context.out.extend(abort);
                }
            }
        }
    }

    /// Aborts all calls, those that wait included.
    pub(super) fn abort_all(&mut self, names: Names<'_>, context: &mut Context<'_>) {
        for execution_id in self.calls.ids() {
            let abort = self.calls.abort(&execution_id, names, context.dispatch);
            context.out.extend(abort);
        }
    }

    /// A call has its place and leaves; false when it does not need the place.
    pub(super) fn leave(
        &mut self,
        execution_id: String,
        names: Names<'_>,
        context: &mut Context<'_>,
    ) -> bool {
        let is_first = !self.calls.any_left();
        let Some(call) = self.calls.leave(&execution_id) else {
            return false;
        };
        let key = names.key.clone();
        context.out.push(Output::Call { key, call });
        let shown_as_queued = self
            .pipeline
            .stored()
            .is_some_and(|stored| stored.phase == RunPhase::Pending);
        if is_first && (self.pipeline.untouched() || shown_as_queued) {
            let soon = context.now + context.config.coalesce;
            self.pipeline.demand(soon, WriteReason::Running);
        }
        self.advance(&[Observation::CallStarted { execution_id }], names, context);
        true
    }

    /// A call has ended. One that is not in flight, because it was aborted, is ignored.
    pub(super) fn call_finished(
        &mut self,
        execution_id: String,
        outcome: CallOutcome,
        names: Names<'_>,
        context: &mut Context<'_>,
    ) {
        if self.calls.end(&execution_id, names, context.dispatch) {
            let observation = Observation::CallFinished {
                execution_id,
                outcome,
            };
            self.advance(&[observation], names, context);
        }
    }

    /// Advances if its time has come.
    pub(super) fn tick(&mut self, names: Names<'_>, context: &mut Context<'_>) {
        if self.wake.is_some_and(|wake| wake <= context.now) {
            self.advance(&[], names, context);
        }
    }

    /// Takes the answer to a write.
    pub(super) fn written(
        &mut self,
        answer: WriteAnswer,
        names: Names<'_>,
        context: &mut Context<'_>,
    ) -> Outcome {
        let incarnation = &context.config.incarnation;
        let verdict = self.pipeline.written(answer, context.now, |failures| {
            backoff(incarnation, &names.key.uid, failures)
        });
        self.judge(verdict, names, context)
    }

    /// Takes the answer to a read. `cancel` is taken from what was read.
    pub(super) fn read(
        &mut self,
        answer: ReadAnswer,
        names: Names<'_>,
        context: &mut Context<'_>,
    ) -> Outcome {
        let cancel = matches!(&answer, ReadAnswer::Found(object) if object.cancel);
        let deleting = matches!(&answer, ReadAnswer::Found(object) if object.deleting);
        let incarnation = &context.config.incarnation;
        let uid = &names.key.uid;
        let verdict = self.pipeline.read(answer, uid, context.now, |failures| {
            backoff(incarnation, uid, failures)
        });
        let outcome = self.judge(verdict, names, context);
        match outcome {
            Outcome::Held if deleting => Outcome::Gone,
            Outcome::Held if cancel => {
                self.advance(&[Observation::CancelRequested], names, context);
                Outcome::Held
            }
            other => other,
        }
    }

    fn judge(&mut self, verdict: Verdict, names: Names<'_>, context: &mut Context<'_>) -> Outcome {
        match verdict {
            Verdict::Pending | Verdict::Moved => Outcome::Held,
            Verdict::Gone => Outcome::Gone,
            Verdict::AnotherOwner(status) => Outcome::Lost(status),
            Verdict::Refused if self.minimal => Outcome::Unwritable,
            Verdict::Refused => {
                self.abort_all(names, context);
                self.state = State::Ended(last::minimal(self.run(), context.now));
                self.wake = None;
                self.minimal = true;
                Outcome::Held
            }
            Verdict::Stored => match self.pipeline.stored() {
                Some(run) if run.phase.is_terminal() => Outcome::Finished(Box::new(run.clone())),
                _ => {
                    let stored = self.pipeline.stored_steps();
                    self.calls.open_gates(stored, names, context.dispatch);
                    Outcome::Held
                }
            },
        }
    }

    /// Asks for a write or a read if one is due, and says when to come back.
    pub(super) fn settle(
        &mut self,
        names: Names<'_>,
        context: &mut Context<'_>,
    ) -> Option<Timestamp> {
        let urgent = if self.run().phase.is_terminal() {
            Some(WriteReason::Terminal)
        } else if self.calls.any_gated() {
            Some(WriteReason::Gate)
        } else {
            None
        };
        let ask = if self.pipeline.is_due(urgent, context.now) {
            let queued = self.as_queued();
            let run = queued.as_ref().unwrap_or(self.run()).clone();
            self.pipeline.ask(run, urgent, context.now)
        } else {
            None
        };
        let key = names.key.clone();
        match ask {
            Some(Ask::Write {
                resource_version,
                run,
                reason,
            }) => context.out.push(Output::Write {
                key,
                resource_version,
                run,
                reason,
            }),
            Some(Ask::Read) => context.out.push(Output::Read { key }),
            None => {}
        }
        [self.wake, self.pipeline.wake()]
            .into_iter()
            .flatten()
            .min()
    }

    /// A run that waits for its first turn, as it is stored: nothing has started, and a crash begins afresh.
    fn as_queued(&self) -> Option<Run> {
        let run = self.run();
        let waits = |step: &StepState| match step.phase {
            StepPhase::Pending => true,
            StepPhase::Running => step
                .execution_id
                .as_ref()
                .is_some_and(|id| self.calls.is_queued(id)),
            StepPhase::Waiting | StepPhase::Succeeded | StepPhase::Failed | StepPhase::Skipped => {
                false
            }
        };
        let queued = run.phase == RunPhase::Running
            && !self.calls.any_left()
            && self
                .pipeline
                .stored()
                .is_none_or(|stored| stored.phase == RunPhase::Pending)
            && run.steps.iter().all(waits);
        queued.then(|| Run {
            phase: RunPhase::Pending,
            reason: reason::QUEUED.to_owned(),
            revision: run.revision.clone(),
            steps: run.steps.iter().map(last::pending).collect(),
            ..Run::default()
        })
    }

    fn run(&self) -> &Run {
        match &self.state {
            State::Flow { live, .. } => &live.run,
            State::Ended(run) => run,
        }
    }

    /// A terminal state may be in the store already.
    pub(super) fn is_ending(&self) -> bool {
        self.pipeline.ending()
    }

    /// An answer of the adapter is awaited.
    pub(super) fn awaits_answer(&self) -> bool {
        self.pipeline.awaits_answer()
    }
}
