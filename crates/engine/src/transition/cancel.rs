//! Someone cancels the run.

use super::Machine;
use crate::run::{RunPhase, reason};

impl Machine<'_> {
    /// Nothing new starts, calls in flight are aborted, the run is over.
    pub(super) fn cancel(&mut self) {
        self.end(
            RunPhase::Cancelled,
            reason::CANCELLED,
            "cancelled by the annotation kubezap.io/cancel".to_owned(),
        );
    }
}
