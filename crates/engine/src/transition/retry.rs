//! An attempt fails: another one later, or the end. A call that never left is not an attempt.

use std::time::Duration;

use jiff::Timestamp;

use super::{Machine, size};
use crate::advance::WriteNeed;
use crate::flow::StepIndex;
use crate::retry::is_retryable;
use crate::run::reason;

/// A backoff this long is worth a write, so that people see it.
const VISIBLE_BACKOFF: Duration = Duration::from_secs(1);
/// First delay before a call that was not delivered is handed out again; it doubles.
const REDELIVERY_DELAY: Duration = Duration::from_millis(100);
/// The longest such delay.
const MAX_REDELIVERY_DELAY: Duration = Duration::from_secs(2);

impl Machine<'_> {
    /// Starts the backoff, or fails the step when there is no further attempt.
    pub(super) fn attempt_failed(
        &mut self,
        step: StepIndex,
        why: &str,
        message: &str,
        asked: Option<Duration>,
    ) {
        self.live.memory[step].call = None;
        let attempts = self.state(step).attempts;
        let policy = self
            .step(step)
            .retry
            .filter(|_| is_retryable(why) && !self.is_stopping() && !self.live.cancel);
        let Some((policy, delay)) =
            policy.and_then(|policy| Some((policy, policy.delay(attempts, asked)?)))
        else {
            let message = if attempts > 1 {
                format!("attempt {attempts} failed: {message}")
            } else {
                message.to_owned()
            };
            return self.fail(step, why, &message);
        };
        let resume_after = self.now.checked_add(delay).unwrap_or(Timestamp::MAX);
        let room = size::message_room(&self.live.run, step);
        let of = u64::from(policy.max_retries) + 1;
        let state = self.change(step);
        state.resume_after = Some(resume_after);
        state.execution_id = None;
        state.reason = reason::RETRYING.to_owned();
        state.message = size::cut(
            &format!("attempt {attempts} of {of} failed: {message}"),
            room,
        );
        if delay >= VISIBLE_BACKOFF {
            self.need(WriteNeed::Now);
        }
    }

    /// Hands the call out again shortly, without counting an attempt, until the step's time is up.
    pub(super) fn not_delivered(&mut self, step: StepIndex, message: &str) {
        let timeout = self.call_timeout(step);
        let memory = &mut self.live.memory[step];
        let begin = *memory.attempt_begin.get_or_insert(self.now);
        let delay = REDELIVERY_DELAY
            .saturating_mul(1 << memory.undelivered.min(10))
            .min(MAX_REDELIVERY_DELAY);
        let at = self.now.checked_add(delay).unwrap_or(Timestamp::MAX);
        if begin.checked_add(timeout).is_ok_and(|end| at >= end) || self.is_stopping() {
            let message = format!("no executor took the call within {timeout:?}: {message}");
            return self.attempt_failed(step, reason::EXECUTOR_UNAVAILABLE, &message, None);
        }
        let memory = &mut self.live.memory[step];
        memory.undelivered += 1;
        memory.redeliver_at = Some(at);
        self.change(step).execution_id = None;
    }
}
