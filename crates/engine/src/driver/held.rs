//! A run that a driver holds, and how far it has come.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::input::RunKey;
use super::live::Live;
use super::slot::Slot;
use crate::run::{Run, RunSpec};

/// A run and what is known of it whatever its stage.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) key: RunKey,
    pub(super) spec: Arc<RunSpec>,
    pub(super) slot: Slot,
    /// Someone asked for the run to be cancelled.
    pub(super) cancel: bool,
    /// The watch has shown that the run is over, so nothing more of it will come.
    pub(super) left: bool,
    pub(super) stage: Stage,
}

/// How far a run has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Gets the label of its slot.
    Labelling { found: Found, question: Question },
    /// Was under way when it was found; waits for its turn.
    Waiting(Found),
    /// Gets its Flow.
    Loading { found: Found, question: Question },
    /// Under way.
    Live(Box<Live>),
    /// Is read anew before it is decided what to do. With `unless_moved` it is taken up only if its status is still
    /// that one: someone else may be at it.
    Looking {
        unless_moved: Option<Option<Run>>,
        question: Question,
    },
    /// Was given up while an answer was out, which has to come before the run can be taken up `again`.
    Draining { again: bool },
}

/// A run as it was found in the store.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) resource_version: String,
    pub(super) status: Option<Run>,
    /// From a watch, so that what the watch shows later is newer.
    pub(super) by_watch: bool,
}

/// A question to the adapter, asked until it is answered.
#[derive(Debug)]
pub(super) struct Question {
    /// When it is due; `None` while the answer is out.
    due: Option<Timestamp>,
    failures: u32,
}

impl Question {
    pub(super) fn at(due: Timestamp) -> Self {
        Self {
            due: Some(due),
            failures: 0,
        }
    }

    /// Whether it is to be asked now; from then on its answer is out.
    pub(super) fn ask(&mut self, now: Timestamp) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// It is answered, and nothing is out any more.
    pub(super) fn answered(&mut self, now: Timestamp) {
        self.due = Some(now);
    }

    /// It had no answer; it is asked again after a delay that depends on how often that has happened.
    pub(super) fn failed(&mut self, now: Timestamp, backoff: impl FnOnce(u32) -> Duration) {
        self.failures = self.failures.saturating_add(1);
        self.due = Some(now + backoff(self.failures));
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        self.due
    }

    pub(super) fn is_out(&self) -> bool {
        self.due.is_none()
    }
}

impl Held {
    /// An answer of the adapter is awaited.
    pub(super) fn awaits_answer(&self) -> bool {
        match &self.stage {
            Stage::Labelling { question, .. }
            | Stage::Loading { question, .. }
            | Stage::Looking { question, .. } => question.is_out(),
            Stage::Live(live) => live.awaits_answer(),
            Stage::Waiting(_) => false,
            Stage::Draining { .. } => true,
        }
    }
}
