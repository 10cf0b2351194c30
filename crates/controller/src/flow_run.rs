//! FlowRuns: one task owns the engine's driver. What the watch shows and what requests come to goes in; what the driver
//! asks for is carried out by tasks of its own. Nothing is decided here.

mod credentials;
mod dispatch;
mod record;
mod trace;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use jiff::{Timestamp, Unit};
use kube::Client;
use kubezap_api::{FlowRun, lower};
use kubezap_engine::driver::{
    Config, Driver, FlowAnswer, Input, Output, ReadAnswer, RunKey, Slot, WriteAnswer,
};
use kubezap_engine::effect::{Call, KeyRef, References};
use kubezap_engine::flow::{Action, Flow, ImplicitResult, StepIndex};
use kubezap_engine::observation::{CallOutcome, Failure};
use kubezap_engine::run::{Run, RunPhase, RunSpec, reason};
use kubezap_step_protocol::Limits;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::dispatch::Dispatcher;
use self::record::Facts;
use crate::counters::Finished;
use crate::executors::Executors;
use crate::flows::Flows;
use crate::metrics::ControllerMetrics;
use crate::reconcile::Place;
use crate::watch::{Change, Scope};

/// What a runner is made from.
pub(crate) struct RunnerConfig {
    pub(crate) scope: Scope,
    pub(crate) flows: Flows,
    pub(crate) executors: Arc<dyn Executors>,
    pub(crate) egress_allow: Vec<String>,
    /// The slots that this process holds.
    pub(crate) slots: BTreeSet<Slot>,
    pub(crate) driver: Config,
    pub(crate) metrics: ControllerMetrics,
    pub(crate) finished: mpsc::UnboundedSender<Finished>,
    pub(crate) synced: tokio::sync::watch::Sender<bool>,
}

/// Carries FlowRuns out until `shutdown`. Calls in flight are then aborted and nothing more is written: whoever takes
/// the runs up next resumes them from their status.
pub(crate) async fn run(config: RunnerConfig, shutdown: CancellationToken) {
    let RunnerConfig {
        scope,
        flows,
        executors,
        egress_allow,
        slots,
        driver,
        metrics,
        finished,
        synced,
    } = config;
    let mut changes = watch::changes(&scope);
    let mut unsynced = scope.sources();
    let (answer, mut answers) = mpsc::unbounded_channel();
    let mut driver = Driver::new(driver);
    let mut shell = Shell {
        dispatcher: Dispatcher {
            client: scope.client.clone(),
            executors,
            egress_allow: egress_allow.into(),
            limits: Limits::default(),
        },
        client: scope.client,
        flows,
        metrics,
        finished,
        answer,
        known: HashMap::new(),
        calls: HashMap::new(),
        // Tasks end with this one.
        ended: shutdown.child_token(),
    };
    let _end = shell.ended.clone().drop_guard();

    shell.carry_out_all(driver.handle(Input::Slots(slots), now()));
    loop {
        let input = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            input = async {
                tokio::select! {
                    Some(input) = answers.recv() => Some(input),
                    Some(change) = changes.next() => match change {
                        Change::Applied(run) => Some(shell.seen(&run)),
                        Change::Deleted(key) => Some(shell.gone(watch::key(key))),
                        Change::Synced => {
                            unsynced = unsynced.saturating_sub(1);
                            if unsynced == 0 {
                                synced.send_replace(true);
                            }
                            None
                        }
                    },
                    () = until(driver.wake()) => Some(Input::Tick),
                }
            } => input,
        };
        if let Some(input) = input {
            shell.note(&input);
            shell.carry_out_all(driver.handle(input, now()));
        }
    }
}

/// Stored times are whole microseconds.
fn now() -> Timestamp {
    let now = Timestamp::now();
    now.round(
        jiff::TimestampRound::new()
            .smallest(Unit::Microsecond)
            .mode(jiff::RoundMode::Trunc),
    )
    .unwrap_or(now)
}

async fn until(at: Option<Timestamp>) {
    match at {
        Some(at) => {
            let left = at.duration_since(Timestamp::now());
            tokio::time::sleep(left.try_into().unwrap_or_default()).await;
        }
        None => std::future::pending().await,
    }
}

/// Carries outputs out, and remembers what they need.
struct Shell {
    client: Client,
    flows: Flows,
    dispatcher: Dispatcher,
    metrics: ControllerMetrics,
    finished: mpsc::UnboundedSender<Finished>,
    answer: mpsc::UnboundedSender<Input>,
    known: HashMap<RunKey, Known>,
    /// Calls in flight, by execution id.
    calls: HashMap<String, CancellationToken>,
    ended: CancellationToken,
}

/// A run that the watch has shown.
struct Known {
    facts: Arc<Facts>,
    spec: Arc<RunSpec>,
    flow: Option<Arc<Flow>>,
    /// As it was last written.
    phase: RunPhase,
    /// The driver is done with it.
    over: bool,
    /// The watch has let go of it while its last write was out.
    gone: bool,
    /// Cancelled when it is forgotten.
    held: CancellationToken,
}

impl Shell {
    fn seen(&mut self, run: &FlowRun) -> Input {
        let object = lower::run_object(run);
        let key = RunKey {
            namespace: object.spec.namespace.clone(),
            name: object.spec.name.clone(),
            uid: object.spec.uid.clone(),
        };
        if watch::is_over(run) {
            // Told as what it is first: an end that someone else wrote is an end.
            self.forget_unless_ending(&key);
            return Input::Seen(object);
        }
        if !self.known.contains_key(&key) {
            let phase = object
                .status
                .as_ref()
                .map_or(RunPhase::Pending, |run| run.phase);
            self.metrics.moved(&key.namespace, None, Some(phase));
            let known = Known {
                facts: Arc::new(watch::facts(run)),
                spec: object.spec.clone(),
                flow: None,
                phase,
                over: false,
                gone: false,
                held: self.ended.child_token(),
            };
            self.known.insert(key, known);
        }
        Input::Seen(object)
    }

    fn gone(&mut self, key: RunKey) -> Input {
        self.forget_unless_ending(&key);
        Input::Gone(key)
    }

    /// The answer to a last write may come after the watch has let go of the run.
    fn forget_unless_ending(&mut self, key: &RunKey) {
        match self.known.get_mut(key) {
            Some(known) if known.phase.is_terminal() && !known.over => known.gone = true,
            _ => self.forget(key),
        }
    }

    fn forget(&mut self, key: &RunKey) {
        if let Some(known) = self.known.remove(key) {
            known.held.cancel();
            self.metrics.moved(&key.namespace, Some(known.phase), None);
        }
    }

    /// The driver is done with a run; it is forgotten when the watch is, too.
    fn over(&mut self, key: &RunKey) {
        if let Some(known) = self.known.get_mut(key) {
            known.over = true;
            if known.gone {
                self.forget(key);
            }
        }
    }

    /// Takes in what answers mean for what is remembered.
    fn note(&mut self, input: &Input) {
        match input {
            Input::FlowLoaded(key, FlowAnswer::Found { flow, .. }) => {
                if let Some(known) = self.known.get_mut(key) {
                    known.flow = Some(Arc::clone(flow));
                }
            }
            Input::CallFinished(_, execution_id, _) => {
                self.calls.remove(execution_id);
            }
            Input::Slots(_)
            | Input::Seen(_)
            | Input::Gone(_)
            | Input::FlowLoaded(..)
            | Input::Written(..)
            | Input::Read(..)
            | Input::ReferencesRead(..)
            | Input::Tick => {}
        }
    }

    fn carry_out_all(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::LoadFlow { key, spec, pinned } => {
                let flows = self.flows.clone();
                let task = async move { flows.find(&spec, pinned.as_deref()).await };
                self.spawn(key, task, || FlowAnswer::Unavailable, Input::FlowLoaded);
            }
            Output::Write {
                key,
                resource_version,
                run,
                reason,
            } => {
                self.metrics.status_write(reason);
                self.write(key, resource_version, run);
            }
            Output::Label {
                key,
                resource_version,
                slot,
            } => {
                let (client, run) = (self.client.clone(), key.clone());
                let task =
                    async move { record::label(&client, &run, &resource_version, slot).await };
                self.spawn(key, task, || WriteAnswer::Unavailable, Input::Written);
            }
            Output::Read { key } => {
                let (client, run) = (self.client.clone(), key.clone());
                let task = async move { record::read(&client, &run).await };
                self.spawn(key, task, || ReadAnswer::Unavailable, Input::Read);
            }
            Output::Call { key, call } => self.call(key, call),
            Output::ReadReferences {
                key,
                step,
                references,
            } => self.read_references(key, step, references),
            Output::Abort {
                key: _,
                execution_id,
            } => {
                if let Some(call) = self.calls.remove(&execution_id) {
                    call.cancel();
                }
            }
            Output::Finished { key, run } => self.finish(&key, &run),
            Output::Dropped { key, why } => {
                tracing::info!(
                    namespace = key.namespace,
                    flow_run = key.name,
                    why,
                    "a run was given up"
                );
                self.over(&key);
            }
        }
    }

    fn write(&mut self, key: RunKey, resource_version: String, run: Box<Run>) {
        let Some(known) = self.known.get_mut(&key) else {
            // The watch has let go of it since, and not because of this write.
            let _ = self.answer.send(Input::Written(key, WriteAnswer::Gone));
            return;
        };
        self.metrics
            .moved(&key.namespace, Some(known.phase), Some(run.phase));
        known.phase = run.phase;
        let facts = Arc::clone(&known.facts);
        let (client, to) = (self.client.clone(), key.clone());
        let task =
            async move { record::write(&client, &to, &resource_version, &run, &facts).await };
        self.spawn(key, task, || WriteAnswer::Unavailable, Input::Written);
    }

    fn call(&mut self, key: RunKey, call: Box<Call>) {
        let known = self.known.get(&key);
        let discard_body = known
            .and_then(|known| known.flow.as_deref())
            .is_some_and(|flow| !reads_body(flow, call.step));
        let parent = known.and_then(|known| known.facts.traceparent.as_deref());
        let traceparent = trace::child(parent, &key.uid);
        let execution_id = call.execution_id.clone();
        let cancel = self.ended.child_token();
        self.calls.insert(execution_id.clone(), cancel.clone());
        let dispatcher = self.dispatcher.clone();
        let namespace = key.namespace.clone();
        let task = async move {
            dispatcher
                .call(&namespace, &call, traceparent, discard_body, cancel)
                .await
        };
        self.spawn(key, task, crashed, |key, outcome| {
            Input::CallFinished(key, execution_id, outcome)
        });
    }

    fn read_references(&mut self, key: RunKey, step: StepIndex, references: References) {
        let (client, namespace) = (self.client.clone(), key.namespace.clone());
        let held = self.known.get(&key).map(|known| known.held.clone());
        let task = async move {
            let forgotten = async {
                if let Some(held) = held {
                    held.cancelled().await;
                }
            };
            let read = read_configmaps(&client, &namespace, &references);
            tokio::select! {
                read = read => read,
                () = forgotten => Err("the run is gone".to_owned()),
            }
        };
        let crashed = || Err("internal error while reading ConfigMaps".to_owned());
        self.spawn(key, task, crashed, move |key, result| {
            Input::ReferencesRead(key, step, result)
        });
    }

    fn finish(&mut self, key: &RunKey, run: &Run) {
        let Some(known) = self.known.get_mut(key) else {
            return;
        };
        let (spec, flow) = (Arc::clone(&known.spec), known.flow.clone());
        self.metrics
            .moved(&key.namespace, Some(known.phase), Some(run.phase));
        known.phase = run.phase;
        self.over(key);
        self.metrics
            .finished(&key.namespace, &spec.flow, flow.as_deref(), run);
        tracing::info!(
            namespace = key.namespace,
            flow_run = key.name,
            flow = spec.flow,
            phase = run.phase.as_str(),
            reason = run.reason,
            "a run ended"
        );
        if !spec.flow.is_empty() {
            let _ = self.finished.send(Finished {
                flow: Place::new(&key.namespace, &spec.flow),
                phase: run.phase,
                at: run.completion_time.unwrap_or_else(now),
                message: run.message.clone(),
            });
        }
    }

    /// Carries something out beside this task. A panic in it is answered too: the driver waits for every answer.
    fn spawn<T: Send + 'static>(
        &self,
        key: RunKey,
        task: impl Future<Output = T> + Send + 'static,
        on_panic: impl FnOnce() -> T + Send + 'static,
        input: impl FnOnce(RunKey, T) -> Input + Send + 'static,
    ) {
        let (answer, ended) = (self.answer.clone(), self.ended.clone());
        tokio::spawn(async move {
            let task = AssertUnwindSafe(task).catch_unwind();
            let outcome = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                outcome = task => outcome,
            };
            let outcome = outcome.unwrap_or_else(|_| {
                tracing::error!(
                    namespace = key.namespace,
                    flow_run = key.name,
                    "a task of this run panicked; this is a defect"
                );
                on_panic()
            });
            // Nobody listens once the controller stops.
            let _ = answer.send(input(key, outcome));
        });
    }
}

/// Reads until there is an answer. The step waits meanwhile, as it would for a call; its time limit ends it.
async fn read_configmaps(
    client: &Client,
    namespace: &str,
    references: &References,
) -> Result<BTreeMap<KeyRef, String>, String> {
    loop {
        match credentials::configmaps(client, namespace, &references.configmaps).await {
            Err(error) if error.may_pass() => {
                tracing::warn!(namespace, %error, "read again");
                tokio::time::sleep(credentials::AGAIN).await;
            }
            read => return read.map_err(|error| error.to_string()),
        }
    }
}

/// Nobody knows how far the call came.
fn crashed() -> CallOutcome {
    CallOutcome::Failed(Failure {
        reason: reason::EXECUTOR_LOST,
        message: "executor_lost: internal error while the call was made".to_owned(),
    })
}

/// Whether anything looks at the body of a step's response.
fn reads_body(flow: &Flow, step: StepIndex) -> bool {
    flow.steps.get(step).is_none_or(|step| match &step.action {
        Action::Http(http) => {
            !http.result_mappings.is_empty()
                || step.implicit_results.contains(&ImplicitResult::Body)
        }
        Action::Transform(_) | Action::Wait(_) => true,
    })
}
