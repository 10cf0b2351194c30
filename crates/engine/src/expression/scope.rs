//! What expressions can see.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::EvalError;
use crate::effect::KeyRef;
use crate::event::{Body, Event};
use crate::flow::StepName;
use crate::secret::{Credentials, Secret};

/// Everything an expression can refer to, credentials excepted.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// What fired the run.
    pub event: Arc<Event>,
    /// Name and type of the Trigger, empty for a manual run: `trigger.name`, `trigger.type`.
    pub trigger_name: String,
    /// See `trigger_name`.
    pub trigger_type: String,
    /// `run.name`.
    pub run_name: String,
    /// `run.namespace`, also `trigger.namespace`.
    pub run_namespace: String,
    /// `run.uid`.
    pub run_uid: String,
    /// Resolved parameters.
    pub params: Arc<BTreeMap<String, String>>,
    /// Every step that the expressions refer to.
    pub steps: Arc<BTreeMap<StepName, Arc<StepView>>>,
    /// ConfigMap keys that were read for this step.
    pub configmaps: BTreeMap<KeyRef, String>,
    /// What `now()` gives: deterministic, see the engine's durability rules.
    pub now: Timestamp,
}

/// A step as expressions see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepView {
    /// Its phase as `status.steps[].phase` spells it.
    pub status: String,
    /// Its message.
    pub message: String,
    /// Attempts that started.
    pub attempts: u32,
    /// Results by name, implicit ones included.
    pub results: BTreeMap<String, String>,
}

impl Scope {
    /// A step by its name as written: exactly, else with underscores for hyphens.
    pub(crate) fn step(&self, written: &str) -> Option<(&StepName, &StepView)> {
        let named = |matches: fn(&str, &str) -> bool| {
            self.steps
                .iter()
                .find(|(name, _)| matches(name.as_str(), written))
                .map(|(name, view)| (name, &**view))
        };
        named(|name, written| name == written).or_else(|| named(same_but_hyphens))
    }

    /// A scalar of `trigger`, the empty text when it does not apply; `None` when there is no such scalar.
    pub(crate) fn trigger_scalar(&self, name: &str) -> Option<&str> {
        match name {
            "name" => Some(&self.trigger_name),
            "type" => Some(&self.trigger_type),
            "namespace" => Some(&self.run_namespace),
            name => self.event.scalar(name),
        }
    }
}

impl StepView {
    /// A result by its name as written: exactly, else with underscores for hyphens.
    pub(crate) fn result(&self, written: &str) -> Option<&str> {
        self.results
            .get(written)
            .or_else(|| {
                self.results
                    .iter()
                    .find(|(name, _)| same_but_hyphens(name, written))
                    .map(|(_, value)| value)
            })
            .map(String::as_str)
    }
}

/// Whether two names are equal when hyphens are read as underscores.
pub(crate) fn same_but_hyphens(left: &str, right: &str) -> bool {
    let folded = |byte: u8| if byte == b'-' { b'_' } else { byte };
    left.len() == right.len() && left.bytes().map(folded).eq(right.bytes().map(folded))
}

/// What all expressions of one rendering may cost together.
const RENDERING_BUDGET: i64 = 100_000;

/// A scope for the length of one rendering: with the credentials that may be used, and the body read at most once.
pub(crate) struct View<'s> {
    pub(crate) scope: &'s Scope,
    credentials: Option<&'s Credentials>,
    body: OnceCell<Body>,
    /// What is left of the budget of this rendering.
    pub(crate) budget: Cell<i64>,
}

impl<'s> View<'s> {
    /// Without credentials only the scope's own ConfigMaps can be seen, and no Secret.
    pub(crate) fn new(scope: &'s Scope, credentials: Option<&'s Credentials>) -> Self {
        Self {
            scope,
            credentials,
            body: OnceCell::new(),
            budget: Cell::new(RENDERING_BUDGET),
        }
    }

    pub(crate) fn body(&self) -> &Body {
        self.body.get_or_init(|| Body::of(&self.scope.event))
    }

    pub(crate) fn secret(&self, key: &KeyRef) -> Result<&'s Secret, EvalError> {
        self.credentials
            .and_then(|credentials| credentials.secrets.get(key))
            .ok_or_else(|| {
                EvalError::not_found(format!("secret {} has no key {}", key.name, key.key))
            })
    }

    pub(crate) fn configmap(&self, key: &KeyRef) -> Result<&'s str, EvalError> {
        self.credentials
            .and_then(|credentials| credentials.configmaps.get(key))
            .or_else(|| self.scope.configmaps.get(key))
            .map(String::as_str)
            .ok_or_else(|| {
                EvalError::not_found(format!("configmap {} has no key {}", key.name, key.key))
            })
    }
}
