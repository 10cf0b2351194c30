//! Someone cancels the run.

use super::Machine;
use crate::graph::members;
use crate::run::{RunPhase, StepPhase, reason};

impl Machine<'_> {
    /// Nothing new starts, calls in flight are aborted, the run is over.
    pub(super) fn cancel(&mut self) {
        let out = self.calls_out();
        self.abort_calls();
        for step in members(out) {
            self.conclude(
                step,
                StepPhase::Failed,
                reason::CANCELED,
                "the run was cancelled while the call was out",
            );
        }
        self.end(
            RunPhase::Cancelled,
            reason::CANCELLED,
            "cancelled by the annotation kubezap.io/cancel".to_owned(),
        );
    }
}
