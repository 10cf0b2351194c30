//! What a run asks of the world. Data only; a shell carries it out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::expression::Scope;
use crate::flow::{HttpAction, StepIndex};

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Render and send a request, then report `Observation::CallFinished`.
    Call(Box<Call>),
    /// Read ConfigMaps that a `when` or a transform needs, then report `Observation::ReferencesRead`.
    Read {
        /// Which step needs them.
        step: StepIndex,
        /// What to read; secrets is always empty here.
        references: References,
    },
    /// Close the socket of a call in flight; no observation follows.
    Abort {
        /// Which call.
        execution_id: String,
    },
}

/// A call to make. Credentials are not in it: [`crate::render::render`] puts them in at the last moment.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which step it is for.
    pub step: StepIndex,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Never used twice.
    pub execution_id: String,
    /// `<run uid>/<step>`, the same for every attempt.
    pub idempotency_key: String,
    /// The most this call may take, from the moment it is dispatched.
    pub timeout: Duration,
    /// What to render.
    pub action: Arc<HttpAction>,
    /// What the templates can see; without configmaps and secrets.
    pub scope: Scope,
    /// What must be read before rendering.
    pub references: References,
}

/// Secrets and ConfigMaps that templates name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Keys of Secrets.
    pub secrets: BTreeSet<KeyRef>,
    /// Keys of ConfigMaps.
    pub configmaps: BTreeSet<KeyRef>,
}

/// A key of a Secret or ConfigMap in the run's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRef {
    /// The object's name.
    pub name: String,
    /// The key in it.
    pub key: String,
}
