//! Watches: what a selection of objects becomes, event by event.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use crate::Inner;
use crate::failure::{Failure, Result};
use crate::faults::{Fault, Subject};
use crate::field::FieldError;
use crate::kinds::KindId;
use crate::reply::Reply;
use crate::request::{Request, Shape};
use crate::selector::Selector;
use crate::show::{Show, storage};
use crate::store::{Change, Stored, key};

/// A watch with a time limit gets its last bookmark this long before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

struct Watch {
    api: Arc<Inner>,
    kind: KindId,
    shape: Shape,
    namespace: Option<String>,
    selector: Selector,
    /// Everything up to this version has been reported.
    seen: u64,
    queue: VecDeque<Bytes>,
    columns_sent: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Option<Instant>,
    changed: Receiver<u64>,
    faults_changed: Receiver<()>,
    finished: bool,
}

impl Inner {
    pub(crate) fn watch(self: &Arc<Self>, request: &Request<'_>) -> Result<Reply> {
        let query = &request.query;
        let selector = request.selector()?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let asked = query.version()?;
        let initial = initial_events(request)?;
        let now = Instant::now();
        let timeout = query
            .number("timeoutSeconds")?
            .filter(|seconds| *seconds > 0);
        let deadline = timeout.map(|seconds| now + Duration::from_secs(seconds));
        let kind = request.kind.storage();
        let changed = self.store.signal(kind);
        let faults_changed = self.faults.signal();

        let mut watch = Watch {
            api: self.clone(),
            kind: request.kind.id,
            shape: request.shape,
            namespace: request.namespace.clone(),
            selector,
            seen: 0,
            queue: VecDeque::new(),
            columns_sent: false,
            bookmarks,
            next_bookmark: next_bookmark(now, self.bookmark_every, deadline),
            deadline,
            changed,
            faults_changed,
            finished: false,
        };
        let expired = self
            .faults
            .take(&watch.subject(), |fault| *fault == Fault::WatchExpired)
            .is_some();
        let state = self.store.lock();
        let from = asked.unwrap_or(0);
        if from > state.version {
            return Err(Failure::too_large_version(from, state.version));
        }
        let with_state = initial.unwrap_or(from == 0);
        if with_state {
            watch.seen = state.version;
            let objects = state.list(kind, request.namespace.as_deref());
            drop(state);
            for object in objects {
                if watch.selects(&object) {
                    watch.push("ADDED", &object);
                }
            }
            if initial == Some(true) && bookmarks {
                watch.push_bookmark(true);
            }
        } else {
            let from = if from == 0 { state.version } else { from };
            watch.seen = from;
            if from < state.compacted || state.changes(kind, from).is_err() || expired {
                let floor = state.compacted.max(from + 1);
                drop(state);
                watch.push_expired(from, floor);
            }
        }
        let events = futures::stream::unfold(watch, |mut watch| async move {
            let event = watch.next().await?;
            Some((event, watch))
        });
        Ok(Reply::stream(events.boxed()))
    }
}

/// Whether the state comes first; `None` leaves it to the resourceVersion.
fn initial_events(request: &Request<'_>) -> Result<Option<bool>> {
    let query = &request.query;
    let mode = query.get("resourceVersionMatch").unwrap_or_default();
    let sent = match query.get("sendInitialEvents") {
        None | Some("") => None,
        Some(_) => Some(query.flag("sendInitialEvents")),
    };
    let mut errors = Vec::new();
    match (sent, mode) {
        (Some(_), "NotOlderThan") | (None, "") => {}
        (None, _) => errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )),
        (Some(_), "") => errors.push(FieldError::forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )),
        (Some(_), other) => errors.push(FieldError::not_supported(
            "resourceVersionMatch",
            other.into(),
            &["NotOlderThan".into()],
        )),
    }
    if errors.is_empty() {
        Ok(sent)
    } else {
        Err(Failure::invalid_named(
            "meta.k8s.io",
            "ListOptions",
            "",
            &errors,
        ))
    }
}

fn next_bookmark(now: Instant, every: Duration, deadline: Option<Instant>) -> Instant {
    let regular = now + every;
    match deadline.and_then(|deadline| deadline.checked_sub(LAST_BOOKMARK)) {
        Some(last) if last > now => regular.min(last),
        _ => regular,
    }
}

impl Watch {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self
                .api
                .faults
                .take(&self.subject(), |fault| *fault == Fault::WatchDropped)
                .is_some()
            {
                self.finished = true;
                self.queue.clear();
                return Some(Err(io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "the watch was made to break off",
                )));
            }
            if let Some(event) = self.queue.pop_front() {
                return Some(Ok(event));
            }
            if self.finished {
                return None;
            }
            let stalled = self
                .api
                .faults
                .applies(&self.subject(), &Fault::WatchStalled);
            if !stalled {
                self.changed.borrow_and_update();
                self.catch_up();
                if !self.queue.is_empty() {
                    continue;
                }
            }
            let deadline = self.deadline.unwrap_or_else(far_away);
            let bookmark = if self.bookmarks && !stalled {
                self.next_bookmark
            } else {
                far_away()
            };
            tokio::select! {
                changed = self.changed.changed(), if !stalled => {
                    if changed.is_err() {
                        return None;
                    }
                }
                changed = self.faults_changed.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = tokio::time::sleep_until(bookmark) => {
                    self.catch_up();
                    self.push_bookmark(false);
                    let now = Instant::now();
                    self.next_bookmark = next_bookmark(now, self.api.bookmark_every, self.deadline);
                }
                () = tokio::time::sleep_until(deadline) => return None,
            }
        }
    }

    /// Queues everything that happened since.
    fn catch_up(&mut self) {
        let kind = self.api.registry.get(self.kind).storage();
        let (changes, version) = {
            let state = self.api.store.lock();
            (state.changes(kind, self.seen), state.version)
        };
        match changes {
            Ok(changes) => {
                for change in &changes {
                    self.report(change);
                }
                self.seen = version;
            }
            Err(_) => self.push_expired(self.seen, version),
        }
    }

    fn report(&mut self, change: &Change) {
        let after = !change.deleted && self.selects(&change.object);
        let before = change
            .previous
            .as_ref()
            .is_some_and(|previous| self.selects(previous));
        match (before, after) {
            (false, true) => self.push("ADDED", &change.object),
            (true, true) => self.push("MODIFIED", &change.object),
            (true, false) if change.deleted => self.push("DELETED", &change.object),
            (true, false) => {
                if let Some(previous) = &change.previous {
                    self.push("DELETED", &previous.at(change.version));
                }
            }
            (false, false) => {}
        }
    }

    fn selects(&self, object: &Stored) -> bool {
        let kind = self.api.registry.get(self.kind);
        let at = key(kind.storage(), object);
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == at.namespace)
            && self
                .selector
                .matches(storage(&self.api.registry, kind), &object.value)
    }

    fn push(&mut self, event: &str, object: &Stored) {
        let bytes = self.show().event(object, !self.columns_sent);
        self.columns_sent = true;
        self.queue.push_back(line(event, &bytes));
    }

    fn push_bookmark(&mut self, initial_end: bool) {
        let bytes = self.show().bookmark(self.seen, initial_end);
        self.queue.push_back(line("BOOKMARK", &bytes));
    }

    fn push_expired(&mut self, from: u64, oldest: u64) {
        let failure = Failure::expired(format!("too old resource version: {from} ({oldest})"));
        let bytes = failure.status().to_string().into();
        self.queue.push_back(line("ERROR", &bytes));
        self.finished = true;
    }

    fn show(&self) -> Show<'_> {
        Show {
            kind: self.api.registry.get(self.kind),
            shape: self.shape,
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            verb: "watch",
            resource: &self.api.registry.get(self.kind).plural,
            subresource: "",
            namespace: self.namespace.as_deref().unwrap_or_default(),
            name: self.selector.name().unwrap_or_default(),
        }
    }
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400 * 365)
}

fn line(event: &str, object: &Bytes) -> Bytes {
    let mut text = format!("{{\"type\":\"{event}\",\"object\":").into_bytes();
    text.extend_from_slice(object);
    text.extend_from_slice(b"}\n");
    text.into()
}
