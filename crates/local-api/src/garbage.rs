//! Deletion: finalizers, dependents and the content of namespaces.
//!
//! What a real cluster's controllers do a moment later is done here with the write that causes it, as writes of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::Registry;
use crate::store::{Key, State, Stored, has_finalizer, owner_uids};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// What happens to the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What a deletion left.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is gone; its last state.
    Gone(Arc<Stored>),
    /// The object waits for its finalizers.
    Terminating(Arc<Stored>),
}

/// A write to a locked store, with everything that follows from it.
pub(crate) struct Cascade<'s> {
    pub(crate) state: &'s mut State,
    pub(crate) registry: &'s Registry,
    /// The time of the deletion, RFC 3339 with seconds.
    pub(crate) now: String,
}

impl Cascade<'_> {
    /// Deletes an object, or marks it when a finalizer holds it.
    pub(crate) fn delete(&mut self, key: &Key, propagation: Propagation) -> Option<Deleted> {
        let object = self.state.get(key)?;
        if key.kind == self.registry.namespaces().id {
            return Some(self.delete_namespace(key, &object));
        }
        let dependents = self.state.dependents(object.uid());
        match propagation {
            Propagation::Orphan => {
                for dependent in dependents {
                    self.orphan(&dependent, object.uid());
                }
            }
            Propagation::Foreground if !dependents.is_empty() => {
                self.mark(key, Some(FOREGROUND));
                for dependent in dependents {
                    self.collect(&dependent);
                }
                return Some(match self.state.get(key) {
                    Some(object) => Deleted::Terminating(object),
                    None => Deleted::Gone(object),
                });
            }
            Propagation::Foreground | Propagation::Background => {}
        }
        if object.metadata()["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
        {
            self.mark(key, None);
            return self.state.get(key).map(Deleted::Terminating);
        }
        self.remove(key).map(Deleted::Gone)
    }

    /// Stores an object; one that is being deleted and has lost its last finalizer goes.
    pub(crate) fn put(&mut self, key: &Key, value: Value) -> Arc<Stored> {
        let stored = self.state.put(key, value);
        let held = stored.metadata()["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if stored.is_terminating() && !held && key.kind != self.registry.namespaces().id {
            self.remove(key);
        } else if owner_uids(&stored).next().is_some() && self.owners_are_gone(&stored) {
            self.delete(key, Propagation::Background);
        }
        stored
    }

    /// Removes an object, then what only it owned, then whoever waited for it.
    fn remove(&mut self, key: &Key) -> Option<Arc<Stored>> {
        let first = self.state.remove(key)?;
        let mut removed = VecDeque::from([first.clone()]);
        while let Some(object) = removed.pop_front() {
            for dependent in self.state.dependents(object.uid()) {
                self.collect(&dependent);
            }
            let owners: Vec<Key> = owner_uids(&object)
                .filter_map(|uid| self.state.by_uid(uid))
                .collect();
            for owner in owners {
                self.finish_foreground(&owner);
            }
            self.finish_namespace(object.metadata()["namespace"].as_str().unwrap_or_default());
        }
        Some(first)
    }

    /// Deletes a dependent that has no owner left.
    fn collect(&mut self, key: &Key) {
        let Some(object) = self.state.get(key) else {
            return;
        };
        let waited_for = owner_uids(&object).any(|uid| {
            self.state
                .by_uid(uid)
                .and_then(|owner| self.state.get(&owner))
                .is_some_and(|owner| !(owner.is_terminating() && has_finalizer(&owner, FOREGROUND)))
        });
        if !waited_for && self.owners_are_known(&object) {
            self.delete(key, Propagation::Background);
        }
    }

    fn owners_are_gone(&self, object: &Stored) -> bool {
        self.owners_are_known(object)
            && owner_uids(object).all(|uid| self.state.by_uid(uid).is_none())
    }

    /// Whether all owners are of kinds that are served here: of others nobody can say that they are gone.
    fn owners_are_known(&self, object: &Stored) -> bool {
        let owners = object.metadata()["ownerReferences"].as_array();
        owners.into_iter().flatten().all(|owner| {
            let text = |key: &str| owner[key].as_str().unwrap_or_default();
            self.registry
                .owner(text("apiVersion"), text("kind"))
                .is_some()
        })
    }

    fn mark(&mut self, key: &Key, finalizer: Option<&str>) {
        let Some(object) = self.state.get(key) else {
            return;
        };
        let mut value = object.value.clone();
        let metadata = &mut value["metadata"];
        let mut changed = false;
        if let Some(finalizer) = finalizer
            && !has_finalizer(&object, finalizer)
        {
            let mut finalizers = metadata["finalizers"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            finalizers.push(finalizer.into());
            metadata["finalizers"] = finalizers.into();
            changed = true;
        }
        if !object.is_terminating() {
            metadata["deletionTimestamp"] = self.now.as_str().into();
            metadata["deletionGracePeriodSeconds"] = 0.into();
            if let Some(generation) = metadata["generation"].as_i64() {
                metadata["generation"] = (generation + 1).into();
            }
            changed = true;
        }
        if changed {
            self.state.put(key, value);
        }
    }

    fn orphan(&mut self, key: &Key, owner: &str) {
        let Some(object) = self.state.get(key) else {
            return;
        };
        let mut value = object.value.clone();
        if let Some(owners) = value["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|one| one["uid"] != owner);
        }
        self.state.put(key, value);
    }

    fn finish_foreground(&mut self, key: &Key) {
        let Some(object) = self.state.get(key) else {
            return;
        };
        if object.is_terminating()
            && has_finalizer(&object, FOREGROUND)
            && self.state.dependents(object.uid()).is_empty()
        {
            let mut value = object.value.clone();
            if let Some(finalizers) = value["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
            }
            self.put(key, value);
        }
    }

    fn delete_namespace(&mut self, key: &Key, object: &Arc<Stored>) -> Deleted {
        if !object.is_terminating() {
            let mut value = object.value.clone();
            value["metadata"]["deletionTimestamp"] = self.now.as_str().into();
            value["status"] = json!({"phase": "Terminating"});
            self.state.put(key, value);
        }
        let terminating = self.state.get(key).unwrap_or_else(|| object.clone());
        for content in self.state.content(&key.name) {
            self.delete(&content, Propagation::Background);
        }
        self.finish_namespace(&key.name);
        Deleted::Terminating(terminating)
    }

    fn finish_namespace(&mut self, name: &str) {
        if name.is_empty() || self.state.has_content(name) {
            return;
        }
        let key = Key {
            kind: self.registry.namespaces().id,
            namespace: String::new(),
            name: name.to_owned(),
        };
        if self
            .state
            .get(&key)
            .is_some_and(|namespace| namespace.is_terminating())
        {
            self.state.remove(&key);
        }
    }
}
