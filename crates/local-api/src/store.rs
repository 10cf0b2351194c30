//! Objects, the order of their changes, and what may be asked of the past.
//!
//! One version counts all writes. Each kind has a table, and a log of its last changes that watches and paged lists read.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use crate::admission::metadata::strings;
use crate::kinds::KindId;

/// Names an object. The namespace of a cluster-wide one is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) kind: KindId,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// An object at one version; never changed.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Value,
    pub(crate) version: u64,
    json: OnceLock<Bytes>,
}

impl Stored {
    fn new(mut value: Value, version: u64) -> Arc<Self> {
        value["metadata"]["resourceVersion"] = version.to_string().into();
        Arc::new(Self {
            value,
            version,
            json: OnceLock::new(),
        })
    }

    /// Wraps an object that is shown but not stored: the answer to a dry run.
    pub(crate) fn unsaved(value: Value) -> Arc<Self> {
        Arc::new(Self {
            value,
            version: 0,
            json: OnceLock::new(),
        })
    }

    /// The object as it is sent; made once.
    pub(crate) fn json(&self) -> Bytes {
        self.json
            .get_or_init(|| self.value.to_string().into())
            .clone()
    }

    pub(crate) fn metadata(&self) -> &Value {
        &self.value["metadata"]
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata()["uid"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_terminating(&self) -> bool {
        !self.metadata()["deletionTimestamp"].is_null()
    }

    /// The same object at another version, as a watch reports one that left its selection.
    pub(crate) fn at(&self, version: u64) -> Arc<Self> {
        Self::new(self.value.clone(), version)
    }
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    /// The object after the write; of a deletion, its last state.
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
    pub(crate) deleted: bool,
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<(String, String), Arc<Stored>>,
    log: VecDeque<Change>,
    /// Version of the newest change that the log has dropped.
    floor: u64,
    signal: watch::Sender<u64>,
}

/// The state at one moment; held for a read or a write that must be whole.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: u64,
    /// Versions below are compacted: no list or watch starts there.
    pub(crate) compacted: u64,
    tables: Vec<Table>,
    by_uid: HashMap<String, Key>,
    dependents: HashMap<String, BTreeSet<Key>>,
    history: usize,
}

/// All objects. Shared by reference.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
}

/// The version asked for is no longer kept.
#[derive(Debug)]
pub(crate) struct Expired;

impl Store {
    /// An empty store that keeps `history` changes of each of `kinds` kinds.
    pub(crate) fn new(kinds: usize, history: usize) -> Self {
        let tables = (0..kinds)
            .map(|_| Table {
                objects: BTreeMap::new(),
                log: VecDeque::new(),
                floor: 0,
                signal: watch::Sender::new(0),
            })
            .collect();
        Self {
            state: Mutex::new(State {
                version: 1,
                compacted: 0,
                tables,
                by_uid: HashMap::new(),
                dependents: HashMap::new(),
                history: history.max(1),
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Every method of State leaves it whole, so a panic elsewhere while it was held does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        self.lock().get(key)
    }

    /// Signals each change of a kind.
    pub(crate) fn signal(&self, kind: KindId) -> watch::Receiver<u64> {
        self.lock().tables[kind.0].signal.subscribe()
    }
}

impl State {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        let row = (key.namespace.clone(), key.name.clone());
        self.tables[key.kind.0].objects.get(&row).cloned()
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<Key> {
        self.by_uid.get(uid).cloned()
    }

    /// Objects that name the uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Key> {
        let keys = self.dependents.get(uid);
        keys.into_iter().flatten().cloned().collect()
    }

    /// Objects of a kind in the order of their names; of one namespace, or of all.
    pub(crate) fn list(&self, kind: KindId, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        let objects = &self.tables[kind.0].objects;
        match namespace {
            None => objects.values().cloned().collect(),
            Some(namespace) => objects
                .range((namespace.to_owned(), String::new())..)
                .take_while(|((at, _), _)| at == namespace)
                .map(|(_, object)| object.clone())
                .collect(),
        }
    }

    /// Objects of a kind as they were at a version.
    pub(crate) fn list_at(
        &self,
        kind: KindId,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<Vec<Arc<Stored>>, Expired> {
        let table = &self.tables[kind.0];
        if version < table.floor || version < self.compacted {
            return Err(Expired);
        }
        let mut objects: BTreeMap<(String, String), Arc<Stored>> = self
            .list(kind, namespace)
            .into_iter()
            .map(|object| (row(&object), object))
            .collect();
        let newer = table.log.iter().rev();
        for change in newer.take_while(|change| change.version > version) {
            let at = row(&change.object);
            if namespace.is_some_and(|namespace| namespace != at.0) {
                continue;
            }
            match &change.previous {
                Some(previous) => objects.insert(at, previous.clone()),
                None => objects.remove(&at),
            };
        }
        Ok(objects.into_values().collect())
    }

    /// Changes of a kind after a version, oldest first.
    pub(crate) fn changes(&self, kind: KindId, after: u64) -> Result<Vec<Change>, Expired> {
        let table = &self.tables[kind.0];
        if after < table.floor {
            return Err(Expired);
        }
        let from = table.log.partition_point(|change| change.version <= after);
        Ok(table.log.range(from..).cloned().collect())
    }

    pub(crate) fn has_content(&self, namespace: &str) -> bool {
        self.tables.iter().any(|table| {
            table
                .objects
                .range((namespace.to_owned(), String::new())..)
                .next()
                .is_some_and(|((at, _), _)| at == namespace)
        })
    }

    pub(crate) fn content(&self, namespace: &str) -> Vec<Key> {
        let mut keys = Vec::new();
        for at in 0..self.tables.len() {
            let kind = KindId(at);
            let objects = self.list(kind, Some(namespace));
            keys.extend(objects.iter().map(|object| key(kind, object)));
        }
        keys
    }

    /// Stores an object under its next version.
    pub(crate) fn put(&mut self, key: &Key, value: Value) -> Arc<Stored> {
        self.version += 1;
        let object = Stored::new(value, self.version);
        let row = (key.namespace.clone(), key.name.clone());
        let previous = self.tables[key.kind.0].objects.insert(row, object.clone());
        if let Some(previous) = &previous {
            if previous.metadata()["ownerReferences"] != object.metadata()["ownerReferences"] {
                self.forget_owners(key, previous);
                self.note_owners(key, &object);
            }
        } else {
            self.by_uid.insert(object.uid().to_owned(), key.clone());
            self.note_owners(key, &object);
        }
        self.record(
            key.kind,
            Change {
                version: self.version,
                object: object.clone(),
                previous,
                deleted: false,
            },
        );
        object
    }

    /// Removes an object; gives its last state under the version of the deletion.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Stored>> {
        let row = (key.namespace.clone(), key.name.clone());
        let previous = self.tables[key.kind.0].objects.remove(&row)?;
        self.version += 1;
        let object = previous.at(self.version);
        self.by_uid.remove(object.uid());
        self.forget_owners(key, &object);
        self.record(
            key.kind,
            Change {
                version: self.version,
                object: object.clone(),
                previous: Some(previous),
                deleted: true,
            },
        );
        Some(object)
    }

    /// Forgets all changes up to now.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
        for table in &mut self.tables {
            if let Some(newest) = table.log.back() {
                table.floor = newest.version;
            }
            table.log.clear();
        }
    }

    fn record(&mut self, kind: KindId, change: Change) {
        let table = &mut self.tables[kind.0];
        table.log.push_back(change);
        while table.log.len() > self.history {
            if let Some(dropped) = table.log.pop_front() {
                table.floor = dropped.version;
            }
        }
        table.signal.send_replace(self.version);
    }

    fn note_owners(&mut self, key: &Key, object: &Stored) {
        for uid in owner_uids(object) {
            let keys = self.dependents.entry(uid.to_owned()).or_default();
            keys.insert(key.clone());
        }
    }

    fn forget_owners(&mut self, key: &Key, object: &Stored) {
        for uid in owner_uids(object) {
            if let Some(keys) = self.dependents.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
    }
}

/// The uids of an object's owners.
pub(crate) fn owner_uids(object: &Stored) -> impl Iterator<Item = &str> {
    let owners = object.metadata()["ownerReferences"].as_array();
    owners
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
}

/// Whether an object has a finalizer.
pub(crate) fn has_finalizer(object: &Stored, name: &str) -> bool {
    strings(object.metadata(), "finalizers").any(|one| one == name)
}

pub(crate) fn key(kind: KindId, object: &Stored) -> Key {
    let (namespace, name) = row(object);
    Key {
        kind,
        namespace,
        name,
    }
}

fn row(object: &Stored) -> (String, String) {
    let metadata = object.metadata();
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, text: &str) -> (Key, Value) {
        let key = Key {
            kind: KindId(0),
            namespace: "n".into(),
            name: name.into(),
        };
        let value =
            json!({"metadata": {"namespace": "n", "name": name, "uid": name}, "text": text});
        (key, value)
    }

    fn texts(objects: &[Arc<Stored>]) -> Vec<&str> {
        objects
            .iter()
            .map(|object| object.value["text"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn the_past_can_be_listed_until_it_is_compacted() {
        let store = Store::new(1, 100);
        let mut state = store.lock();
        for (name, text) in [("a", "1"), ("b", "1")] {
            let (key, value) = object(name, text);
            state.put(&key, value);
        }
        let then = state.version;
        let (key, value) = object("a", "2");
        state.put(&key, value);
        state.remove(&object("b", "").0);
        let (key, value) = object("c", "2");
        state.put(&key, value);

        let list = |state: &State, version| state.list_at(KindId(0), Some("n"), version);
        assert_eq!(texts(&state.list(KindId(0), None)), ["2", "2"]);
        assert_eq!(texts(&list(&state, then).unwrap()), ["1", "1"]);
        state.compact();
        assert!(list(&state, then).is_err());
        assert!(list(&state, state.version).is_ok());
    }

    #[test]
    fn a_full_log_drops_its_oldest_changes() {
        let store = Store::new(1, 2);
        let mut state = store.lock();
        for text in ["1", "2", "3"] {
            let (key, value) = object("a", text);
            state.put(&key, value);
        }
        assert!(state.changes(KindId(0), 1).is_err());
        assert_eq!(state.changes(KindId(0), 2).unwrap().len(), 2);
    }
}
