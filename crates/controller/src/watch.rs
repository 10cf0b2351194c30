//! What the API server shows of a kind, as changes: lists that are read again become the differences that they hold.

use std::collections::BTreeSet;
use std::fmt::Debug;

use futures::stream::{self, BoxStream, SelectAll, StreamExt as _, select_all};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use kubezap_chassis::admin::{Gate, Readiness};
use kubezap_chassis::namespaces::Namespaces;
use serde::de::DeserializeOwned;

/// Names an object; the uid tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl ObjectKey {
    pub(crate) fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        }
    }
}

/// One change.
#[derive(Debug)]
pub(crate) enum Change<K> {
    /// It is there, perhaps as it was before.
    Applied(K),
    /// It is gone.
    Deleted(ObjectKey),
    /// All that were there when the watch began have been shown. Comes again after every list.
    Synced,
}

/// Where to watch, and whom to tell when it does not work.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) client: Client,
    pub(crate) namespaces: Namespaces,
    pub(crate) readiness: Readiness,
}

/// Kinds that are watched.
pub(crate) trait Watched:
    Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

impl Scope {
    /// Watches a kind in every namespace of the scope. One namespace that fails does not stop the others, and stands in
    /// `/readyz`. [`Change::Synced`] comes once per namespace. `otherwise` is for a server that does not know the field
    /// selector of `config`.
    pub(crate) fn changes<K: Watched>(
        &self,
        config: &watcher::Config,
        otherwise: Option<&watcher::Config>,
    ) -> SelectAll<BoxStream<'static, Change<K>>> {
        let one = |api: Api<K>, place: Option<&str>| {
            let plural = K::plural(&());
            let name = match place {
                Some(namespace) => format!("watch {plural} in {namespace}"),
                None => format!("watch {plural}"),
            };
            let gate = self.readiness.gate(name.as_str(), "not listed yet");
            let events = events(api, config.clone(), otherwise.cloned());
            changes(events, gate, name)
        };
        select_all(match &self.namespaces {
            Namespaces::All => vec![one(Api::all(self.client.clone()), None)],
            Namespaces::Only(names) => names
                .iter()
                .map(|name| one(Api::namespaced(self.client.clone(), name), Some(name)))
                .collect(),
        })
    }

    /// How many times [`Change::Synced`] comes before everything has been shown once.
    pub(crate) fn sources(&self) -> usize {
        match &self.namespaces {
            Namespaces::All => 1,
            Namespaces::Only(names) => names.len(),
        }
    }
}

fn events<K: Watched>(
    api: Api<K>,
    config: watcher::Config,
    otherwise: Option<watcher::Config>,
) -> BoxStream<'static, watcher::Result<watcher::Event<K>>> {
    let first = watcher(api.clone(), config).default_backoff().boxed();
    stream::unfold((first, otherwise), move |(mut events, mut otherwise)| {
        let api = api.clone();
        async move {
            let mut event = events.next().await?;
            if let Err(error) = &event
                && is_unknown_selector(error)
                && let Some(config) = otherwise.take()
            {
                events = watcher(api, config).default_backoff().boxed();
                event = events.next().await?;
            }
            Some((event, (events, otherwise)))
        }
    })
    .boxed()
}

/// Before 1.32 a server answers so, where `selectableFields` of a CRD are not known.
fn is_unknown_selector(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => {
            status.code == 400 && status.message.contains("field label not supported")
        }
        _ => false,
    }
}

fn changes<K: Watched>(
    events: BoxStream<'static, watcher::Result<watcher::Event<K>>>,
    gate: Gate,
    name: String,
) -> BoxStream<'static, Change<K>> {
    let mut known = Known::default();
    events
        .flat_map(move |event| {
            let changes = match event {
                Ok(event) => {
                    if matches!(event, watcher::Event::InitDone) {
                        gate.ready();
                    }
                    known.changes(event)
                }
                Err(error) => {
                    tracing::warn!(watch = name, %error, "the watch failed and begins again");
                    gate.not_ready(error.to_string());
                    Vec::new()
                }
            };
            stream::iter(changes)
        })
        .boxed()
}

/// The objects of one watch, so that a list says what is gone.
#[derive(Default)]
struct Known {
    present: BTreeSet<ObjectKey>,
    listed: BTreeSet<ObjectKey>,
}

impl Known {
    fn changes<K: Watched>(&mut self, event: watcher::Event<K>) -> Vec<Change<K>> {
        match event {
            watcher::Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                self.listed.insert(ObjectKey::of(&object));
                vec![Change::Applied(object)]
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let before = std::mem::replace(&mut self.present, listed);
                before
                    .difference(&self.present)
                    .cloned()
                    .map(Change::Deleted)
                    .chain([Change::Synced])
                    .collect()
            }
            watcher::Event::Apply(object) => {
                self.present.insert(ObjectKey::of(&object));
                vec![Change::Applied(object)]
            }
            watcher::Event::Delete(object) => {
                let key = ObjectKey::of(&object);
                self.present.remove(&key);
                vec![Change::Deleted(key)]
            }
        }
    }
}

/// `namespace/name`, for logs.
pub(crate) fn full_name(object: &impl Resource) -> String {
    format!(
        "{}/{}",
        object.meta().namespace.as_deref().unwrap_or_default(),
        object.name_any()
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(name: &str, uid: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        object.metadata.uid = Some(uid.into());
        object
    }

    fn deleted(changes: Vec<Change<ConfigMap>>) -> Vec<String> {
        changes
            .into_iter()
            .filter_map(|change| match change {
                Change::Deleted(key) => Some(format!("{}:{}", key.name, key.uid)),
                Change::Applied(_) | Change::Synced => None,
            })
            .collect()
    }

    #[test]
    fn a_second_list_says_what_went_in_between() {
        let mut known = Known::default();
        known.changes::<ConfigMap>(watcher::Event::Init);
        for (name, uid) in [("a", "1"), ("b", "2"), ("c", "3")] {
            known.changes(watcher::Event::InitApply(object(name, uid)));
        }
        assert!(deleted(known.changes(watcher::Event::InitDone)).is_empty());
        known.changes(watcher::Event::Apply(object("d", "4")));
        assert_eq!(
            deleted(known.changes(watcher::Event::Delete(object("c", "3")))),
            ["c:3"]
        );

        known.changes::<ConfigMap>(watcher::Event::Init);
        known.changes(watcher::Event::InitApply(object("a", "1")));
        known.changes(watcher::Event::InitApply(object("b", "5")));
        assert_eq!(
            deleted(known.changes(watcher::Event::InitDone)),
            ["b:2", "d:4"]
        );
    }
}
