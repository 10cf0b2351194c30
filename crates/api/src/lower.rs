//! From a spec to what the engine runs. Nothing else reads a spec.
//!
//! What cannot be carried out is a [`Problem`] with its path inside the object, so that a condition, `kubezap lint` and
//! `kubezap dev` say the same. What this version does not carry out yet is never passed over in silence: it stops the object
//! from being Ready ([`Lowered::not_supported`]) when it narrows access or changes a target, and is reported
//! ([`Lowered::degraded`]) otherwise.

mod auth;
mod connection;
mod event;
mod flow;
mod run;
mod trigger;

use std::sync::Arc;
use std::time::Duration;

use kubezap_engine::flow::{Flow, Problem};

pub use self::connection::{Reported, integration, webhook_gateway_config};
pub use self::event::{event, trigger_data};
pub use self::flow::{action, flow};
pub use self::run::{flow_run, flow_run_degraded, run_object};
pub use self::trigger::{Auth, TriggerLowered, WebhookRoute, hook_path, trigger};
use crate::conditions::{Status, Verdict, reason};

/// What became of a Flow, or of a Trigger's action.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The Flow, or why it cannot run. Always an error when something is not supported; then it holds whatever else is wrong and
    /// may be empty.
    pub flow: Result<Arc<Flow>, Vec<Problem>>,
    /// What this version cannot do. The Flow is not Ready.
    pub not_supported: Vec<Problem>,
    /// What has no effect yet. The Flow runs all the same.
    pub degraded: Vec<Problem>,
    /// Blocks beside the one that `type` names.
    pub unused: Vec<Problem>,
}

impl Lowered {
    /// Judges the condition `Ready`.
    pub fn ready(&self) -> Verdict {
        let problems = self.flow.as_ref().err().map_or(&[][..], Vec::as_slice);
        ready(reason::FLOW_READY, problems, &self.not_supported)
    }

    /// Judges the condition `Degraded`; `None` when it should not be there.
    pub fn degraded(&self) -> Option<Verdict> {
        degraded(&self.degraded, &self.unused)
    }
}

/// Judges `Ready`: what is wrong comes before what is not supported.
pub(crate) fn ready(
    good: &'static str,
    problems: &[Problem],
    not_supported: &[Problem],
) -> Verdict {
    let (status, reason, message) = if !problems.is_empty() {
        (Status::False, reason::INVALID_SPEC, joined(problems))
    } else if !not_supported.is_empty() {
        (
            Status::False,
            reason::NOT_YET_SUPPORTED,
            joined(not_supported),
        )
    } else {
        (Status::True, good, String::new())
    };
    Verdict {
        status,
        reason,
        message,
    }
}

pub(crate) fn degraded(degraded: &[Problem], unused: &[Problem]) -> Option<Verdict> {
    let reason = match (degraded, unused) {
        ([], []) => return None,
        ([], _) => reason::UNUSED_BLOCK,
        _ => reason::NO_EFFECT,
    };
    let all: Vec<_> = degraded.iter().chain(unused).cloned().collect();
    Some(Verdict {
        status: Status::True,
        reason,
        message: joined(&all),
    })
}

/// Writes problems for people, in one line.
fn joined(problems: &[Problem]) -> String {
    let texts: Vec<_> = problems.iter().map(Problem::to_string).collect();
    texts.join("; ")
}

/// Reads a duration, Go's or with `d`.
///
/// # Errors
/// A sentence for people.
pub fn duration(text: &str) -> Result<Duration, String> {
    crate::duration::parse(text).map_err(|error| error.to_string())
}

pub(crate) fn problem(path: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem {
        path: path.into(),
        message: message.into(),
    }
}

/// Reads a duration at a path; a bad one is added to the problems and gives `fallback`.
pub(crate) fn duration_at(
    problems: &mut Vec<Problem>,
    path: &str,
    text: &str,
    fallback: Duration,
) -> Duration {
    duration(text).unwrap_or_else(|message| {
        problems.push(problem(path, message));
        fallback
    })
}

/// As [`duration_at`], for a duration that must not be zero.
pub(crate) fn positive_duration_at(
    problems: &mut Vec<Problem>,
    path: &str,
    text: &str,
    fallback: Duration,
) -> Duration {
    let read = duration_at(problems, path, text, fallback);
    if read.is_zero() {
        problems.push(problem(path, "must be longer than 0"));
        return fallback;
    }
    read
}

/// Reports blocks that are given and are not the one that `type` names.
///
/// A type that no block belongs to leaves it open which block counts, so nothing is reported.
pub(crate) fn unused_blocks<T: Copy + PartialEq>(
    unused: &mut Vec<Problem>,
    at: &str,
    type_: T,
    blocks: &[(&str, bool, T)],
) {
    let Some((named, _, _)) = blocks.iter().find(|(_, _, of)| *of == type_) else {
        return;
    };
    for (block, given, of) in blocks {
        if *given && *of != type_ {
            unused.push(problem(
                format!("{at}.{block}"),
                format!("has no effect beside {named}, which type names"),
            ));
        }
    }
}

/// The text for a `type` that an earlier schema let in.
pub(crate) const UNKNOWN_TYPE: &str = "is a word that this version does not know";
