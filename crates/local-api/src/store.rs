//! Objects, their versions, and what happened to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::sync::watch;

/// Position of a kind in the table of kinds.
pub(crate) type KindIndex = usize;

/// Changes kept for watches that resume.
const HISTORY: usize = 50_000;

/// Identity of an object within its kind; the namespace is empty for cluster-wide kinds.
pub(crate) type Key = (String, String);

/// What happened to an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: KindIndex,
    pub(crate) namespace: String,
    /// As it was before; `None` when it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// As it is now; when it was deleted, as it was last, with the version of its deletion.
    pub(crate) object: Arc<Value>,
    pub(crate) deleted: bool,
}

/// All objects.
#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    version: u64,
    /// The newest version that is no longer in the history.
    compacted: u64,
    objects: BTreeMap<KindIndex, BTreeMap<Key, Arc<Value>>>,
    history: VecDeque<Change>,
    newest: watch::Sender<u64>,
}

impl Store {
    pub(crate) fn new() -> Self {
        let newest = watch::Sender::new(1);
        let inner = Inner {
            version: 1,
            compacted: 0,
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            newest: newest.clone(),
        };
        Self {
            inner: Mutex::new(inner),
            newest,
        }
    }

    /// Exclusive access: what happens under one lock is one transaction.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock is held leaves whole objects behind: every change is a single insert.
        self.inner
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Tells when there is something newer.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }
}

impl Inner {
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn get(&self, kind: KindIndex, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects
            .get(&kind)?
            .get(&(namespace.to_owned(), name.to_owned()))
            .cloned()
    }

    /// The objects of a kind from a key on, in order; of one namespace, or of all when `namespace` is `None`.
    pub(crate) fn range<'a>(
        &'a self,
        kind: KindIndex,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        use std::ops::Bound;
        let lower = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included((namespace.to_owned(), String::new())),
            (None, None) => Bound::Unbounded,
        };
        let objects = self
            .objects
            .get(&kind)
            .into_iter()
            .flat_map(move |objects| objects.range((lower.clone(), Bound::Unbounded)));
        objects.take_while(move |(key, _)| namespace.is_none_or(|namespace| key.0 == namespace))
    }

    /// Every object of every kind.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (KindIndex, &Key, &Arc<Value>)> {
        self.objects
            .iter()
            .flat_map(|(kind, objects)| objects.iter().map(|(key, object)| (*kind, key, object)))
    }

    /// Stores an object under a new version, which it carries.
    pub(crate) fn put(&mut self, kind: KindIndex, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = Value::String(self.version.to_string());
        let object = Arc::new(object);
        let before = self
            .objects
            .entry(kind)
            .or_default()
            .insert(key.clone(), object.clone());
        self.record(Change {
            version: self.version,
            kind,
            namespace: key.0,
            before,
            object: object.clone(),
            deleted: false,
        });
        object
    }

    /// Removes an object under a new version.
    pub(crate) fn remove(&mut self, kind: KindIndex, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.get_mut(&kind)?.remove(key)?;
        self.version += 1;
        let mut last = before.as_ref().clone();
        last["metadata"]["resourceVersion"] = Value::String(self.version.to_string());
        let last = Arc::new(last);
        self.record(Change {
            version: self.version,
            kind,
            namespace: key.0.clone(),
            before: Some(before),
            object: last.clone(),
            deleted: true,
        });
        Some(last)
    }

    /// The changes after a version, oldest first.
    pub(crate) fn changes_after(&self, version: u64) -> impl Iterator<Item = &Change> {
        let begin = self
            .history
            .partition_point(|change| change.version <= version);
        self.history.range(begin..)
    }

    /// Forgets all history, so that watches from older versions are told 410.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.version;
    }

    fn record(&mut self, change: Change) {
        if self.history.len() == HISTORY {
            if let Some(oldest) = self.history.pop_front() {
                self.compacted = oldest.version;
            }
        }
        let version = change.version;
        self.history.push_back(change);
        self.newest.send_replace(version);
    }
}
