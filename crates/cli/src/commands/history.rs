//! `kubezap history [RUN]`: finished and running FlowRuns; one run in full: what event, which steps, why.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kubezap_api::flow_run::{FlowRun, FlowRunPhase};
use kubezap_chassis::args::{Connection, KubeArgs};

use crate::detail;
use crate::failure::Failure;
use crate::listing::{self, ListArgs};
use crate::output::{self, Format, Palette};
use crate::run_view::{RunView, age};

/// Lists runs, or shows one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    list: ListArgs,
    /// A FlowRun to show in full.
    #[arg(conflicts_with_all = ["trigger", "flow", "phase", "since", "all_namespaces"])]
    run: Option<String>,
    /// Only runs of this Trigger.
    #[arg(long)]
    trigger: Option<String>,
    /// Only runs of this Flow.
    #[arg(long)]
    flow: Option<String>,
    /// Only runs in this phase.
    #[arg(long, value_parser = phase)]
    phase: Option<FlowRunPhase>,
    /// Only runs created within this time, such as 30m, 24h or 7d.
    #[arg(long, value_parser = kubezap_api::lower::duration)]
    since: Option<Duration>,
    /// Goes on showing changes.
    #[arg(short, long, conflicts_with = "run")]
    watch: bool,
}

/// Prints the runs, oldest first.
///
/// # Errors
/// As the API server answers; a run that does not exist.
pub(crate) async fn run(args: Args, kube: &KubeArgs, palette: Palette) -> Result<(), Failure> {
    let Args {
        list,
        run,
        trigger,
        flow,
        phase,
        since,
        watch,
    } = args;
    let Connection {
        client, namespace, ..
    } = kube.connect().await?;
    let api = listing::api::<FlowRun>(client.clone(), list.all_namespaces, &namespace);
    if let Some(name) = run {
        let run = api.get(&name).await?;
        return match list.output {
            Format::Json | Format::Yaml => Ok(output::structured(list.output, &run)?),
            Format::Name => listing::print(&[run], &list, &[], |_| Vec::new()),
            Format::Table => {
                detail::print(&run, palette);
                Ok(())
            }
        };
    }
    let filter = Filter {
        trigger,
        flow,
        phase,
        since,
    };
    let now = Timestamp::now();
    let mut runs = listing::all(&api).await?;
    runs.retain(|run| filter.takes(run, now));
    runs.sort_by_key(|run| (run.creation_timestamp().map(|time| time.0), run.name_any()));
    listing::print(
        &runs,
        &list,
        &[
            "NAME", "TRIGGER", "FLOW", "PHASE", "AGE", "DURATION", "MESSAGE",
        ],
        |run| row(run, now),
    )?;
    if watch {
        super::watch::follow(
            api,
            None,
            list.output == Format::Json,
            palette,
            move |run| filter.takes(run, Timestamp::now()),
        )
        .await?;
    }
    Ok(())
}

fn row(run: &FlowRun, now: Timestamp) -> Vec<String> {
    let view = RunView::of(run);
    vec![
        view.name,
        run.spec
            .trigger_ref
            .as_ref()
            .map(|trigger| trigger.name.clone())
            .unwrap_or_default(),
        run.spec
            .flow_ref
            .as_ref()
            .map(|flow| flow.name.clone())
            .unwrap_or_default(),
        view.phase,
        age(run.creation_timestamp().map(|time| time.0), now),
        view.duration,
        view.message,
    ]
}

/// Which runs are asked for.
struct Filter {
    trigger: Option<String>,
    flow: Option<String>,
    phase: Option<FlowRunPhase>,
    since: Option<Duration>,
}

impl Filter {
    fn takes(&self, run: &FlowRun, now: Timestamp) -> bool {
        let trigger = run.spec.trigger_ref.as_ref().map(|trigger| &trigger.name);
        let flow = run.spec.flow_ref.as_ref().map(|flow| &flow.name);
        let phase = run
            .status
            .as_ref()
            .and_then(|status| status.phase)
            .unwrap_or(FlowRunPhase::Pending);
        let young = |since: Duration| {
            run.creation_timestamp()
                .is_some_and(|created| now.duration_since(created.0).unsigned_abs() <= since)
        };
        (self.trigger.is_none() || self.trigger.as_ref() == trigger)
            && (self.flow.is_none() || self.flow.as_ref() == flow)
            && self.phase.is_none_or(|wanted| wanted == phase)
            && self.since.is_none_or(young)
    }
}

fn phase(text: &str) -> Result<FlowRunPhase, String> {
    let all = [
        FlowRunPhase::Pending,
        FlowRunPhase::Running,
        FlowRunPhase::Succeeded,
        FlowRunPhase::Failed,
        FlowRunPhase::Cancelled,
    ];
    all.into_iter()
        .find(|phase| phase.as_str().eq_ignore_ascii_case(text))
        .ok_or_else(|| "must be one of Pending, Running, Succeeded, Failed, Cancelled".to_owned())
}
