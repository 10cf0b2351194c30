//! A step does not run: its condition is false, or all it runs after was skipped.

use super::Machine;
use crate::advance::in_phase;
use crate::flow::StepIndex;
use crate::run::{StepPhase, reason};

impl Machine<'_> {
    /// Looks at `runAfter` only: a dependency inferred from an expression delays, and does not skip.
    pub(super) fn skipped_by_dependencies(&mut self, step: StepIndex) -> bool {
        let run_after = self.flow.graph.run_after[step];
        let skipped = in_phase(&self.live.run, |phase| phase == StepPhase::Skipped);
        let cascade = run_after != 0 && run_after & !skipped == 0;
        if cascade {
            self.skip(
                step,
                reason::DEPENDENCY_SKIPPED,
                "every step it runs after was skipped",
            );
        }
        cascade
    }

    pub(super) fn skip(&mut self, step: StepIndex, reason: &str, message: &str) {
        self.conclude(step, StepPhase::Skipped, reason, message);
    }
}
