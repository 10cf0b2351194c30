//! A step starts, or its call is handed out once more.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{Machine, after};
use crate::advance::CallMemory;
use crate::effect::{Call, Effect, KeyRef, References};
use crate::expression::{Reference, Scope, Template};
use crate::flow::{Action, HttpAction, StepIndex};
use crate::run::{StepPhase, StepResult, reason};

impl Machine<'_> {
    /// Starts a step whose dependencies are finished: skips it, or does what its action says.
    pub(super) fn start(&mut self, index: StepIndex) {
        if self.skipped_by_dependencies(index) || self.awaits_values(index) {
            return;
        }
        let step = self.step(index);
        let scope = self.scope(index);
        for condition in &step.when {
            match condition.evaluate(&scope) {
                Ok(true) => {}
                Ok(false) => return self.skip(index, condition.source()),
                Err(error) => return self.fail(index, error.reason, &format!("when: {error}")),
            }
        }
        match &step.action {
            Action::Http(_) => {
                self.show_running();
                let now = self.now;
                let state = self.change(index);
                state.phase = StepPhase::Running;
                state.start_time = Some(now);
                state.attempts = 1;
                self.call(index);
            }
            Action::Transform(mappings) => self.transform(index, mappings, &scope),
            Action::Wait(duration) => self.begin_wait(index, *duration),
        }
    }

    /// Asks for the ConfigMaps that a step's conditions and transform need; whether it has to wait for them.
    fn awaits_values(&mut self, index: StepIndex) -> bool {
        let step = self.step(index);
        let memory = &mut self.live.memory[index];
        if step.configmaps.configmaps.is_empty() || memory.values.is_some() {
            return false;
        }
        if !std::mem::replace(&mut memory.reading, true) {
            self.effects.push(Effect::Read {
                step: index,
                references: step.configmaps.clone(),
            });
            self.begin();
        }
        true
    }

    fn transform(&mut self, index: StepIndex, mappings: &[(String, Template)], scope: &Scope) {
        self.begin();
        let now = self.now;
        let state = self.change(index);
        state.start_time = Some(now);
        state.attempts = 1;
        let results: Result<Vec<_>, _> = mappings
            .iter()
            .map(|(name, template)| match template.render_text(scope) {
                Ok(value) => Ok(StepResult {
                    name: name.clone(),
                    value,
                }),
                Err(error) => Err((name, error)),
            })
            .collect();
        match results {
            Ok(results) => self.succeed(index, results),
            Err((name, error)) => {
                self.fail(index, error.reason, &format!("mapping {name}: {error}"));
            }
        }
    }

    /// What the shell read for a step that is about to start.
    pub(super) fn references_read(
        &mut self,
        step: StepIndex,
        result: &Result<BTreeMap<KeyRef, String>, String>,
    ) {
        let waits = self
            .live
            .memory
            .get(step)
            .is_some_and(|memory| memory.reading && memory.values.is_none());
        if !waits || self.live.stopping || self.state(step).phase != StepPhase::Pending {
            return;
        }
        match result {
            Ok(values) => self.live.memory[step].values = Some(values.clone()),
            Err(missing) => self.fail(step, reason::REFERENCE_NOT_FOUND, missing),
        }
    }

    /// Hands a call out.
    pub(super) fn call(&mut self, index: StepIndex) {
        let step = self.step(index);
        let Action::Http(action) = &step.action else {
            return;
        };
        self.live.dispatches += 1;
        let execution_id = self.execution_id(index);
        let memory = &mut self.live.memory[index];
        memory.redeliver_at = None;
        memory.unsent = true;
        memory.call = Some(CallMemory {
            execution_id: execution_id.clone(),
            deadline: None,
        });
        self.change(index).execution_id = Some(execution_id.clone());
        let scope = self.scope(index);
        self.effects.push(Effect::Call(Box::new(Call {
            step: index,
            attempt: self.state(index).attempts,
            execution_id,
            idempotency_key: format!("{}/{}", self.spec.uid, step.name),
            timeout: self.call_timeout(index),
            action: action.clone(),
            scope,
            references: references(action),
        })));
    }

    /// The call has left: its time runs, and what people see as the start of a first attempt is this instant.
    pub(super) fn call_left(&mut self, step: StepIndex) {
        self.begin();
        let (now, timeout) = (self.now, self.call_timeout(step));
        let memory = &mut self.live.memory[step];
        memory.unsent = false;
        let is_first = memory.attempt_begin.is_none();
        memory.attempt_begin.get_or_insert(now);
        if let Some(call) = &mut memory.call {
            call.deadline.get_or_insert_with(|| after(now, timeout));
        }
        let state = self.change(step);
        if is_first && state.attempts == 1 {
            state.start_time = Some(now);
        }
    }

    /// Unique to this incarnation, run and hand-out.
    fn execution_id(&self, step: StepIndex) -> String {
        let digest = Sha256::digest(format!("{}/{}", self.spec.uid, self.step(step).name));
        format!(
            "{}-{}-{}",
            self.live.incarnation,
            self.live.dispatches,
            hex::encode(&digest[..8])
        )
    }
}

/// What must be read before a request can be rendered.
fn references(action: &HttpAction) -> References {
    let templates = [&action.url]
        .into_iter()
        .chain(action.headers.iter().map(|(_, value)| value))
        .chain(&action.body);
    let mut references = References::default();
    for reference in templates.flat_map(|template| template.references()) {
        match reference {
            Reference::Secret(key) => references.secrets.insert(key.clone()),
            Reference::ConfigMap(key) => references.configmaps.insert(key.clone()),
            Reference::Trigger(_)
            | Reference::Step { .. }
            | Reference::Param(_)
            | Reference::Run(_) => false,
        };
    }
    references
}
