//! One run in full: what event, which steps, why.

use jiff::Timestamp;
use kube::ResourceExt;
use kubezap_api::flow_run::FlowRun;

use crate::output::{self, Palette};
use crate::run_view::{RunView, paint};

/// How much of a value a line shows.
const VALUE_WIDTH: usize = 120;

/// Prints a run.
pub(crate) fn print(run: &FlowRun, palette: Palette) {
    for line in lines(run, palette) {
        output::line(line);
    }
}

fn lines(run: &FlowRun, palette: Palette) -> Vec<String> {
    let view = RunView::of(run);
    let status = run.status.clone().unwrap_or_default();
    let mut lines = Vec::new();
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("{:<11}{value}", format!("{name}:")));
        }
    };
    field(
        "Run",
        format!("{}/{}", run.namespace().unwrap_or_default(), view.name),
    );
    field("Phase", paint(palette, &view.phase, &view.phase));
    field("Message", view.message.clone());
    field(
        "Flow",
        run.spec
            .flow_ref
            .as_ref()
            .map(|flow| flow.name.clone())
            .unwrap_or_default(),
    );
    field("Revision", status.flow_revision.clone().unwrap_or_default());
    field(
        "Trigger",
        run.spec
            .trigger_ref
            .as_ref()
            .map(|trigger| trigger.name.clone())
            .unwrap_or_default(),
    );
    field(
        "Created",
        run.creation_timestamp()
            .map(|time| time.0.to_string())
            .unwrap_or_default(),
    );
    field("Duration", view.duration.clone());
    if let Some(event) = &run.spec.trigger_data {
        let event = kubezap_api::lower::event(event);
        let request = [event.method.as_str(), event.path.as_str()].join(" ");
        field("Source", event.source.as_str().to_owned());
        field("Request", request.trim().to_owned());
        field("Body", short(&event.body));
    }
    for (name, value) in run
        .spec
        .params
        .iter()
        .map(|param| (&param.name, &param.value))
    {
        lines.push(format!("{:<11}{name} = {}", "Param:", short(value)));
    }
    lines.push(String::new());
    for step in &status.steps {
        let phase = step.phase.map_or("Pending", |phase| phase.as_str());
        let took = match (time(&step.start_time), time(&step.completion_time)) {
            (Some(start), Some(end)) => format!(
                "  {}",
                kubezap_api::duration::format(end.duration_since(start).unsigned_abs())
            ),
            _ => String::new(),
        };
        let attempts = match step.attempts {
            Some(attempts) if attempts > 1 => format!("  {attempts} attempts"),
            _ => String::new(),
        };
        let reason = step
            .reason
            .as_ref()
            .map(|reason| format!("  {reason}"))
            .unwrap_or_default();
        lines.push(format!(
            "{}  {}{took}{attempts}{reason}",
            step.name,
            paint(palette, phase, phase)
        ));
        if let Some(message) = step.message.as_ref().filter(|message| !message.is_empty()) {
            lines.push(format!("    {message}"));
        }
        for result in &step.results {
            lines.push(palette.faint(&format!("    {} = {}", result.name, short(&result.value))));
        }
    }
    lines
}

fn time(
    time: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime>,
) -> Option<Timestamp> {
    time.as_ref().map(|time| time.0)
}

/// The beginning of a value, on one line.
fn short(value: &str) -> String {
    let flat = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(VALUE_WIDTH) {
        Some((end, _)) => format!("{}... ({} bytes)", &flat[..end], value.len()),
        None => flat,
    }
}
