//! Brings the objects of a kind to what their specs ask for: one object once at a time, again after a failure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, Stream, StreamExt as _};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::watch::{Change, ObjectKey, Watched, full_name};

/// Objects that are reconciled at once.
const AT_ONCE: usize = 16;

/// Delay after the first failure; doubled by each further one, up to [`LONGEST`].
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(60);

/// An object's place: what its name means, whoever bears it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    fn of(key: &ObjectKey) -> Self {
        Self::new(&key.namespace, &key.name)
    }
}

/// What is done with the objects of a kind.
pub(crate) trait Reconcile: Send + Sync + 'static {
    /// Which kind.
    type Kind: Watched;

    /// Notes what the watch shows, before it is reconciled (`None`: it is gone), and names the others that it concerns.
    fn note(&self, place: &Place, object: Option<&Arc<Self::Kind>>) -> Vec<Place> {
        let _ = (place, object);
        Vec::new()
    }

    /// Brings one object up to date, and says when to look at it again whatever happens.
    fn reconcile(
        &self,
        object: Arc<Self::Kind>,
    ) -> impl Future<Output = Result<Option<Duration>, ReconcileError>> + Send;
}

/// Why an object is not up to date; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The API server.
    #[error("cannot {attempt}: {source}")]
    Api {
        /// What was tried, such as `store the revision`.
        attempt: &'static str,
        /// What it said.
        source: kube::Error,
    },
    /// A panic, which the panic hook has told.
    #[error("a defect of the controller; please report what the log says of it")]
    Defect,
    /// Two specs whose hashes begin alike.
    #[error("the ControllerRevision {name} holds another spec; change the spec in any way")]
    Collision {
        /// Which.
        name: String,
    },
}

impl ReconcileError {
    pub(crate) fn api(attempt: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { attempt, source }
    }
}

type Done = (Place, Result<Option<Duration>, ReconcileError>);

/// Reconciles for as long as the process runs. `synced` becomes true when every object that was there at the start has
/// had its first turn.
pub(crate) async fn run<R: Reconcile>(
    reconciler: Arc<R>,
    changes: impl Stream<Item = Change<R::Kind>> + Unpin,
    sources: usize,
    synced: watch::Sender<bool>,
) {
    let mut changes = changes;
    let mut work = Work::<R::Kind>::default();
    let mut running: FuturesUnordered<BoxFuture<'static, Done>> = FuturesUnordered::new();
    let mut listed = 0;
    loop {
        while running.len() < AT_ONCE
            && let Some((place, object)) = work.take(Instant::now())
        {
            let reconciler = Arc::clone(&reconciler);
            running.push(Box::pin(async move {
                // One object that trips over a defect must not take the others down with it.
                let attempt = AssertUnwindSafe(reconciler.reconcile(object)).catch_unwind();
                (place, attempt.await.unwrap_or(Err(ReconcileError::Defect)))
            }));
        }
        if listed >= sources && work.idle_of_first() {
            synced.send_if_modified(|synced| !std::mem::replace(synced, true));
        }
        let next = work.next().filter(|_| running.len() < AT_ONCE);
        tokio::select! {
            Some(change) = changes.next() => match change {
                Change::Applied(object) => {
                    let object = Arc::new(object);
                    let place = Place::of(&ObjectKey::of(&*object));
                    for other in reconciler.note(&place, Some(&object)) {
                        work.wake(&other);
                    }
                    work.applied(place, object, listed < sources);
                }
                Change::Deleted(key) => {
                    let place = Place::of(&key);
                    if work.deleted(&place, &key.uid) {
                        for other in reconciler.note(&place, None) {
                            work.wake(&other);
                        }
                    }
                }
                Change::Synced => listed += 1,
            },
            Some((place, outcome)) = running.next() => work.done(place, outcome),
            () = sleep_until(next) => {}
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The objects, and when each is due.
struct Work<K> {
    objects: HashMap<Place, Arc<K>>,
    due: BTreeSet<(Instant, Place)>,
    due_of: HashMap<Place, Instant>,
    /// In the middle of it; true when it is to be done again after.
    running: BTreeMap<Place, bool>,
    failures: HashMap<Place, u32>,
    /// Shown by the first list, and not yet reconciled.
    first: BTreeSet<Place>,
}

impl<K> Default for Work<K> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            due: BTreeSet::new(),
            due_of: HashMap::new(),
            running: BTreeMap::new(),
            failures: HashMap::new(),
            first: BTreeSet::new(),
        }
    }
}

impl<K: Watched> Work<K> {
    fn applied(&mut self, place: Place, object: Arc<K>, first: bool) {
        if first {
            self.first.insert(place.clone());
        }
        self.objects.insert(place.clone(), object);
        self.failures.remove(&place);
        self.wake(&place);
    }

    /// Says whether it was the object that was known.
    fn deleted(&mut self, place: &Place, uid: &str) -> bool {
        let same = self
            .objects
            .get(place)
            .is_some_and(|object| object.meta().uid.as_deref().unwrap_or_default() == uid);
        if same {
            self.objects.remove(place);
            self.failures.remove(place);
            self.first.remove(place);
            self.set_due(place, None);
        }
        same
    }

    fn wake(&mut self, place: &Place) {
        if let Some(again) = self.running.get_mut(place) {
            *again = true;
        } else if self.objects.contains_key(place) {
            self.set_due(place, Some(Instant::now()));
        }
    }

    fn set_due(&mut self, place: &Place, at: Option<Instant>) {
        if let Some(before) = self.due_of.remove(place) {
            self.due.remove(&(before, place.clone()));
        }
        if let Some(at) = at {
            self.due.insert((at, place.clone()));
            self.due_of.insert(place.clone(), at);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn take(&mut self, now: Instant) -> Option<(Place, Arc<K>)> {
        while self.next().is_some_and(|at| at <= now) {
            let (_, place) = self.due.pop_first()?;
            self.due_of.remove(&place);
            if let Some(object) = self.objects.get(&place) {
                self.running.insert(place.clone(), false);
                return Some((place, Arc::clone(object)));
            }
        }
        None
    }

    fn done(&mut self, place: Place, outcome: Result<Option<Duration>, ReconcileError>) {
        let again = self.running.remove(&place).unwrap_or_default();
        self.first.remove(&place);
        let Some(object) = self.objects.get(&place) else {
            return;
        };
        let later = match outcome {
            Ok(later) => {
                self.failures.remove(&place);
                later
            }
            Err(error) => {
                let failures = self.failures.entry(place.clone()).or_default();
                let delay = SHORTEST
                    .saturating_mul(1 << (*failures).min(16))
                    .min(LONGEST);
                *failures += 1;
                tracing::warn!(
                    kind = %K::kind(&()),
                    object = full_name(&**object),
                    %error,
                    retry_in_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    "not reconciled"
                );
                Some(delay)
            }
        };
        let now = Instant::now();
        let due = if again {
            Some(now)
        } else {
            later.map(|delay| now + delay)
        };
        self.set_due(&place, due);
    }

    fn idle_of_first(&self) -> bool {
        self.first.is_empty()
    }
}
