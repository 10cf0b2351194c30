//! Which Trigger listens on which path: an immutable table, replaced as a whole when Triggers change.

use std::collections::HashMap;
use std::sync::Arc;

use http::Method;
use kubezap_api::lower::Auth;
use kubezap_api::trigger::Trigger;
use kubezap_engine::effect::KeyRef;
use tokio::sync::watch;

use super::secrets::SecretKey;

/// A Trigger that listens.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) namespace: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) auth: Auth,
    pub(crate) redact_headers: Vec<String>,
    pub(crate) redact_body: bool,
    /// What the engine makes run requests from.
    pub(crate) engine: kubezap_engine::trigger::Trigger,
    /// The object itself, the owner of its FlowRuns.
    pub(crate) object: Arc<Trigger>,
    /// Seconds since the epoch; decides who keeps a path.
    pub(crate) created: i64,
}

impl Route {
    pub(crate) fn trigger(&self) -> &str {
        &self.engine.name
    }

    /// The Flow's name; empty for a Trigger with an action.
    pub(crate) fn flow_name(&self) -> &str {
        self.engine.flow.as_deref().unwrap_or_default()
    }

    pub(crate) fn secret(&self, reference: &KeyRef) -> SecretKey {
        SecretKey {
            namespace: self.namespace.clone(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        }
    }
}

/// A path that is served, for people and for `kubezap dev`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedRoute {
    /// Namespace of the Trigger.
    pub namespace: String,
    /// Name of the Trigger.
    pub trigger: String,
    /// The only method that is taken.
    pub method: String,
    /// Path, beginning with `/hooks`.
    pub path: String,
}

/// A handle on what a gateway serves at the moment; cloning it shares it. Made before the gateway, kept beside it.
#[derive(Clone, Debug)]
pub struct Routes {
    current: watch::Sender<Arc<Table>>,
}

impl Default for Routes {
    fn default() -> Self {
        Self::new()
    }
}

impl Routes {
    /// Starts with no routes.
    pub fn new() -> Self {
        Self {
            current: watch::Sender::new(Arc::default()),
        }
    }

    /// What is served now, sorted.
    pub fn served(&self) -> Vec<ServedRoute> {
        self.current.borrow().served()
    }

    /// Follows what is served. The first answer of [`Changes::next`] comes at once.
    pub fn changes(&self) -> Changes {
        let mut receiver = self.current.subscribe();
        receiver.mark_changed();
        Changes(receiver)
    }

    pub(crate) fn find(&self, path: &str) -> Option<Arc<Route>> {
        self.current.borrow().find(path)
    }

    pub(crate) fn replace(&self, table: Table) {
        self.current.send_replace(Arc::new(table));
    }
}

/// Successive states of a route table; states between two looks are skipped.
#[derive(Debug)]
pub struct Changes(watch::Receiver<Arc<Table>>);

impl Changes {
    /// Waits for the next state and gives it; `None` when the gateway and every handle are gone.
    pub async fn next(&mut self) -> Option<Vec<ServedRoute>> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().served())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    by_path: HashMap<String, Arc<Route>>,
}

/// A Trigger whose path an older one keeps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) namespace: String,
    pub(crate) trigger: String,
    pub(crate) path: String,
    pub(crate) kept_by: String,
}

impl Table {
    /// Gives each path to the oldest Trigger that wants it; of two made in the same second, to the first by name.
    pub(crate) fn new(routes: impl IntoIterator<Item = Arc<Route>>) -> (Self, Vec<Conflict>) {
        let mut routes: Vec<_> = routes.into_iter().collect();
        routes.sort_by(|a, b| {
            (a.created, a.trigger(), &a.namespace).cmp(&(b.created, b.trigger(), &b.namespace))
        });
        let mut by_path: HashMap<String, Arc<Route>> = HashMap::with_capacity(routes.len());
        let mut conflicts = Vec::new();
        for route in routes {
            match by_path.get(&route.path) {
                Some(older) => conflicts.push(Conflict {
                    namespace: route.namespace.clone(),
                    trigger: route.trigger().to_owned(),
                    path: route.path.clone(),
                    kept_by: older.trigger().to_owned(),
                }),
                None => {
                    by_path.insert(route.path.clone(), route);
                }
            }
        }
        (Self { by_path }, conflicts)
    }

    /// Looks a request's path up, as it was sent and then with its percent-encoding undone: a manifest writes `/hooks/é`,
    /// a client sends `/hooks/%C3%A9`.
    fn find(&self, path: &str) -> Option<Arc<Route>> {
        if let Some(route) = self.by_path.get(path) {
            return Some(route.clone());
        }
        if !path.contains('%') {
            return None;
        }
        let decoded = percent_encoding::percent_decode_str(path)
            .decode_utf8()
            .ok()?;
        self.by_path.get(decoded.as_ref()).cloned()
    }

    fn served(&self) -> Vec<ServedRoute> {
        let mut served: Vec<_> = self
            .by_path
            .values()
            .map(|route| ServedRoute {
                namespace: route.namespace.clone(),
                trigger: route.trigger().to_owned(),
                method: route.method.to_string(),
                path: route.path.clone(),
            })
            .collect();
        served.sort();
        served
    }
}
