//! A FlowRun in the words of the terminal.

use jiff::{SignedDuration, Timestamp};
use kubezap_api::flow_run::FlowRun;

use crate::output::Palette;

/// What the terminal shows of a run.
#[derive(Debug)]
pub(crate) struct RunView {
    /// Its uid.
    pub(crate) uid: String,
    /// Its name.
    pub(crate) name: String,
    /// Its phase; `Pending` while it has no status.
    pub(crate) phase: String,
    /// Whether the phase is terminal.
    pub(crate) finished: bool,
    /// Its message.
    pub(crate) message: String,
    /// `3.2s`, empty while it runs.
    pub(crate) duration: String,
    /// Its steps.
    pub(crate) steps: Vec<StepView>,
}

/// What the terminal shows of a step.
#[derive(Debug)]
pub(crate) struct StepView {
    /// Its name.
    pub(crate) name: String,
    /// Its phase.
    pub(crate) phase: String,
}

impl RunView {
    /// Reads a run.
    pub(crate) fn of(run: &FlowRun) -> Self {
        let status = run.status.clone().unwrap_or_default();
        let phase = status
            .phase
            .map_or("Pending", |phase| phase.as_str())
            .to_owned();
        Self {
            uid: run.metadata.uid.clone().unwrap_or_default(),
            name: run.metadata.name.clone().unwrap_or_default(),
            finished: matches!(phase.as_str(), "Succeeded" | "Failed" | "Cancelled"),
            phase,
            message: status.message.unwrap_or_default(),
            duration: status.duration.unwrap_or_default(),
            steps: status
                .steps
                .into_iter()
                .map(|step| StepView {
                    name: step.name,
                    phase: step
                        .phase
                        .map_or("Pending", |phase| phase.as_str())
                        .to_owned(),
                })
                .collect(),
        }
    }

    /// One line: name, phase, steps with a mark each, duration, and the message of a run that failed.
    pub(crate) fn line(&self, palette: Palette) -> String {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|step| {
                paint(
                    palette,
                    &step.phase,
                    &format!("{} {}", step.name, mark(&step.phase)),
                )
            })
            .collect();
        let mut line = format!(
            "{}  {}",
            self.name,
            paint(palette, &self.phase, &format!("{:<9}", self.phase))
        );
        for part in [steps.join("  "), palette.faint(&self.duration)] {
            if !part.is_empty() {
                line.push_str("  ");
                line.push_str(&part);
            }
        }
        if self.finished && self.phase != "Succeeded" && !self.message.is_empty() {
            line.push_str(&format!("\n    {}", self.message));
        }
        line
    }
}

/// A phase in its colour.
pub(crate) fn paint(palette: Palette, phase: &str, text: &str) -> String {
    match phase {
        "Succeeded" => palette.good(text),
        "Failed" => palette.bad(text),
        "Running" | "Waiting" => palette.busy(text),
        _ => palette.faint(text),
    }
}

fn mark(phase: &str) -> char {
    match phase {
        "Succeeded" => '✓',
        "Failed" => '✗',
        "Skipped" => '–',
        "Running" => '●',
        "Waiting" => '◔',
        _ => '·',
    }
}

/// How long ago, as `kubectl` writes ages: `45s`, `12m`, `3h`, `2d`.
pub(crate) fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else {
        return "<unknown>".to_owned();
    };
    let seconds = now
        .duration_since(since)
        .max(SignedDuration::ZERO)
        .as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(yaml: &str) -> FlowRun {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_line_shows_every_step_with_its_mark() {
        let run = run("
apiVersion: automation.kubezap.io/v1alpha1
kind: FlowRun
metadata: {name: r1}
spec: {flowRef: {name: f}}
status:
  phase: Failed
  duration: 1.2s
  message: 'step b failed: HTTP 500'
  steps: [{name: a, phase: Succeeded}, {name: b, phase: Failed}, {name: c, phase: Skipped}]
");
        assert_eq!(
            RunView::of(&run).line(Palette::plain()),
            "r1  Failed     a ✓  b ✗  c –  1.2s\n    step b failed: HTTP 500"
        );
    }

    #[test]
    fn a_run_without_status_is_pending() {
        let run = run(
            "{apiVersion: automation.kubezap.io/v1alpha1, kind: FlowRun, metadata: {name: r}, spec: {flowRef: {name: f}}}",
        );
        let view = RunView::of(&run);
        assert_eq!((view.phase.as_str(), view.finished), ("Pending", false));
    }

    #[test]
    fn ages_are_written_as_kubectl_does() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        let ago = |seconds| age(Some(now - SignedDuration::from_secs(seconds)), now);
        assert_eq!(
            [ago(5), ago(119), ago(120), ago(7_300), ago(200_000)],
            ["5s", "119s", "2m", "2h", "2d"]
        );
        assert_eq!(age(None, now), "<unknown>");
    }
}
