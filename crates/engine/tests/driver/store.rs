//! The store of a world: runs, conditional changes, and what it shows to those who watch.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubezap_engine::driver::{Input, RunKey, RunObject, Slot, WriteAnswer, WriteReason, slot_of};
use kubezap_engine::event::Event;
use kubezap_engine::run::{Run, RunSpec, StepPhase};

use crate::world::{World, Written};

pub(crate) enum Change {
    Status(Box<Run>, WriteReason),
    Label(Slot),
}

impl World {
    /// Creates a run of a Flow, labelled with its slot.
    pub(crate) fn create(&mut self, name: &str, flow: &str) -> RunKey {
        self.create_in("shop", name, flow, Some(slot_of("shop", flow)))
    }

    pub(crate) fn create_in(
        &mut self,
        namespace: &str,
        name: &str,
        flow: &str,
        slot: Option<Slot>,
    ) -> RunKey {
        let uid = format!("uid-{name}");
        let spec = Arc::new(RunSpec {
            name: name.into(),
            namespace: namespace.into(),
            uid: uid.clone(),
            created: self.now,
            flow: flow.into(),
            trigger: None,
            params: BTreeMap::new(),
            event: Arc::new(Event::default()),
        });
        let object = RunObject {
            spec,
            resource_version: self.next_version(),
            slot,
            cancel: false,
            deleting: false,
            status: None,
        };
        self.store.insert(name.into(), object);
        self.show(name);
        RunKey {
            namespace: namespace.into(),
            name: name.into(),
            uid,
        }
    }

    /// Changes a run's metadata, as people do.
    pub(crate) fn touch(&mut self, name: &str, change: impl FnOnce(&mut RunObject)) {
        let version = self.next_version();
        if let Some(object) = self.store.get_mut(name) {
            change(object);
            object.resource_version = version;
            self.show(name);
        }
    }

    /// Deletes a run for good.
    pub(crate) fn delete(&mut self, name: &str) {
        let Some(object) = self.store.remove(name) else {
            return;
        };
        for owner in 0..self.owners.len() {
            self.watch(owner, Input::Gone(key_of(&object)));
        }
    }

    /// Shows a run to those who watch it, as it is now.
    pub(crate) fn show(&mut self, name: &str) {
        let object = self.store[name].clone();
        for owner in 0..self.owners.len() {
            if self.shows(owner, &object) {
                self.watch(owner, Input::Seen(object.clone()));
            } else if self.owners[owner].slots.contains(&object.slot.unwrap_or(0)) {
                self.watch(owner, Input::Gone(key_of(&object)));
            }
        }
    }

    fn watch(&mut self, owner: usize, input: Input) {
        let at = (self.now + (self.nature.latency)()).max(self.owners[owner].watched_until);
        self.owners[owner].watched_until = at;
        self.send(owner, at.duration_since(self.now).unsigned_abs(), input);
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }
    pub(crate) fn store_change(
        &mut self,
        key: &RunKey,
        version: u64,
        change: Change,
    ) -> WriteAnswer {
        let now = self.now;
        let Some(object) = self.store.get_mut(&key.name) else {
            return WriteAnswer::Gone;
        };
        if object.resource_version != version.to_string() {
            return WriteAnswer::Conflict;
        }
        match change {
            Change::Status(run, reason) => {
                if let Some(before) = &object.status {
                    keeps_what_was_stored(before, &run);
                }
                assert!(run.revision.is_some() || run.reason.starts_with("Flow"));
                object.status = Some((*run).clone());
                self.written
                    .entry(key.name.clone())
                    .or_default()
                    .push(Written {
                        at: now,
                        reason,
                        run: *run,
                    });
            }
            Change::Label(slot) => object.slot = Some(slot),
        }
        let version = self.next_version();
        if let Some(object) = self.store.get_mut(&key.name) {
            object.resource_version.clone_from(&version);
        }
        self.show(&key.name);
        WriteAnswer::Stored {
            resource_version: version,
        }
    }

    /// The stored status of a run.
    pub(crate) fn stored(&self, name: &str) -> &Run {
        self.store[name].status.as_ref().expect("a status")
    }
}

/// A status never takes back what the one before it said for good.
fn keeps_what_was_stored(before: &Run, after: &Run) {
    assert!(
        !before.phase.is_terminal(),
        "a terminal status is overwritten"
    );
    assert!(before.revision.is_none() || before.revision == after.revision);
    for (before, after) in before.steps.iter().zip(&after.steps) {
        if before.phase.is_final() {
            if after.execution_id.is_some() || before.execution_id.is_none() {
                assert_eq!(before, after, "a stored outcome is changed");
            } else {
                // The minimal status keeps the phase.
                assert_eq!(before.phase, after.phase, "a stored outcome is changed");
            }
        }
        assert!(after.phase != StepPhase::Pending || before.phase == StepPhase::Pending);
    }
}

fn key_of(object: &RunObject) -> RunKey {
    RunKey {
        namespace: object.spec.namespace.clone(),
        name: object.spec.name.clone(),
        uid: object.spec.uid.clone(),
    }
}
