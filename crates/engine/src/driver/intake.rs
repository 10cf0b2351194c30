//! Which runs a driver holds: what a list or a watch shows, and the slots.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::held::{Found, Held, Question, Stage};
use super::input::{RunKey, RunObject};
use super::pipeline::not_empty;
use super::slot::Slot;
use super::{Driver, RunId};
use crate::observation::Observation;

impl Driver {
    pub(super) fn hold_slots(&mut self, slots: BTreeSet<Slot>, now: Timestamp) {
        self.slots = slots;
        let lost: Vec<_> = self
            .runs
            .iter()
            .filter(|(_, held)| !self.slots.contains(&held.slot))
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.give_up(id, "its slot is no longer held", now);
        }
        // Whoever holds the slot next reads anew, and so does this owner when it comes back.
        self.over.retain(|_, slot| self.slots.contains(slot));
    }

    pub(super) fn seen(&mut self, object: RunObject, now: Timestamp) {
        let key = RunKey {
            namespace: object.spec.namespace.clone(),
            name: object.spec.name.clone(),
            uid: object.spec.uid.clone(),
        };
        if let Some(id) = self.ids.get(&key).copied() {
            return self.seen_again(id, object, now);
        }
        if is_terminal(&object) {
            self.over.remove(&key);
            return;
        }
        if object.deleting || self.over.contains_key(&key) || !self.is_ours(&object) {
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.ids.insert(key.clone(), id);
        self.runs.insert(
            id,
            Held {
                key,
                spec: object.spec.clone(),
                slot: slot_or_first(&object),
                cancel: false,
                left: false,
                stage: Stage::Draining { again: false },
            },
        );
        self.take_up(id, object, true, now);
    }

    /// Decides how a run begins, from what was found in the store.
    pub(super) fn take_up(&mut self, id: RunId, object: RunObject, by_watch: bool, now: Timestamp) {
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        self.touched.push(id);
        held.cancel |= object.cancel;
        held.slot = slot_or_first(&object);
        let found = Found {
            resource_version: object.resource_version,
            status: not_empty(object.status),
            by_watch,
        };
        let question = Question::at(now);
        held.stage = if object.slot.is_none() {
            Stage::Labelling { found, question }
        } else if found.status.is_some() {
            self.resume.push(held.spec.created, id, now);
            Stage::Waiting(found)
        } else {
            Stage::Loading { found, question }
        };
    }

    /// The turn of a run has come that was under way when it was found.
    pub(super) fn resume_turn(&mut self, id: RunId, now: Timestamp) {
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        let question = Question::at(now);
        held.stage = match std::mem::replace(&mut held.stage, Stage::Draining { again: false }) {
            Stage::Waiting(found) => Stage::Loading { found, question },
            other => other,
        };
        self.touched.push(id);
    }

    /// Of a run that is held only metadata counts; what is known of its status is newer.
    fn seen_again(&mut self, id: RunId, object: RunObject, now: Timestamp) {
        let ours = self.is_ours(&object);
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        if let Stage::Draining { again } = &mut held.stage {
            *again = ours && !object.deleting && !is_terminal(&object);
            return;
        }
        if object.deleting {
            return self.deleted(id, now);
        }
        if is_terminal(&object) {
            return self.left(id, now);
        }
        if let Stage::Waiting(found) | Stage::Loading { found, .. } = &mut held.stage
            && found.by_watch
        {
            // Nothing was written since it was found, so this is newer.
            found.resource_version = object.resource_version;
            found.status = not_empty(object.status);
        }
        if object.cancel && !std::mem::replace(&mut held.cancel, true) {
            self.with_id(id, now, |live, names, context| {
                live.advance(&[Observation::CancelRequested], names, context);
            });
        }
    }

    pub(super) fn gone(&mut self, key: &RunKey, now: Timestamp) {
        self.over.remove(key);
        if let Some(id) = self.ids.get(key).copied() {
            self.left(id, now);
        }
    }

    /// A run is not among those to be run any more. When its terminal state may be in the store already, that answer is
    /// awaited; otherwise it was deleted, or someone else ended it.
    fn left(&mut self, id: RunId, now: Timestamp) {
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        held.left = true;
        match &held.stage {
            Stage::Live(live) if live.is_ending() => {}
            _ => self.give_up(id, "it has left the runs that are not over", now),
        }
    }

    /// A run is deleted, or will be: nothing more is written.
    pub(super) fn deleted(&mut self, id: RunId, now: Timestamp) {
        self.mark_over(id);
        self.give_up(id, "it is deleted", now);
    }

    /// Without a label a run is the business of whoever holds the first slot, until the label says whose.
    pub(super) fn is_ours(&self, object: &RunObject) -> bool {
        self.slots.contains(&slot_or_first(object))
    }
}

fn slot_or_first(object: &RunObject) -> Slot {
    object.slot.unwrap_or(0)
}

pub(super) fn is_terminal(object: &RunObject) -> bool {
    object
        .status
        .as_ref()
        .is_some_and(|run| run.phase.is_terminal())
}
