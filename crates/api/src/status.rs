//! The state of a run, to and from `FlowRun.status`, without loss.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kubezap_engine::flow::{Problem, StepName};
use kubezap_engine::run::{self, Run, RunPhase, StepState};

use crate::conditions::{self, DEGRADED, RUNNING, SUCCEEDED, Status};
use crate::flow_run::{FlowRunPhase, FlowRunStatus, StepPhase, StepResult, StepStatus};
use crate::{duration, lower};

/// Stands for no reason in the condition of a run that has ended, where Kubernetes wants one.
const UNSPECIFIED: &str = "Unspecified";

/// Makes the status of a run. `created` is the FlowRun's creationTimestamp, since when a run that has not started is not
/// running.
///
/// [`from_status`] gives the run back, as long as its times are whole microseconds.
pub fn to_status(run: &Run, observed_generation: Option<i64>, created: Timestamp) -> FlowRunStatus {
    let (millis, text) = took(run.start_time, run.completion_time);
    FlowRunStatus {
        observed_generation,
        phase: Some(match run.phase {
            RunPhase::Pending => FlowRunPhase::Pending,
            RunPhase::Running => FlowRunPhase::Running,
            RunPhase::Succeeded => FlowRunPhase::Succeeded,
            RunPhase::Failed => FlowRunPhase::Failed,
            RunPhase::Cancelled => FlowRunPhase::Cancelled,
        }),
        start_time: run.start_time.map(MicroTime),
        completion_time: run.completion_time.map(MicroTime),
        duration_millis: millis,
        duration: text,
        message: some(&run.message),
        flow_revision: run.revision.clone(),
        steps: run.steps.iter().map(step_status).collect(),
        conditions: run_conditions(run, observed_generation, created),
    }
}

/// Says in a status what of the run's spec has no effect, as [`crate::lower::flow_run_degraded`] found it. It has had none since
/// the run was `created`. [`from_status`] takes no notice of it.
pub fn report(status: &mut FlowRunStatus, degraded: &[Problem], created: Timestamp) {
    if let Some(verdict) = lower::degraded(degraded, &[]) {
        let generation = status.observed_generation;
        conditions::set(
            &mut status.conditions,
            DEGRADED,
            &verdict,
            generation,
            created,
        );
    }
}

/// Reads the state of a run from its status.
///
/// A step whose name no Flow can have, as an earlier program may have stored it, gets the empty name.
pub fn from_status(status: &FlowRunStatus) -> Run {
    let phase = match status.phase.unwrap_or_default() {
        FlowRunPhase::Pending => RunPhase::Pending,
        FlowRunPhase::Running => RunPhase::Running,
        FlowRunPhase::Succeeded => RunPhase::Succeeded,
        FlowRunPhase::Failed => RunPhase::Failed,
        FlowRunPhase::Cancelled => RunPhase::Cancelled,
    };
    Run {
        phase,
        reason: status
            .conditions
            .iter()
            .find(|condition| condition.type_ == SUCCEEDED)
            .map(|condition| condition.reason.as_str())
            .filter(|reason| *reason != no_reason(phase))
            .unwrap_or_default()
            .to_owned(),
        message: status.message.clone().unwrap_or_default(),
        start_time: time(&status.start_time),
        completion_time: time(&status.completion_time),
        revision: status.flow_revision.clone(),
        steps: status.steps.iter().map(step_state).collect(),
    }
}

fn step_status(step: &StepState) -> StepStatus {
    let (millis, _) = took(step.start_time, step.completion_time);
    StepStatus {
        name: step.name.as_str().to_owned(),
        phase: Some(match step.phase {
            run::StepPhase::Pending => StepPhase::Pending,
            run::StepPhase::Running => StepPhase::Running,
            run::StepPhase::Waiting => StepPhase::Waiting,
            run::StepPhase::Succeeded => StepPhase::Succeeded,
            run::StepPhase::Failed => StepPhase::Failed,
            run::StepPhase::Skipped => StepPhase::Skipped,
        }),
        start_time: step.start_time.map(MicroTime),
        completion_time: step.completion_time.map(MicroTime),
        duration_millis: millis,
        attempts: (step.attempts > 0).then_some(step.attempts),
        message: some(&step.message),
        reason: some(&step.reason),
        results: step
            .results
            .iter()
            .map(|result| StepResult {
                name: result.name.clone(),
                value: result.value.clone(),
            })
            .collect(),
        resume_after: step.resume_after.map(MicroTime),
        execution_id: step.execution_id.clone(),
    }
}

fn step_state(step: &StepStatus) -> StepState {
    StepState {
        name: StepName::parse(&step.name).unwrap_or_default(),
        phase: match step.phase.unwrap_or_default() {
            StepPhase::Pending => run::StepPhase::Pending,
            StepPhase::Running => run::StepPhase::Running,
            StepPhase::Waiting => run::StepPhase::Waiting,
            StepPhase::Succeeded => run::StepPhase::Succeeded,
            StepPhase::Failed => run::StepPhase::Failed,
            StepPhase::Skipped => run::StepPhase::Skipped,
        },
        start_time: time(&step.start_time),
        completion_time: time(&step.completion_time),
        attempts: step.attempts.unwrap_or_default(),
        message: step.message.clone().unwrap_or_default(),
        reason: step.reason.clone().unwrap_or_default(),
        results: step
            .results
            .iter()
            .map(|result| run::StepResult {
                name: result.name.clone(),
                value: result.value.clone(),
            })
            .collect(),
        resume_after: time(&step.resume_after),
        execution_id: step.execution_id.clone(),
    }
}

/// The conditions follow from the run alone, so that the same run always has the same status.
fn run_conditions(
    run: &Run,
    observed_generation: Option<i64>,
    created: Timestamp,
) -> Vec<Condition> {
    let ended = run.completion_time.or(run.start_time).unwrap_or(created);
    let started = run.start_time.unwrap_or(created);
    let (succeeded, succeeded_since) = match run.phase {
        RunPhase::Pending | RunPhase::Running => (Status::Unknown, created),
        RunPhase::Succeeded => (Status::True, ended),
        RunPhase::Failed | RunPhase::Cancelled => (Status::False, ended),
    };
    let (running, running_since) = match run.phase {
        RunPhase::Pending => (Status::False, created),
        RunPhase::Running => (Status::True, started),
        RunPhase::Succeeded | RunPhase::Failed | RunPhase::Cancelled => (Status::False, ended),
    };
    let reason = match run.reason.as_str() {
        "" => no_reason(run.phase),
        reason => reason,
    };
    let condition = |type_: &str, status: Status, since: Timestamp, message: &str| Condition {
        type_: type_.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation,
        last_transition_time: Time(whole_second(since)),
    };
    vec![
        condition(SUCCEEDED, succeeded, succeeded_since, &run.message),
        condition(RUNNING, running, running_since, ""),
    ]
}

/// The word in a condition's reason for a run that has none.
fn no_reason(phase: RunPhase) -> &'static str {
    match phase {
        RunPhase::Pending | RunPhase::Running => phase.as_str(),
        RunPhase::Succeeded | RunPhase::Failed | RunPhase::Cancelled => UNSPECIFIED,
    }
}

/// How long something took that has a start and an end.
fn took(start: Option<Timestamp>, end: Option<Timestamp>) -> (Option<i64>, Option<String>) {
    let (Some(start), Some(end)) = (start, end) else {
        return (None, None);
    };
    let took = std::time::Duration::try_from(end.duration_since(start)).unwrap_or_default();
    (
        i64::try_from(took.as_millis()).ok(),
        Some(duration::format(took)),
    )
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A stored time; finer parts than microseconds, which only other programs store, are dropped.
fn time(time: &Option<MicroTime>) -> Option<Timestamp> {
    let time = time.as_ref()?.0;
    Some(Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
}

fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
