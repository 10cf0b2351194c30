//! Steps by the names that manifests write.

use std::collections::BTreeMap;

use crate::flow::{FlowDraft, MAX_STEPS, StepIndex};

/// Finds steps by name, as written or with underscores for hyphens.
pub(super) struct Names {
    pub(super) exact: BTreeMap<String, StepIndex>,
    folded: BTreeMap<String, StepIndex>,
}

impl Names {
    pub(super) fn of(draft: &FlowDraft) -> Self {
        let mut names = Self {
            exact: BTreeMap::new(),
            folded: BTreeMap::new(),
        };
        for (index, step) in draft.steps.iter().enumerate().take(MAX_STEPS) {
            names.exact.entry(step.name.clone()).or_insert(index);
            names
                .folded
                .entry(step.name.replace('-', "_"))
                .or_insert(index);
        }
        names
    }

    pub(super) fn find(&self, written: &str) -> Option<StepIndex> {
        self.exact
            .get(written)
            .or_else(|| self.folded.get(&written.replace('-', "_")))
            .copied()
    }
}
