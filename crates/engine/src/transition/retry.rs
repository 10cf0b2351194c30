//! An attempt fails: another one later, or the end. A call that never left is not an attempt.

use std::time::Duration;

use jiff::Timestamp;

use super::{Machine, after};
use crate::advance::WriteNeed;
use crate::flow::StepIndex;
use crate::retry::is_retryable;
use crate::run::{StepPhase, StepResult, reason};

/// A backoff this long is worth a write, so that people see it.
const VISIBLE_BACKOFF: Duration = Duration::from_secs(1);
/// First delay before a call that was not delivered is handed out again; it doubles.
const REDELIVERY_DELAY: Duration = Duration::from_millis(100);
/// The longest such delay.
const MAX_REDELIVERY_DELAY: Duration = Duration::from_secs(2);

/// A failed attempt.
pub(super) struct Failed<'a> {
    pub(super) why: &'static str,
    pub(super) message: &'a str,
    /// How long the target asks us to wait.
    pub(super) retry_after: Option<Duration>,
    /// What the step still leaves for others if this was its last attempt.
    pub(super) results: Vec<StepResult>,
}

impl<'a> Failed<'a> {
    pub(super) fn new(why: &'static str, message: &'a str) -> Self {
        Self {
            why,
            message,
            retry_after: None,
            results: Vec::new(),
        }
    }
}

impl Machine<'_> {
    /// Starts the backoff, or fails the step when there is no further attempt.
    pub(super) fn attempt_failed(&mut self, step: StepIndex, failed: Failed<'_>) {
        // An answer to a call means that it left, even if nobody said so.
        self.begin();
        let memory = &mut self.live.memory[step];
        memory.call = None;
        memory.unsent = false;
        memory.last_failure = Some(failed.why);
        let attempts = self.state(step).attempts;
        let delay = self
            .step(step)
            .retry
            .filter(|_| is_retryable(failed.why) && !self.live.stopping)
            .and_then(|policy| Some((policy, policy.delay(attempts, failed.retry_after)?)));
        let Some((policy, delay)) = delay else {
            self.keep_results(step, failed.results);
            return if attempts > 1 {
                let message = format!("{} (after {attempts} attempts)", failed.message);
                self.fail(step, failed.why, &message)
            } else {
                self.fail(step, failed.why, failed.message)
            };
        };
        let of = u64::from(policy.max_retries) + 1;
        let message = format!("attempt {attempts} of {of} failed: {}", failed.message);
        self.set_message(step, &message);
        let resume_after = after(self.now, delay);
        let state = self.change(step);
        state.resume_after = Some(resume_after);
        state.execution_id = None;
        state.reason = reason::RETRYING.to_owned();
        if delay >= VISIBLE_BACKOFF {
            self.need(WriteNeed::Now);
        }
    }

    /// Hands the call out again shortly, without counting an attempt, until the step's time is up.
    pub(super) fn not_delivered(&mut self, step: StepIndex, message: &str) {
        let timeout = self.call_timeout(step);
        let memory = &mut self.live.memory[step];
        memory.unsent = true;
        let begin = *memory.attempt_begin.get_or_insert(self.now);
        let delay = REDELIVERY_DELAY
            .saturating_mul(1 << memory.undelivered.min(10))
            .min(MAX_REDELIVERY_DELAY);
        let at = after(self.now, delay);
        if at >= after(begin, timeout) {
            let message = format!("no executor took the call within {timeout:?}: {message}");
            return self.attempt_failed(step, Failed::new(reason::EXECUTOR_UNAVAILABLE, &message));
        }
        memory.undelivered = memory.undelivered.saturating_add(1);
        memory.redeliver_at = Some(at);
        self.change(step).execution_id = None;
    }

    /// A running step without a call: after a backoff the next attempt starts; a call that was not delivered is handed
    /// out again; and so is one whose answer was lost in a crash, as a new attempt.
    pub(super) fn resume_call(&mut self, step: StepIndex) {
        let memory = &self.live.memory[step];
        if memory.call.is_some() || self.next_attempt(step).is_some_and(|at| at > self.now) {
            return;
        }
        if !memory.unsent {
            let memory = &mut self.live.memory[step];
            memory.attempt_begin = None;
            memory.undelivered = 0;
            let state = self.change(step);
            state.resume_after = None;
            state.attempts = state.attempts.saturating_add(1);
            state.reason.clear();
        }
        self.call(step);
    }

    /// When a step's call is due that is not out; `None` for any other step, and when it is due at once.
    pub(super) fn next_attempt(&self, step: StepIndex) -> Option<Timestamp> {
        let state = self.state(step);
        if state.phase != StepPhase::Running {
            return None;
        }
        state.resume_after.or(self.live.memory[step].redeliver_at)
    }
}
