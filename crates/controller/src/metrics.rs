//! What the controller counts.

use kubezap_chassis::metrics::{Labels, Metrics, latency};
use kubezap_engine::driver::WriteReason;
use kubezap_engine::flow::{Action, Flow};
use kubezap_engine::run::{Run, RunPhase};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The controller's metrics.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    runs: Histograms,
    steps: Histograms,
    status_writes: Family<Labels, Counter>,
    active: Family<Labels, Gauge>,
}

impl ControllerMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            runs: metrics.register(
                "flowrun_duration_seconds",
                "Time from the start of a run to its end",
                Family::new_with_constructor(latency),
            ),
            steps: metrics.register(
                "step_duration_seconds",
                "Time from the first attempt of a step to its end",
                Family::new_with_constructor(latency),
            ),
            status_writes: metrics.register(
                "status_writes",
                "Writes of the status of FlowRuns",
                Family::default(),
            ),
            active: metrics.register(
                "flowruns_active",
                "Runs that are not over",
                Family::default(),
            ),
        }
    }

    pub(crate) fn status_write(&self, reason: WriteReason) {
        let reason = match reason {
            WriteReason::Gate => "gate",
            WriteReason::Terminal => "terminal",
            WriteReason::Coalesced => "coalesced",
            WriteReason::Running => "running",
            WriteReason::Resume => "resume",
        };
        self.status_writes
            .get_or_create(&vec![("reason", reason.to_owned())])
            .inc();
    }

    /// A run moved between phases; `None` is not being there.
    pub(crate) fn moved(&self, namespace: &str, from: Option<RunPhase>, to: Option<RunPhase>) {
        if from == to {
            return;
        }
        let gauge = |phase: RunPhase| {
            self.active.get_or_create(&vec![
                ("namespace", namespace.to_owned()),
                ("phase", phase.as_str().to_owned()),
            ])
        };
        if let Some(phase) = from.filter(|phase| !phase.is_terminal()) {
            gauge(phase).dec();
        }
        if let Some(phase) = to.filter(|phase| !phase.is_terminal()) {
            gauge(phase).inc();
        }
    }

    pub(crate) fn finished(&self, namespace: &str, name: &str, flow: Option<&Flow>, run: &Run) {
        let labels = |more: [(&'static str, &str); 2]| {
            let mut labels = vec![
                ("namespace", namespace.to_owned()),
                ("flow", name.to_owned()),
            ];
            labels.extend(more.map(|(name, value)| (name, value.to_owned())));
            labels
        };
        if let (Some(start), Some(end)) = (run.start_time, run.completion_time) {
            let mut labels = labels([("phase", run.phase.as_str()), ("", "")]);
            labels.pop();
            self.runs
                .get_or_create(&labels)
                .observe(end.duration_since(start).as_secs_f64());
        }
        for (index, step) in run.steps.iter().enumerate() {
            let (Some(start), Some(end)) = (step.start_time, step.completion_time) else {
                continue;
            };
            let type_ = flow
                .and_then(|flow| flow.steps.get(index))
                .map_or("", |step| match step.action {
                    Action::Http(_) => "http",
                    Action::Transform(_) => "transform",
                    Action::Wait(_) => "wait",
                });
            self.steps
                .get_or_create(&labels([
                    ("step_type", type_),
                    ("outcome", step.phase.as_str()),
                ]))
                .observe(end.duration_since(start).as_secs_f64());
        }
    }
}
