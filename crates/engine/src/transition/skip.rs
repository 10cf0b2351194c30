//! A step does not run: its condition is false, or all it runs after was skipped.

use super::Machine;
use crate::advance::WriteNeed;
use crate::flow::StepIndex;
use crate::graph::members;
use crate::run::{StepPhase, reason};

impl Machine<'_> {
    /// Looks at `runAfter` only: a dependency inferred from an expression delays, and does not skip.
    pub(super) fn skipped_by_dependencies(&mut self, step: StepIndex) -> bool {
        let run_after = self.flow.graph.run_after[step];
        let cascade = run_after != 0
            && members(run_after).all(|before| self.state(before).phase == StepPhase::Skipped);
        if cascade {
            self.conclude_because(
                step,
                StepPhase::Skipped,
                reason::DEPENDENCY_SKIPPED,
                "every step it runs after was skipped",
            );
        }
        cascade
    }

    /// A condition is false.
    pub(super) fn skip(&mut self, step: StepIndex, condition: &str) {
        let message = format!("{condition} is false");
        self.conclude_because(step, StepPhase::Skipped, reason::CONDITION_FALSE, &message);
        if !self.live.is_recomputable(self.flow, step) {
            self.need(WriteNeed::Soon);
        }
    }
}
