//! Which results a step has, declared or not.

use super::step::ParsedStep;
use crate::expression::scope::same_but_hyphens;
use crate::flow::{ActionDraft, FlowDraft, ImplicitResult, MAX_STEPS, StepDraft};

/// Per step, the implicit results that something refers to and no mapping shadows, in a fixed order.
pub(super) fn implicit_results(
    parsed: &[ParsedStep],
    draft: &FlowDraft,
) -> Vec<Vec<ImplicitResult>> {
    let wanted = |step, result| {
        parsed
            .iter()
            .any(|other| other.wants.contains(&(step, result)))
    };
    let has_it = |step: &StepDraft, result: ImplicitResult| {
        matches!(step.action, ActionDraft::Http { .. })
            && !mapped_names(step).any(|name| name == result.name())
    };
    let steps = draft.steps.iter().take(MAX_STEPS).enumerate();
    steps
        .map(|(index, step)| {
            ImplicitResult::ALL
                .into_iter()
                .filter(|result| has_it(step, *result) && wanted(index, *result))
                .collect()
        })
        .collect()
}

/// The results that a step declares.
pub(super) fn mapped_names(step: &StepDraft) -> impl Iterator<Item = &str> {
    let mappings: &[_] = match &step.action {
        ActionDraft::Http {
            result_mappings, ..
        } => result_mappings,
        ActionDraft::Transform { mappings } => mappings,
        ActionDraft::Wait { .. } => &[],
    };
    mappings.iter().map(|(name, _)| name.as_str())
}

/// Whether `results.<path>` of a step can ever be there.
pub(super) fn has_result(step: &StepDraft, path: &str) -> bool {
    // In CEL something may be selected from the result.
    let first = path.split('.').next().unwrap_or(path);
    let is_it = |name: &str| same_but_hyphens(name, path) || same_but_hyphens(name, first);
    let implicit = matches!(step.action, ActionDraft::Http { .. })
        && ImplicitResult::ALL
            .iter()
            .any(|result| is_it(result.name()));
    implicit || mapped_names(step).any(is_it)
}
