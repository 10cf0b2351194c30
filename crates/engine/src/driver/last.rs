//! States that are written without the Flow: what a run looks like that cannot go on.

use jiff::Timestamp;

use crate::advance::whole_micros;
use crate::run::{Run, RunPhase, StepPhase, StepState, reason};
use crate::transition::size::{MAX_MESSAGE_BYTES, cut};

/// A run that fails before it can advance, with all that is known of its steps.
pub(super) fn failed(stored: Option<&Run>, why: &str, message: &str, now: Timestamp) -> Run {
    let now = whole_micros(now);
    let mut run = stored.cloned().unwrap_or_default();
    for step in run.steps.iter_mut().filter(|step| !step.phase.is_final()) {
        let started = step.phase == StepPhase::Running;
        step.phase = ended(step.phase);
        step.completion_time = Some(now);
        step.resume_after = None;
        step.reason = if started { why } else { reason::NOT_REACHED }.to_owned();
        step.message.clear();
    }
    run.phase = RunPhase::Failed;
    run.reason = why.to_owned();
    run.message = cut(message, MAX_MESSAGE_BYTES, usize::MAX);
    run.completion_time = Some(now);
    run
}

/// A run whose status the store refused: every step by name and phase only, so that this one always fits.
pub(super) fn minimal(run: &Run, now: Timestamp) -> Run {
    Run {
        phase: RunPhase::Failed,
        reason: reason::STATUS_REFUSED.to_owned(),
        message: "the API server refused the run's status; its results are lost".to_owned(),
        start_time: run.start_time,
        completion_time: Some(whole_micros(now)),
        revision: run.revision.clone(),
        steps: run
            .steps
            .iter()
            .map(|step| StepState {
                name: step.name.clone(),
                phase: ended(step.phase),
                ..StepState::default()
            })
            .collect(),
    }
}

/// A step before it started.
pub(super) fn pending(step: &StepState) -> StepState {
    StepState {
        name: step.name.clone(),
        ..StepState::default()
    }
}

fn ended(phase: StepPhase) -> StepPhase {
    match phase {
        StepPhase::Running => StepPhase::Failed,
        StepPhase::Pending | StepPhase::Waiting => StepPhase::Skipped,
        StepPhase::Succeeded | StepPhase::Failed | StepPhase::Skipped => phase,
    }
}
