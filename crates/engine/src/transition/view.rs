//! What expressions see of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::Machine;
use crate::expression::{Scope, StepView};
use crate::flow::{Action, StepIndex, StepName};
use crate::graph::members;
use crate::run::StepState;

impl Machine<'_> {
    /// What expressions of a step see: of the steps those that it depends on, for it can refer to no other.
    pub(super) fn scope(&mut self, step: StepIndex) -> Scope {
        let steps: BTreeMap<StepName, Arc<StepView>> = members(self.flow.graph.dependencies[step])
            .map(|before| (self.step(before).name.clone(), self.view(before)))
            .collect();
        Scope {
            configmaps: self.live.memory[step].values.clone().unwrap_or_default(),
            now: self.instant(step),
            params: self.live.params.clone().unwrap_or_default(),
            steps: Arc::new(steps),
            ..self.run_scope()
        }
    }

    /// What expressions of the run itself see.
    pub(super) fn run_scope(&self) -> Scope {
        let trigger = self.spec.trigger.as_ref();
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
            params: Default::default(),
            steps: Default::default(),
            configmaps: Default::default(),
            now: self.spec.created,
        }
    }

    /// What `now()` gives in a step: the same before and after a crash.
    ///
    /// That is the newest completion that is stored for sure: of the calls and waits before the step, since a transform
    /// is computed again and then completes later. Before any of those, when the run was created.
    fn instant(&self, step: StepIndex) -> Timestamp {
        members(self.flow.graph.ancestors[step])
            .filter(|before| {
                let waited = matches!(self.step(*before).action, Action::Wait(_))
                    && self.state(*before).attempts > 0;
                waited || !self.live.is_recomputable(self.flow, *before)
            })
            .filter_map(|before| self.state(before).completion_time)
            .max()
            .unwrap_or(self.spec.created)
    }

    fn view(&mut self, step: StepIndex) -> Arc<StepView> {
        let state = &self.live.run.steps[step];
        self.live.memory[step]
            .view
            .get_or_insert_with(|| Arc::new(view(state)))
            .clone()
    }
}

fn view(state: &StepState) -> StepView {
    StepView {
        status: state.phase.as_str().to_owned(),
        message: state.message.clone(),
        attempts: state.attempts,
        results: state
            .results
            .iter()
            .map(|result| (result.name.clone(), result.value.clone()))
            .collect(),
    }
}
