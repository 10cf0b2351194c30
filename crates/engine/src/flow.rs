//! A Flow as its author wrote it ([`FlowDraft`]), and after every check that needs no cluster ([`Flow`]).

use std::sync::Arc;
use std::time::Duration;

use crate::effect::References;
use crate::expression::{Condition, ResultMapping, Template};
use crate::graph::Graph;
use crate::retry::RetryPolicy;

mod validate;

/// The most steps a Flow may have.
pub const MAX_STEPS: usize = 128;

/// The most results a step may have, those included that it has without declaring them and something refers to.
pub const MAX_RESULTS: usize = 64;

/// A step's name: `^[a-z][a-z0-9-]*$`, at most 63 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepName(Arc<str>);

impl Default for StepName {
    fn default() -> Self {
        Self("".into())
    }
}

impl StepName {
    /// Takes a name of the form above; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = text.len() <= 63
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        valid.then(|| Self(text.into()))
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for StepName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Position of a step in its Flow, from 0.
pub type StepIndex = usize;

/// What an author wrote, with durations and enumerations already read. Texts are not parsed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDraft {
    /// The Flow's name (or, for a Trigger's `action`, the Trigger's).
    pub name: String,
    /// The most a run may take.
    pub timeout: Duration,
    /// What a failed step without `onFailure` does to the run.
    pub failure_policy: OnFailure,
    /// Declared parameters.
    pub params: Vec<Param>,
    /// Steps in the author's order.
    pub steps: Vec<StepDraft>,
}

/// One declared parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Without a value from anywhere, a run fails.
    pub required: bool,
    /// A literal.
    pub default: Option<String>,
}

/// One step as written.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDraft {
    /// Its name.
    pub name: String,
    /// Steps that finish first.
    pub run_after: Vec<String>,
    /// CEL conditions, all of which hold or the step is skipped.
    pub when: Vec<String>,
    /// What it does.
    pub action: ActionDraft,
    /// Retries; `None` is one attempt.
    pub retry: Option<RetryPolicy>,
    /// Bounds one attempt.
    pub timeout: Option<Duration>,
    /// What its failure does; `None` takes the Flow's failure policy.
    pub on_failure: Option<OnFailure>,
}

/// What a step does, as written.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionDraft {
    /// An HTTP request.
    Http {
        /// Template of an absolute URL.
        url: String,
        /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
        method: String,
        /// Header name to template.
        headers: Vec<(String, String)>,
        /// Template.
        body: Option<String>,
        /// Bounds one call.
        timeout: Duration,
        /// Result name to JSONPath.
        result_mappings: Vec<(String, String)>,
    },
    /// Values computed from what the run already holds.
    Transform {
        /// Result name to template.
        mappings: Vec<(String, String)>,
    },
    /// A pause.
    Wait {
        /// How long.
        duration: Duration,
    },
}

/// What a step's failure does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Stops the run.
    #[default]
    Fail,
    /// Leaves the step Failed and lets its dependents run.
    Continue,
    /// Counts the step as Skipped.
    Skip,
}

/// A Flow that can run: names unique, expressions parsed, references known, no cycle.
#[derive(Debug)]
pub struct Flow {
    /// The draft's name.
    pub name: String,
    /// The most a run may take.
    pub timeout: Duration,
    /// Declared parameters.
    pub params: Vec<Param>,
    /// Steps in the author's order.
    pub steps: Vec<Step>,
    /// Who waits for whom.
    pub graph: Graph,
    /// What an author should know though the Flow runs, for example an unknown root that stays text.
    pub warnings: Vec<Problem>,
}

impl Flow {
    /// Checks a draft.
    ///
    /// # Errors
    /// Every problem of the draft, each with its path, in the order of the steps.
    pub fn new(draft: FlowDraft) -> Result<Self, Vec<Problem>> {
        validate::validate(draft)
    }
}

/// One validated step.
#[derive(Debug)]
pub struct Step {
    /// Its name.
    pub name: StepName,
    /// Conditions.
    pub when: Vec<Condition>,
    /// What it does.
    pub action: Action,
    /// Retries.
    pub retry: Option<RetryPolicy>,
    /// Bounds one attempt.
    pub timeout: Option<Duration>,
    /// What its failure does, the Flow's policy already applied.
    pub on_failure: OnFailure,
    /// Which implicit results (`status`, `statusCode`, `body`) something in the Flow refers to and no mapping
    /// of the same name shadows.
    pub implicit_results: Vec<ImplicitResult>,
    /// ConfigMap keys that its conditions and transform name; read before they are evaluated.
    pub configmaps: References,
}

/// A result that every http step has without declaring it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitResult {
    /// `status`: the HTTP status code in decimal.
    Status,
    /// `statusCode`: the same.
    StatusCode,
    /// `body`: the response body as text.
    Body,
}

impl ImplicitResult {
    /// All of them, in the order in which they are stored.
    pub(crate) const ALL: [Self; 3] = [Self::Status, Self::StatusCode, Self::Body];

    /// Its name in `steps.<name>.results.<result>`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::StatusCode => "statusCode",
            Self::Body => "body",
        }
    }

    /// Which ones a reference to `results.<name>` means; `results` alone means all.
    pub(crate) fn named_by(field: &str) -> Vec<Self> {
        match field.strip_prefix("results") {
            Some("") => Self::ALL.to_vec(),
            Some(rest) => Self::ALL
                .into_iter()
                .filter(|result| rest.strip_prefix('.') == Some(result.name()))
                .collect(),
            None => Vec::new(),
        }
    }
}

/// A validated action.
#[derive(Debug)]
pub enum Action {
    /// An HTTP request.
    Http(Arc<HttpAction>),
    /// Result name to template.
    Transform(Vec<(String, Template)>),
    /// A pause.
    Wait(Duration),
}

/// A validated http action.
#[derive(Debug)]
pub struct HttpAction {
    /// Absolute URL.
    pub url: Template,
    /// Method.
    pub method: String,
    /// Header name to template, names as written.
    pub headers: Vec<(String, Template)>,
    /// Body.
    pub body: Option<Template>,
    /// Bounds one call.
    pub timeout: Duration,
    /// Result name to JSONPath.
    pub result_mappings: Vec<(String, ResultMapping)>,
}

/// Something wrong with a manifest: where and what, with what to do when that is not obvious.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path inside the object, such as `spec.steps[2].action.http.url`.
    pub path: String,
    /// One sentence without a full stop.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}
