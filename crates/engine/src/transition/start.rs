//! A step starts, or its call is handed out once more.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::Machine;
use crate::advance::{CallMemory, WriteNeed};
use crate::effect::{Call, Effect, KeyRef, References};
use crate::expression::Reference;
use crate::flow::{Action, HttpAction, StepIndex};
use crate::run::{RunPhase, StepPhase, StepResult, reason};

impl Machine<'_> {
    /// Starts a step whose dependencies are finished: skips it, or does what its action says.
    pub(super) fn start(&mut self, index: StepIndex) {
        if self.skipped_by_dependencies(index) {
            return;
        }
        let step = self.step(index);
        if !step.configmaps.configmaps.is_empty() && self.live.memory[index].values.is_none() {
            if !std::mem::replace(&mut self.live.memory[index].reading, true) {
                self.effects.push(Effect::Read {
                    step: index,
                    references: step.configmaps.clone(),
                });
            }
            return;
        }
        let scope = self.scope(index);
        for condition in &step.when {
            match condition.evaluate(&scope) {
                Ok(true) => {}
                Ok(false) => {
                    return self.skip(
                        index,
                        reason::CONDITION_FALSE,
                        &format!("{} is false", condition.source()),
                    );
                }
                Err(error) => return self.fail(index, error.reason, &format!("when: {error}")),
            }
        }
        self.live.run.phase = RunPhase::Running;
        self.live.run.start_time = self.live.run.start_time.or(Some(self.now));
        let now = self.now;
        match &step.action {
            Action::Http(_) => {
                let state = self.change(index);
                state.phase = StepPhase::Running;
                state.start_time = Some(now);
                state.attempts = 1;
                self.call(index);
            }
            Action::Transform(mappings) => {
                self.change(index).start_time = Some(now);
                let results: Result<Vec<_>, _> = mappings
                    .iter()
                    .map(|(name, template)| {
                        let value = template
                            .render_text(&scope)
                            .map_err(|error| (name, error))?;
                        Ok(StepResult {
                            name: name.clone(),
                            value,
                        })
                    })
                    .collect();
                match results {
                    Ok(results) => self.succeed(index, results, WriteNeed::None),
                    Err((name, error)) => {
                        self.fail(index, error.reason, &format!("mapping {name}: {error}"))
                    }
                }
            }
            Action::Wait(duration) => self.begin_wait(index, *duration),
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
        if !waits || self.state(step).phase != StepPhase::Pending {
            return;
        }
        match result {
            Ok(values) => self.live.memory[step].values = Some(values.clone()),
            Err(missing) => self.fail(step, reason::REFERENCE_NOT_FOUND, missing),
        }
    }

    /// A running step without a call: after a backoff the next attempt starts; after a delivery that failed, or a crash,
    /// the same attempt is handed out again.
    pub(super) fn resume_call(&mut self, step: StepIndex) {
        if self.live.memory[step].call.is_some() {
            return;
        }
        if let Some(resume_after) = self.state(step).resume_after {
            if resume_after > self.now {
                return;
            }
            let state = self.change(step);
            state.resume_after = None;
            state.attempts += 1;
            state.reason.clear();
            state.message.clear();
            self.live.memory[step].attempt_begin = None;
            self.live.memory[step].undelivered = 0;
        }
        if self.live.memory[step]
            .redeliver_at
            .is_none_or(|at| at <= self.now)
        {
            self.call(step);
        }
    }

    /// Hands a call out.
    fn call(&mut self, index: StepIndex) {
        let step = self.step(index);
        let Action::Http(action) = &step.action else {
            return;
        };
        self.live.dispatches += 1;
        let execution_id = self.execution_id(index);
        let memory = &mut self.live.memory[index];
        memory.redeliver_at = None;
        memory.attempt_begin = memory.attempt_begin.or(Some(self.now));
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

    /// Unique to this incarnation, run and hand-out.
    fn execution_id(&self, step: StepIndex) -> String {
        let digest = Sha256::digest(format!("{}/{}", self.spec.uid, self.step(step).name));
        format!(
            "{}-{}-{}",
            self.live.incarnation,
            self.live.dispatches,
            hex::encode(&digest[..5])
        )
    }

    /// The smaller of the step's timeout and the call's own.
    pub(super) fn call_timeout(&self, index: StepIndex) -> Duration {
        let step = self.step(index);
        let own = match &step.action {
            Action::Http(action) => action.timeout,
            Action::Transform(_) | Action::Wait(_) => Duration::MAX,
        };
        step.timeout.map_or(own, |timeout| timeout.min(own))
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
