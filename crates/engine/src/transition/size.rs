//! What a run may hold, so that its status always fits the store.

use crate::flow::{MAX_RESULTS, StepIndex};
use crate::run::{Run, StepResult, StepState};

/// One result, in bytes of its text.
pub(crate) const MAX_RESULT_BYTES: usize = 64 * 1024;
/// All results of a run together, in bytes of their text.
pub(crate) const MAX_RESULTS_BYTES: usize = 256 * 1024;
/// The status, in bytes of its JSON.
pub(crate) const MAX_STATUS_BYTES: usize = 384 * 1024;
/// One message, in bytes of its text.
pub(super) const MAX_MESSAGE_BYTES: usize = 1024;
/// Kept free so that the last write fits.
const RESERVE: usize = 16 * 1024;
/// What a step takes at most beside its results, once its message is cut short.
const STEP_OVERHEAD: usize = 640;
/// A message when room is short.
const SHORT_MESSAGE_BYTES: usize = 48;

/// Whether a step's results fit.
///
/// # Errors
/// A sentence that names what is too large, its size and the limit.
pub(super) fn fits(run: &Run, step: StepIndex, results: &[StepResult]) -> Result<(), String> {
    if results.len() > MAX_RESULTS {
        return Err(format!(
            "the step has {} results, the limit is {MAX_RESULTS}",
            results.len()
        ));
    }
    if let Some(result) = results
        .iter()
        .find(|result| result.value.len() > MAX_RESULT_BYTES)
    {
        return Err(format!(
            "result {} has {} bytes, the limit is {MAX_RESULT_BYTES}",
            result.name,
            result.value.len()
        ));
    }
    let largest = || {
        results
            .iter()
            .max_by_key(|result| result.value.len())
            .map(|result| result.name.as_str())
            .unwrap_or_default()
    };
    let others = run
        .steps
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != step)
        .flat_map(|(_, state)| &state.results);
    let text: usize = others
        .clone()
        .chain(results)
        .map(|result| result.value.len())
        .sum();
    if text > MAX_RESULTS_BYTES {
        return Err(format!(
            "with result {} all results of the run have {text} bytes, the limit is {MAX_RESULTS_BYTES}",
            largest()
        ));
    }
    let json: usize = others.chain(results).map(result_bytes).sum();
    let status = json + run.steps.len() * STEP_OVERHEAD + RESERVE;
    if status > MAX_STATUS_BYTES {
        return Err(format!(
            "with result {} the run's status has {status} bytes, the limit is {MAX_STATUS_BYTES}",
            largest()
        ));
    }
    Ok(())
}

/// How long a step's message may be.
pub(super) fn message_room(run: &Run, step: StepIndex) -> usize {
    let others = run
        .steps
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != step);
    let used: usize = others
        .map(|(_, state)| step_bytes(state).max(STEP_OVERHEAD))
        .sum();
    // JSON may need six bytes for one.
    let free = MAX_STATUS_BYTES.saturating_sub(RESERVE + STEP_OVERHEAD + used);
    (free / 6).clamp(SHORT_MESSAGE_BYTES, MAX_MESSAGE_BYTES)
}

/// The beginning of a text, with `...` when it is cut.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let mut end = room.saturating_sub(3);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

fn step_bytes(state: &StepState) -> usize {
    let fixed = STEP_OVERHEAD - 6 * SHORT_MESSAGE_BYTES;
    fixed + json_bytes(&state.message) + state.results.iter().map(result_bytes).sum::<usize>()
}

fn result_bytes(result: &StepResult) -> usize {
    r#"{"name":"","value":""},"#.len() + json_bytes(&result.name) + json_bytes(&result.value)
}

/// The length of a text as JSON writes it, without the quotes.
fn json_bytes(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
        0x00..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}
