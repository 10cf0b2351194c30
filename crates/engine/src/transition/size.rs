//! What a run may hold, so that its status always fits the store.

use crate::advance::LiveRun;
use crate::flow::{MAX_RESULTS, StepIndex};
use crate::run::{StepResult, StepState};

/// One result, in bytes of its text.
pub(crate) const MAX_RESULT_BYTES: usize = 64 * 1024;
/// All results of a run together, in bytes of their text.
pub(crate) const MAX_RESULTS_BYTES: usize = 256 * 1024;
/// The status, in bytes of its JSON.
pub(crate) const MAX_STATUS_BYTES: usize = 384 * 1024;
/// One message, in bytes of its text.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1024;
/// Kept free so that the last write fits: the run's own message, twice, and what is not the steps'.
const RESERVE: usize = 16 * 1024;
/// What a step takes at most beside its results and its message: the longest name, times, reason and execution id.
pub(crate) const STEP_BYTES: usize = 512;
/// What a message may always take, in bytes of its JSON.
const SHORT_MESSAGE_BYTES: usize = 128;

/// What the changing parts of a step take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepSize {
    /// Its results, in bytes of their text.
    text: usize,
    /// Its results, in bytes of their JSON.
    results: usize,
    /// Its message, in bytes of its JSON.
    message: usize,
}

impl StepSize {
    pub(crate) fn of(state: &StepState) -> Self {
        let mut size = Self::default();
        size.message(&state.message);
        size.results(&state.results);
        size
    }

    /// Takes in a new message.
    pub(super) fn message(&mut self, message: &str) {
        self.message = json_bytes(message);
    }

    /// Takes in new results.
    pub(super) fn results(&mut self, results: &[StepResult]) {
        self.text = results.iter().map(|result| result.value.len()).sum();
        self.results = results.iter().map(result_bytes).sum();
    }

    /// What the step takes in the status; room for a short message is kept in every step.
    fn status(&self) -> usize {
        STEP_BYTES + self.results + self.message.max(SHORT_MESSAGE_BYTES)
    }
}

impl LiveRun {
    /// Whether a step's results fit.
    ///
    /// # Errors
    /// A sentence that names what is too large, its size and the limit.
    pub(super) fn fits(&self, step: StepIndex, results: &[StepResult]) -> Result<(), String> {
        if results.len() > MAX_RESULTS {
            return Err(format!(
                "the step has {} results, the limit is {MAX_RESULTS}",
                results.len()
            ));
        }
        let largest = results.iter().max_by_key(|result| result.value.len());
        let Some(StepResult { name, value }) = largest else {
            return Ok(());
        };
        if value.len() > MAX_RESULT_BYTES {
            return Err(format!(
                "result {name} has {} bytes, the limit is {MAX_RESULT_BYTES}",
                value.len()
            ));
        }
        let mut size = StepSize::default();
        size.results(results);
        let text = size.text + self.others(step).map(|other| other.text).sum::<usize>();
        if text > MAX_RESULTS_BYTES {
            return Err(format!(
                "with result {name} of {} bytes all results of the run have {text} bytes, the limit is {MAX_RESULTS_BYTES}",
                value.len()
            ));
        }
        let status =
            RESERVE + size.status() + self.others(step).map(StepSize::status).sum::<usize>();
        if status > MAX_STATUS_BYTES {
            return Err(format!(
                "with result {name} of {} bytes the run's status would have {status} bytes, the limit is {MAX_STATUS_BYTES}",
                value.len()
            ));
        }
        Ok(())
    }

    /// A step's message as far as there is room for it.
    pub(super) fn cut_message(&self, step: StepIndex, message: &str) -> String {
        let results = self.memory[step].size.results;
        let others: usize = self.others(step).map(StepSize::status).sum();
        let free = MAX_STATUS_BYTES.saturating_sub(RESERVE + STEP_BYTES + results + others);
        cut(message, MAX_MESSAGE_BYTES, free.max(SHORT_MESSAGE_BYTES))
    }

    fn others(&self, step: StepIndex) -> impl Iterator<Item = &StepSize> {
        let steps = self.memory.iter().enumerate();
        steps
            .filter(move |(index, _)| *index != step)
            .map(|(_, memory)| &memory.size)
    }
}

/// The beginning of a text, with `...` when it is cut: within `most` bytes, and `most_json` as JSON writes it.
pub(crate) fn cut(text: &str, most: usize, most_json: usize) -> String {
    const MARK: &str = "...";
    let (mut fits, mut json) = (0, 0);
    for (at, c) in text.char_indices() {
        json += json_bytes(&text[at..at + c.len_utf8()]);
        let end = at + c.len_utf8();
        if end > most || json > most_json {
            return format!("{}{MARK}", &text[..fits]);
        }
        if end + MARK.len() <= most && json + MARK.len() <= most_json {
            fits = end;
        }
    }
    text.to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_results_and_message_never_takes_more_than_is_reckoned() {
        let time = "2026-12-01T08:00:00.123456Z";
        let longest = serde_json::json!({
            "name": "s".repeat(63), "phase": "Succeeded", "startTime": time, "completionTime": time,
            "durationMillis": i64::MAX, "attempts": u32::MAX, "message": "", "reason": "DependencySkipped",
            "results": [], "resumeAfter": time, "executionID": format!("{}-{}-{}", "i".repeat(32), u64::MAX, "0".repeat(16)),
        });
        let bytes = longest.to_string().len() + ",".len();
        assert!(bytes <= STEP_BYTES, "{bytes}");
    }

    #[test]
    fn json_bytes_are_those_that_serde_writes() {
        for text in [
            "",
            "abc",
            "\"\\/",
            "\n\r\t\u{8}\u{c}",
            "\u{0}\u{1f}\u{7f}",
            "\u{e4}\u{20ac}\u{1f600}",
        ] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(json_bytes(text), json.len() - 2, "{text:?}");
        }
    }

    #[test]
    fn a_text_is_cut_to_both_bounds_at_a_character() {
        assert_eq!(cut("abcdef", 6, 6), "abcdef");
        assert_eq!(cut("abcdefg", 6, 99), "abc...");
        assert_eq!(cut("a\n\n\n\n", 99, 8), "a\n\n...");
        assert_eq!(cut("\u{20ac}\u{20ac}\u{20ac}", 8, 99), "\u{20ac}...");
        assert_eq!(cut("abcd", 3, 99), "...");
    }
}
