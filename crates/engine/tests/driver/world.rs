//! A store, an executor and owners in virtual time. What every owner must keep is asserted here, at the moment it would
//! be broken; what a test is about, it reads from the logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubezap_engine::advance::finished;
use kubezap_engine::driver::{
    Config, Driver, FlowAnswer, Input, Output, ReadAnswer, RunKey, RunObject, SLOTS, Slot,
    WriteAnswer, WriteReason,
};
use kubezap_engine::effect::Call;
use kubezap_engine::flow::Flow;
use kubezap_engine::graph::members;
use kubezap_engine::run::Run;

use crate::nature::{Fault, Nature, config};
use crate::store::Change;

/// A write as the store took it.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) at: Timestamp,
    pub(crate) reason: WriteReason,
    pub(crate) run: Run,
}

/// A call as it left.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    pub(crate) at: Timestamp,
    pub(crate) run: String,
    pub(crate) step: String,
    pub(crate) attempt: u32,
    pub(crate) execution_id: String,
    pub(crate) owner: usize,
}

/// One owner's process.
pub(crate) struct Owner {
    pub(crate) driver: Option<Driver>,
    pub(crate) slots: BTreeSet<Slot>,
    life: u32,
    /// A watch shows changes in their order.
    pub(crate) watched_until: Timestamp,
}

enum Happening {
    /// Something reaches an owner, if it still lives that life.
    Reaches(usize, u32, Input),
    /// A write reaches the store; the answer goes back, unless its sender has given up.
    Stores {
        to: Option<(usize, u32)>,
        key: RunKey,
        version: u64,
        change: Change,
    },
    /// A test or a simulation interferes.
    Interferes(Box<dyn FnOnce(&mut World)>),
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) nature: Nature,
    pub(crate) owners: Vec<Owner>,
    pub(crate) flows: BTreeMap<String, FlowAnswer>,
    /// By name; all runs here are of different names.
    pub(crate) store: BTreeMap<String, RunObject>,
    pub(crate) written: BTreeMap<String, Vec<Written>>,
    pub(crate) called: Vec<Called>,
    pub(crate) reads: usize,
    pub(crate) loads: Vec<(Timestamp, String)>,
    pub(crate) aborted: Vec<String>,
    pub(crate) finished: Vec<(String, Run)>,
    pub(crate) dropped: Vec<(String, &'static str)>,
    /// Owners may hold the same slot at the same time, so that calls may be made twice.
    pub(crate) overlap: bool,
    pub(crate) config: Config,
    agenda: BTreeMap<(Timestamp, u64), Happening>,
    sequence: u64,
    pub(crate) version: u64,
    execution_ids: BTreeSet<String>,
}

pub(crate) fn start() -> Timestamp {
    "2026-12-01T00:00:00Z".parse().unwrap()
}

pub(crate) fn all_slots() -> BTreeSet<Slot> {
    (0..SLOTS).collect()
}

impl World {
    /// A world without owners.
    pub(crate) fn empty(config: Config, nature: Nature) -> Self {
        Self {
            now: start(),
            nature,
            owners: Vec::new(),
            flows: BTreeMap::new(),
            store: BTreeMap::new(),
            written: BTreeMap::new(),
            called: Vec::new(),
            reads: 0,
            loads: Vec::new(),
            aborted: Vec::new(),
            finished: Vec::new(),
            dropped: Vec::new(),
            overlap: false,
            config,
            agenda: BTreeMap::new(),
            sequence: 0,
            version: 1,
            execution_ids: BTreeSet::new(),
        }
    }

    /// A world with one owner of everything and a Flow `flow`.
    pub(crate) fn with(flow: Arc<Flow>) -> Self {
        let mut world = Self::empty(config(), Nature::default());
        world.serve("flow", flow);
        world.add_owner();
        world.give(0, all_slots());
        world
    }

    /// Makes a Flow findable under a name.
    pub(crate) fn serve(&mut self, name: &str, flow: Arc<Flow>) {
        let revision = format!("{name}-1");
        self.flows
            .insert(name.into(), FlowAnswer::Found { revision, flow });
    }

    pub(crate) fn add_owner(&mut self) -> usize {
        self.owners.push(Owner {
            driver: None,
            slots: BTreeSet::new(),
            life: 0,
            watched_until: self.now,
        });
        let owner = self.owners.len() - 1;
        self.restart(owner);
        owner
    }

    /// Ends an owner's process: what was in its memory and on its way to it is lost.
    pub(crate) fn crash(&mut self, owner: usize) {
        self.owners[owner].driver = None;
        self.owners[owner].life += 1;
        self.owners[owner].slots.clear();
    }

    /// Starts an owner's process, without slots.
    pub(crate) fn restart(&mut self, owner: usize) {
        let life = self.owners[owner].life;
        self.owners[owner].driver = Some(Driver::new(Config {
            incarnation: format!("o{owner}l{life:03}"),
            ..self.config.clone()
        }));
    }

    /// Gives an owner these slots and lists their runs for it.
    pub(crate) fn give(&mut self, owner: usize, slots: BTreeSet<Slot>) {
        self.owners[owner].slots = slots.clone();
        self.reach(owner, Input::Slots(slots));
        for object in self.store.clone().into_values() {
            if self.shows(owner, &object) {
                self.reach(owner, Input::Seen(object));
            }
        }
    }

    pub(crate) fn shows(&self, owner: usize, object: &RunObject) -> bool {
        let over = object
            .status
            .as_ref()
            .is_some_and(|run| run.phase.is_terminal());
        self.owners[owner].slots.contains(&object.slot.unwrap_or(0))
            && (self.nature.watch_shows_all || !over)
    }
    /// Lets something happen later.
    pub(crate) fn later(&mut self, after: Duration, what: impl FnOnce(&mut World) + 'static) {
        self.plan(after, Happening::Interferes(Box::new(what)));
    }

    /// Lets an input reach an owner later, unless its process ends before.
    pub(crate) fn send(&mut self, owner: usize, after: Duration, input: Input) {
        let life = self.owners[owner].life;
        self.plan(after, Happening::Reaches(owner, life, input));
    }

    fn plan(&mut self, after: Duration, happening: Happening) {
        self.sequence += 1;
        self.agenda
            .insert((self.now + after, self.sequence), happening);
    }

    /// Lets time pass until nothing is left to happen.
    pub(crate) fn run(&mut self) {
        self.run_until(Timestamp::MAX);
    }

    /// Lets this much time pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.run_until(end);
        self.now = end;
    }

    fn run_until(&mut self, end: Timestamp) {
        for _ in 0..1_000_000 {
            let ticks = self.owners.iter().enumerate();
            let tick = ticks
                .filter_map(|(id, owner)| Some((owner.driver.as_ref()?.wake()?, id)))
                .min();
            let planned = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (planned, tick) {
                (Some(at), tick) if at <= end && tick.is_none_or(|(tick, _)| at <= tick) => {
                    self.now = self.now.max(at);
                    let (_, happening) = self.agenda.pop_first().unwrap();
                    self.happen(happening);
                }
                (_, Some((at, owner))) if at <= end => {
                    self.now = self.now.max(at);
                    self.reach(owner, Input::Tick);
                    let wake = self.owners[owner].driver.as_ref().unwrap().wake();
                    assert!(
                        wake.is_none_or(|wake| wake > self.now),
                        "a tick leaves nothing that is due"
                    );
                }
                _ => return,
            }
        }
        panic!("this world never comes to rest");
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Reaches(owner, life, input) => {
                if self.owners[owner].life == life {
                    self.reach(owner, input);
                }
            }
            Happening::Stores {
                to,
                key,
                version,
                change,
            } => {
                let answer = self.store_change(&key, version, change);
                if let Some((owner, life)) = to {
                    let delay = (self.nature.latency)();
                    self.plan(
                        delay,
                        Happening::Reaches(owner, life, Input::Written(key, answer)),
                    );
                }
            }
            Happening::Interferes(what) => what(self),
        }
    }

    /// Gives an input to an owner and carries out what it says.
    pub(crate) fn reach(&mut self, owner: usize, input: Input) {
        let now = self.now;
        let Some(driver) = &mut self.owners[owner].driver else {
            return;
        };
        for output in driver.handle(input, now) {
            self.carry_out(owner, output);
        }
    }

    fn carry_out(&mut self, owner: usize, output: Output) {
        let there = (self.nature.latency)();
        match output {
            Output::LoadFlow { key, spec, pinned } => {
                self.loads.push((self.now, key.name.clone()));
                let answer = self.flows.get(&spec.flow).cloned();
                if let (Some(pinned), Some(FlowAnswer::Found { revision, .. })) = (pinned, &answer)
                {
                    assert_eq!(&pinned, revision);
                }
                let answer = answer.unwrap_or(FlowAnswer::Refused {
                    reason: kubezap_engine::run::reason::FLOW_NOT_FOUND,
                    message: format!("there is no Flow {}", spec.flow),
                });
                self.send(owner, there, Input::FlowLoaded(key, answer));
            }
            Output::Write {
                key,
                resource_version,
                run,
                reason,
            } => {
                let fault = (self.nature.write)(&key, Some(&run));
                let change = Change::Status(run, reason);
                self.send_change(owner, there, key, resource_version, change, fault);
            }
            Output::Label {
                key,
                resource_version,
                slot,
            } => {
                let fault = (self.nature.write)(&key, None);
                self.send_change(
                    owner,
                    there,
                    key,
                    resource_version,
                    Change::Label(slot),
                    fault,
                );
            }
            Output::Read { key } => {
                self.reads += 1;
                let answer = if !(self.nature.read)(&key) {
                    ReadAnswer::Unavailable
                } else if let Some(object) = self.store.get(&key.name) {
                    ReadAnswer::Found(object.clone())
                } else {
                    ReadAnswer::Gone
                };
                self.send(owner, there, Input::Read(key, answer));
            }
            Output::Call { key, call } => self.call(owner, key, &call),
            Output::ReadReferences { .. } => panic!("no flow here reads ConfigMaps"),
            Output::Abort {
                key: _,
                execution_id,
            } => self.aborted.push(execution_id),
            Output::Finished { key, run } => self.finished.push((key.name, *run)),
            Output::Dropped { key, why } => self.dropped.push((key.name, why)),
        }
    }

    fn send_change(
        &mut self,
        owner: usize,
        there: Duration,
        key: RunKey,
        version: String,
        change: Change,
        fault: Fault,
    ) {
        let version = version.parse().unwrap();
        let life = self.owners[owner].life;
        let arrives = |to| Happening::Stores {
            to,
            key: key.clone(),
            version,
            change,
        };
        match fault {
            Fault::None => {
                let happening = arrives(Some((owner, life)));
                self.plan(there, happening);
            }
            Fault::AnswerLost | Fault::Lost | Fault::Late(_) => {
                match fault {
                    Fault::AnswerLost => {
                        let happening = arrives(None);
                        self.plan(there, happening);
                    }
                    Fault::Late(by) => {
                        let happening = arrives(None);
                        self.plan(there * 2 + by, happening);
                    }
                    _ => {}
                }
                self.send(
                    owner,
                    there * 2,
                    Input::Written(key, WriteAnswer::Unavailable),
                );
            }
            Fault::Refused => {
                let message = "too large".into();
                self.send(
                    owner,
                    there * 2,
                    Input::Written(key, WriteAnswer::Refused { message }),
                );
            }
        }
    }
    fn call(&mut self, owner: usize, key: RunKey, call: &Call) {
        assert!(
            self.execution_ids.insert(call.execution_id.clone()),
            "execution id {} is used twice",
            call.execution_id
        );
        if let Some(object) = self.store.get(&key.name)
            && let Some(FlowAnswer::Found { flow, .. }) = self.flows.get(&object.spec.flow)
        {
            let stored = object.status.as_ref().map_or(0, finished);
            for before in members(flow.graph.ancestors[call.step]) {
                let name = flow.steps[before].name.as_str();
                let called = |call: &Called| call.run == key.name && call.step == name;
                assert!(
                    stored >> before & 1 == 1 || !self.called.iter().any(called),
                    "a call leaves before the outcome of {name} is stored"
                );
            }
            if !self.overlap {
                assert_eq!(
                    stored >> call.step & 1,
                    0,
                    "a stored outcome is sought again"
                );
            }
        }
        self.called.push(Called {
            at: self.now,
            run: key.name.clone(),
            step: call.idempotency_key.split('/').nth(1).unwrap().into(),
            attempt: call.attempt,
            execution_id: call.execution_id.clone(),
            owner,
        });
        let (after, outcome) = (self.nature.call)(&key, call);
        self.send(
            owner,
            after,
            Input::CallFinished(key, call.execution_id.clone(), outcome),
        );
    }

    /// Why a run was written, in order.
    pub(crate) fn reasons(&self, name: &str) -> Vec<WriteReason> {
        let writes = self
            .written
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        writes.iter().map(|write| write.reason).collect()
    }

    /// The calls of a run, in order.
    pub(crate) fn calls(&self, name: &str) -> Vec<&str> {
        let calls = self.called.iter().filter(|call| call.run == name);
        calls.map(|call| call.step.as_str()).collect()
    }

    pub(crate) fn held(&self, owner: usize) -> usize {
        self.owners[owner].driver.as_ref().unwrap().held()
    }
}
