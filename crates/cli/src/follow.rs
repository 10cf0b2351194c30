//! Shows runs as they go: one live line per run on a terminal, a line per change elsewhere, JSON lines for scripts.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kubezap_api::flow_run::FlowRun;

use crate::output::{self, Palette};
use crate::run_view::RunView;

/// How runs are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// One line per run, redrawn until the run ends.
    Live,
    /// A line for every change.
    Plain,
    /// A JSON object a line for every change.
    Json,
}

impl Style {
    /// Live on a terminal, plain elsewhere, unless JSON was asked for.
    pub(crate) fn detect(json: bool) -> Self {
        match (json, output::is_interactive()) {
            (true, _) => Style::Json,
            (false, true) => Style::Live,
            (false, false) => Style::Plain,
        }
    }
}

/// Shows runs.
pub(crate) struct Follower {
    style: Style,
    palette: Palette,
    progress: MultiProgress,
    shown: HashMap<String, Shown>,
}

struct Shown {
    text: String,
    bar: Option<ProgressBar>,
}

impl Follower {
    /// Shows nothing yet.
    pub(crate) fn new(style: Style, palette: Palette) -> Self {
        Self {
            style,
            palette,
            progress: MultiProgress::new(),
            shown: HashMap::new(),
        }
    }

    /// Prints a line between the runs.
    pub(crate) fn line(&self, text: impl std::fmt::Display) {
        if self.style == Style::Live {
            // A failure to draw is a terminal that went away; there is nobody to tell.
            let _ = self.progress.println(text.to_string());
        } else {
            output::line(text);
        }
    }

    /// Shows a run's state, unless it is the one shown already. Finished runs are shown once and forgotten by
    /// [`Follower::forget`].
    pub(crate) fn show(&mut self, run: &FlowRun) {
        let view = RunView::of(run);
        let text = view.line(self.palette);
        let known = self.shown.get(&view.uid);
        if known.is_some_and(|known| known.text == text) {
            return;
        }
        let bar = known.and_then(|known| known.bar.clone());
        let bar = match self.style {
            Style::Json => {
                output::line(serde_json::json!({"type": "run", "run": run}));
                None
            }
            Style::Plain => {
                output::line(&text);
                None
            }
            Style::Live if view.finished => {
                if let Some(bar) = bar {
                    bar.finish_and_clear();
                }
                self.line(&text);
                None
            }
            Style::Live => {
                let bar = bar.unwrap_or_else(|| self.progress.add(spinner()));
                bar.set_message(text.clone());
                Some(bar)
            }
        };
        self.shown.insert(view.uid, Shown { text, bar });
    }

    /// Forgets a run that is gone.
    pub(crate) fn forget(&mut self, uid: &str) {
        if let Some(Shown { bar: Some(bar), .. }) = self.shown.remove(uid) {
            bar.finish_and_clear();
        }
    }
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
