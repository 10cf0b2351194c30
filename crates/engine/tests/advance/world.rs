//! A run in virtual time: what it asks for is written down, and what comes back is scripted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubezap_engine::advance::{Advance, LiveRun, WriteNeed, advance};
use kubezap_engine::effect::{Call, Effect, KeyRef, References};
use kubezap_engine::event::Event;
use kubezap_engine::flow::{Flow, FlowDraft};
use kubezap_engine::observation::{CallOutcome, Failure, Observation, Response};
use kubezap_engine::run::{Run, RunPhase, RunSpec, StepState, TriggerRef};

/// When the run was created, and the zero of every script.
const CREATED: &str = "2026-12-01T08:00:00Z";

/// A run and the world around it.
pub(crate) struct World {
    pub(crate) flow: Arc<Flow>,
    pub(crate) spec: RunSpec,
    pub(crate) live: LiveRun,
    pub(crate) now: Timestamp,
    /// How many owners the run has had.
    owners: u32,
    /// When the run wants to be looked at.
    pub(crate) wake: Option<Timestamp>,
    /// Calls that were handed out and have not ended.
    pub(crate) calls: Vec<Call>,
    /// What steps have asked to be read.
    pub(crate) reads: Vec<(usize, References)>,
    /// Execution ids ever handed out.
    pub(crate) ids: Vec<String>,
    /// Everything that was asked for, and when.
    pub(crate) log: Vec<String>,
    /// The urgency of each advance since it was last taken.
    pub(crate) write: WriteNeed,
    /// Whether calls leave at once, as they do when nothing holds them back.
    pub(crate) calls_leave: bool,
}

/// What a script does at an instant.
pub(crate) enum What {
    /// The newest call of a step ends.
    Ends(&'static str, CallOutcome),
    /// The ConfigMaps that a step asked for are read.
    Read(
        &'static str,
        Result<Vec<(&'static str, &'static str)>, String>,
    ),
    /// Someone cancels.
    Cancel,
    /// The owner crashes, all that was known is stored, and another one takes over.
    Restart,
    /// Nothing but time passes.
    Nothing,
}

/// At `seconds`, the target of a step's newest call answers.
pub(crate) fn answer(seconds: f64, step: &'static str, status: u16, body: &str) -> (f64, What) {
    (seconds, What::Ends(step, response(status, &[], body)))
}

/// At `seconds`, a step's newest call has no answer.
pub(crate) fn no_answer(
    seconds: f64,
    step: &'static str,
    reason: &'static str,
    message: &str,
) -> (f64, What) {
    (seconds, What::Ends(step, failure(reason, message)))
}

/// At `seconds`, it turns out that a step's newest call never left.
pub(crate) fn not_delivered(seconds: f64, step: &'static str) -> (f64, What) {
    let message = "connection refused".to_owned();
    (
        seconds,
        What::Ends(step, CallOutcome::NotDelivered { message }),
    )
}

pub(crate) fn response(status: u16, headers: &[(&str, &str)], body: &str) -> CallOutcome {
    CallOutcome::Response(Response {
        status,
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        body: body.as_bytes().to_vec(),
    })
}

pub(crate) fn failure(reason: &'static str, message: &str) -> CallOutcome {
    CallOutcome::Failed(Failure {
        reason,
        message: message.to_owned(),
    })
}

/// Runs a Flow from second 0 through a script and compares what it asked for, and what became of it, with `expect`:
/// lines of the log, then the run, then its steps. Whitespace at the beginnings of lines does not count.
pub(crate) fn check(
    flow: FlowDraft,
    script: impl IntoIterator<Item = (f64, What)>,
    expect: &str,
) -> World {
    let mut world = World::new(flow);
    world.play(script);
    world.assert(expect);
    world
}

impl World {
    pub(crate) fn new(flow: FlowDraft) -> Self {
        Self::with(flow, |_| {})
    }

    /// A world whose run is made as `change` says.
    pub(crate) fn with(flow: FlowDraft, change: impl FnOnce(&mut RunSpec)) -> Self {
        let flow = Arc::new(Flow::new(flow).unwrap_or_else(|problems| panic!("{problems:?}")));
        let mut spec = RunSpec {
            name: "shop-1".to_owned(),
            namespace: "default".to_owned(),
            uid: "uid-1".to_owned(),
            created: CREATED.parse().unwrap(),
            flow: "shop".to_owned(),
            trigger: Some(TriggerRef {
                name: "orders".to_owned(),
                kind: "webhook".to_owned(),
            }),
            params: BTreeMap::new(),
            event: Arc::new(Event::default()),
        };
        change(&mut spec);
        Self {
            live: LiveRun::new(&flow, &spec, None, "i1"),
            owners: 1,
            now: spec.created,
            flow,
            spec,
            wake: None,
            calls: Vec::new(),
            reads: Vec::new(),
            ids: Vec::new(),
            log: Vec::new(),
            write: WriteNeed::None,
            calls_leave: true,
        }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.live.run
    }

    pub(crate) fn step(&self, name: &str) -> &StepState {
        &self.run().steps[self.index(name)]
    }

    /// A result; `None` when the step has no such.
    pub(crate) fn result(&self, step: &str, name: &str) -> Option<&str> {
        let mut results = self.step(step).results.iter();
        results
            .find(|result| result.name == name)
            .map(|result| result.value.as_str())
    }

    pub(crate) fn index(&self, name: &str) -> usize {
        let mut steps = self.flow.steps.iter();
        steps
            .position(|step| step.name.as_str() == name)
            .unwrap_or_else(|| panic!("no step {name}"))
    }

    /// The newest call of a step that is out.
    pub(crate) fn call(&self, name: &str) -> &Call {
        let index = self.index(name);
        let mut calls = self.calls.iter().rev();
        calls
            .find(|call| call.step == index)
            .unwrap_or_else(|| panic!("no call of {name} is out"))
    }

    /// Seconds since the run was created.
    pub(crate) fn seconds(&self, time: Timestamp) -> f64 {
        time.duration_since(self.spec.created).as_secs_f64()
    }

    pub(crate) fn play(&mut self, script: impl IntoIterator<Item = (f64, What)>) {
        self.turn(&[]);
        for (seconds, what) in script {
            self.to(seconds);
            match what {
                What::Ends(step, outcome) => self.end_call(step, outcome),
                What::Read(step, result) => self.end_read(step, result),
                What::Cancel => self.turn(&[Observation::CancelRequested]),
                What::Restart => self.restart(),
                What::Nothing => {}
            }
        }
    }

    /// Lets time pass; the run is looked at whenever it wants to be.
    pub(crate) fn to(&mut self, seconds: f64) {
        let to = self.spec.created + Duration::from_secs_f64(seconds);
        assert!(to >= self.now, "a script goes forward");
        while let Some(wake) = self.wake.filter(|wake| *wake <= to) {
            assert!(
                wake > self.now,
                "wants to be looked at again at {wake}, which it was"
            );
            self.now = wake;
            self.turn(&[]);
        }
        self.now = to;
    }

    fn end_call(&mut self, step: &str, outcome: CallOutcome) {
        let execution_id = self.call(step).execution_id.clone();
        self.turn(&[Observation::CallFinished {
            execution_id,
            outcome,
        }]);
    }

    fn end_read(&mut self, step: &str, result: Result<Vec<(&str, &str)>, String>) {
        let step = self.index(step);
        let at = self.reads.iter().position(|(reader, _)| *reader == step);
        let (_, references) = self.reads.remove(at.expect("the step has asked"));
        let result = result.map(|values| {
            let key = |name: &str| {
                let mut keys = references.configmaps.iter();
                let found: Option<&KeyRef> = keys.find(|key| key.key == name);
                found.expect("the step has asked for it").clone()
            };
            values
                .into_iter()
                .map(|(name, value)| (key(name), value.to_owned()))
                .collect()
        });
        self.turn(&[Observation::ReferencesRead { step, result }]);
    }

    /// The owner is gone with all it knew beyond the run, and another one takes over.
    pub(crate) fn restart(&mut self) {
        self.restart_from(self.live.run.clone());
    }

    /// As [`Self::restart`], with what was stored.
    pub(crate) fn restart_from(&mut self, stored: Run) {
        self.log.push(format!("{} restart", self.clock()));
        self.calls.clear();
        self.reads.clear();
        self.owners += 1;
        let incarnation = format!("i{}", self.owners);
        self.live = LiveRun::new(&self.flow, &self.spec, Some(stored), &incarnation);
        self.turn(&[]);
    }

    /// Advances, and holds every advance to what it promises.
    pub(crate) fn turn(&mut self, observations: &[Observation]) {
        let before = self.run().clone();
        let done = self.advance(observations);
        self.keeps_what_is_final(&before);
        self.write = self.write.max(done.write);
        self.wake = done.wake;
        if self.run().phase.is_terminal() && !before.phase.is_terminal() {
            assert_eq!(done.write, WriteNeed::Now, "the end is stored at once");
            assert_eq!(done.wake, None, "nothing follows the end");
        }
        let stored = self.run().clone();
        let again = self.advance(observations);
        assert!(again.effects.is_empty(), "again: {:?}", again.effects);
        assert_eq!((again.wake, again.write), (done.wake, WriteNeed::None));
        assert_eq!(*self.run(), stored, "the same again changes nothing");
        let mut left = Vec::new();
        for effect in done.effects {
            left.extend(self.carry_out(effect));
        }
        self.calls.retain(|call| {
            let ends = |observation: &Observation| matches!(observation, Observation::CallFinished { execution_id, .. } if *execution_id == call.execution_id);
            !observations.iter().any(ends)
        });
        if !before.phase.is_terminal() && self.run().phase.is_terminal() {
            assert!(self.calls.is_empty(), "a run ends with calls out");
        }
        left.retain(|id| self.calls.iter().any(|call| call.execution_id == *id));
        if !left.is_empty() {
            let started: Vec<_> = left
                .into_iter()
                .map(|execution_id| Observation::CallStarted { execution_id })
                .collect();
            self.turn(&started);
        }
    }

    fn advance(&mut self, observations: &[Observation]) -> Advance {
        advance(
            &self.flow,
            &self.spec,
            &mut self.live,
            observations,
            self.now,
        )
    }

    fn keeps_what_is_final(&self, before: &Run) {
        if before.phase.is_terminal() {
            assert_eq!(*self.run(), *before, "a terminal run never changes");
        }
        for (before, after) in before.steps.iter().zip(&self.run().steps) {
            if before.phase.is_final() {
                assert_eq!(after, before, "an outcome never changes");
            }
        }
    }

    /// Writes an effect down; the id of a call that leaves at once.
    fn carry_out(&mut self, effect: Effect) -> Option<String> {
        let name = |step: usize| self.flow.steps[step].name.to_string();
        match effect {
            Effect::Call(call) => {
                let line = format!("{} call {}#{}", self.clock(), name(call.step), call.attempt);
                self.log.push(line);
                let id = call.execution_id.clone();
                assert!(!self.ids.contains(&id), "{id} is used twice");
                self.ids.push(id.clone());
                self.calls.push(*call);
                self.calls_leave.then_some(id)
            }
            Effect::Read { step, references } => {
                self.log
                    .push(format!("{} read for {}", self.clock(), name(step)));
                self.reads.push((step, references));
                None
            }
            Effect::Abort { execution_id } => {
                let at = self
                    .calls
                    .iter()
                    .position(|call| call.execution_id == execution_id);
                let call = self.calls.remove(at.expect("an aborted call is out"));
                let line = format!(
                    "{} abort {}#{}",
                    self.clock(),
                    name(call.step),
                    call.attempt
                );
                self.log.push(line);
                None
            }
        }
    }

    fn clock(&self) -> String {
        format!("{}s", self.seconds(self.now))
    }

    pub(crate) fn assert(&self, expect: &str) {
        let expect: Vec<_> = expect
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(self.shown().join("\n"), expect.join("\n"));
    }

    /// The log, the run and its steps, a line each.
    fn shown(&self) -> Vec<String> {
        let run = self.run();
        let end = run
            .completion_time
            .map_or(String::new(), |time| format!("{}s ", self.seconds(time)));
        let phase = run.phase.as_str();
        let mut lines = self.log.clone();
        lines.push(line(&format!("{end}{phase}"), &run.reason, &run.message));
        lines.extend(run.steps.iter().map(|step| {
            let attempts = match step.attempts {
                0 | 1 => String::new(),
                n => format!(" x{n}"),
            };
            let state = format!("{} {}{attempts}", step.name, step.phase.as_str());
            line(&state, &step.reason, &step.message)
        }));
        lines
    }

    /// Whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.run().phase != RunPhase::Pending && self.run().phase != RunPhase::Running
    }
}

/// `what reason: message`, as far as there is any.
fn line(what: &str, reason: &str, message: &str) -> String {
    let mut line = what.to_owned();
    if !reason.is_empty() {
        line = format!("{line} {reason}");
    }
    if !message.is_empty() {
        line = format!("{line}: {message}");
    }
    line
}
