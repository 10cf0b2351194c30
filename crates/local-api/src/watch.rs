//! Watches: the changes of a collection as a stream of lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::stream;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::kinds::Kind;
use crate::selector::Selector;
use crate::store::{Change, KindIndex, Store};
use crate::table;

/// A watch ends by itself after this long, as on the real server.
const LONGEST: Duration = Duration::from_secs(1_800);
/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(30);

/// What a watch was asked to show.
pub(crate) struct Watch {
    pub(crate) kinds: Arc<Vec<Kind>>,
    pub(crate) kind: KindIndex,
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
    /// Shows what comes after this version.
    pub(crate) from: u64,
    /// Shown first, as ADDED.
    pub(crate) initial: Vec<Arc<Value>>,
    /// Whether the end of `initial` is marked by a bookmark.
    pub(crate) mark_initial_end: bool,
    pub(crate) bookmarks: bool,
    pub(crate) as_table: bool,
    pub(crate) timeout: Option<Duration>,
    /// Shows changes this much later: a fault.
    pub(crate) delay: Duration,
}

/// Where a watch is.
struct Cursor {
    watch: Watch,
    store: Arc<Store>,
    newest: tokio::sync::watch::Receiver<u64>,
    seen: u64,
    end: Instant,
    next_bookmark: Instant,
    pending: std::collections::VecDeque<Bytes>,
    done: bool,
}

/// The lines of a watch.
pub(crate) fn lines(watch: Watch, store: Arc<Store>) -> impl Stream<Item = Bytes> + Send + 'static {
    let newest = store.subscribe();
    let now = Instant::now();
    let mut cursor = Cursor {
        seen: watch.from,
        end: now + watch.timeout.unwrap_or(LONGEST).min(LONGEST),
        next_bookmark: now + BOOKMARK_INTERVAL,
        pending: Default::default(),
        done: false,
        newest,
        store,
        watch,
    };
    cursor.show_initial();
    stream::unfold(cursor, |mut cursor| async move {
        cursor.next().await.map(|line| (line, cursor))
    })
}

impl Cursor {
    fn show_initial(&mut self) {
        let initial = std::mem::take(&mut self.watch.initial);
        for object in initial {
            let line = self.line("ADDED", &object);
            self.pending.push_back(line);
        }
        if self.watch.mark_initial_end {
            let line = self.bookmark(self.seen, true);
            self.pending.push_back(line);
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.pending.pop_front() {
                return Some(line);
            }
            if self.done {
                return None;
            }
            self.take_changes();
            if !self.pending.is_empty() {
                continue;
            }
            let bookmark_at = if self.watch.bookmarks {
                self.next_bookmark
            } else {
                self.end
            };
            tokio::select! {
                changed = self.newest.changed() => match changed {
                    Ok(()) if !self.watch.delay.is_zero() => tokio::time::sleep(self.watch.delay).await,
                    Ok(()) => {}
                    Err(_) => self.done = true,
                },
                () = tokio::time::sleep_until(self.end) => {
                    if self.watch.bookmarks {
                        let line = self.bookmark(self.seen, false);
                        self.pending.push_back(line);
                    }
                    self.done = true;
                }
                () = tokio::time::sleep_until(bookmark_at) => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    let line = self.bookmark(self.seen, false);
                    self.pending.push_back(line);
                }
            }
        }
    }

    fn take_changes(&mut self) {
        let newest = *self.newest.borrow_and_update();
        if newest == self.seen {
            return;
        }
        let store = self.store.clone();
        let inner = store.lock();
        if inner.compacted() > self.seen {
            self.pending
                .push_back(expired(self.seen, inner.compacted()));
            self.done = true;
            return;
        }
        let mine = |change: &&Change| {
            change.kind == self.watch.kind
                && self
                    .watch
                    .namespace
                    .as_ref()
                    .is_none_or(|namespace| *namespace == change.namespace)
        };
        let changes: Vec<Change> = inner
            .changes_after(self.seen)
            .filter(mine)
            .cloned()
            .collect();
        self.seen = inner.version();
        drop(inner);
        for change in changes {
            if let Some(type_) = self.type_of(&change) {
                let line = self.line(type_, &change.object);
                self.pending.push_back(line);
            }
        }
    }

    /// An object that enters the selection is ADDED, one that leaves it is DELETED.
    fn type_of(&self, change: &Change) -> Option<&'static str> {
        let selector = &self.watch.selector;
        let before = change
            .before
            .as_ref()
            .is_some_and(|before| selector.takes(before));
        let now = !change.deleted && selector.takes(&change.object);
        match (before, now) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    fn line(&self, type_: &str, object: &Arc<Value>) -> Bytes {
        let mut text = format!("{{\"type\":\"{type_}\",\"object\":");
        if self.watch.as_table {
            let kind = &self.watch.kinds[self.watch.kind];
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            text.push_str(
                &table::of(kind, &[object.as_ref()], metadata, Timestamp::now()).to_string(),
            );
        } else {
            text.push_str(&object.to_string());
        }
        text.push_str("}\n");
        text.into()
    }

    fn bookmark(&self, version: u64, initial_end: bool) -> Bytes {
        let kind = &self.watch.kinds[self.watch.kind];
        let mut metadata =
            json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object =
            json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into()
    }
}

/// What a watch is told whose version is no longer in the history.
pub(crate) fn expired(version: u64, compacted: u64) -> Bytes {
    let refusal = crate::errors::Refusal::expired(format!(
        "too old resource version: {version} ({compacted})"
    ));
    format!(
        "{}\n",
        json!({"type": "ERROR", "object": refusal.to_json()})
    )
    .into()
}
