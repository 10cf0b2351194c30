//! Who has which webhook path of a namespace: the oldest Trigger that asks for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kubezap_api::Trigger;
use kubezap_api::lower::hook_path;
use kubezap_api::trigger::TriggerType;

use crate::reconcile::Place;

/// A namespace and a path in it.
type Path = (String, String);

/// By age, and by name among those made within the same second.
type Claim = (Timestamp, String);

/// The paths of all Triggers.
#[derive(Default)]
pub(super) struct Paths(Mutex<Index>);

#[derive(Default)]
struct Index {
    claims: BTreeMap<Path, BTreeSet<Claim>>,
    of: HashMap<Place, (Path, Claim)>,
}

impl Paths {
    /// Takes in what a Trigger asks for now, and names the others whose standing may change with it.
    pub(super) fn note(&self, place: &Place, trigger: Option<&Trigger>) -> Vec<Place> {
        let mut index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let claim = trigger.and_then(claim);
        if index.of.get(place) == claim.as_ref() {
            return Vec::new();
        }
        let mut concerned = BTreeSet::new();
        if let Some((path, claim)) = index.of.remove(place)
            && let Some(claims) = index.claims.get_mut(&path)
        {
            claims.remove(&claim);
            concerned.extend(claims.iter().map(|(_, name)| name.clone()));
            if claims.is_empty() {
                index.claims.remove(&path);
            }
        }
        if let Some((path, claim)) = claim {
            let claims = index.claims.entry(path.clone()).or_default();
            concerned.extend(claims.iter().map(|(_, name)| name.clone()));
            claims.insert(claim.clone());
            index.of.insert(place.clone(), (path, claim));
        }
        concerned.remove(&place.name);
        concerned
            .into_iter()
            .map(|name| Place::new(&place.namespace, name))
            .collect()
    }

    /// The Trigger that has the path instead of this one.
    pub(super) fn older(&self, place: &Place) -> Option<String> {
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, claim) = index.of.get(place)?;
        let (_, first) = index
            .claims
            .get(path)?
            .first()
            .filter(|first| *first != claim)?;
        Some(first.clone())
    }
}

/// A Trigger keeps its path while it is paused or not served: resuming it must not fail.
fn claim(trigger: &Trigger) -> Option<(Path, Claim)> {
    let webhook = trigger
        .spec
        .webhook
        .as_ref()
        .filter(|_| trigger.spec.type_ == TriggerType::Webhook)?;
    let meta = &trigger.metadata;
    let created = meta
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::MAX, |time| time.0);
    Some((
        (meta.namespace.clone()?, hook_path(&webhook.path)),
        (created, meta.name.clone()?),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trigger(name: &str, path: &str, second: u32) -> Trigger {
        serde_json::from_value(json!({
            "apiVersion": "automation.kubezap.io/v1alpha1",
            "kind": "Trigger",
            "metadata": {
                "name": name,
                "namespace": "a",
                "creationTimestamp": format!("2026-12-01T10:00:{second:02}Z"),
            },
            "spec": {"type": "webhook", "webhook": {"path": path}, "flowRef": {"name": "f"}},
        }))
        .unwrap()
    }

    fn place(name: &str) -> Place {
        Place::new("a", name)
    }

    #[test]
    fn the_older_trigger_keeps_the_path_and_the_next_gets_it() {
        let paths = Paths::default();
        assert_eq!(paths.note(&place("new"), Some(&trigger("new", "x", 9))), []);
        assert_eq!(paths.older(&place("new")), None);
        // The same path, written otherwise.
        let old = trigger("old", "/hooks/x", 1);
        assert_eq!(paths.note(&place("old"), Some(&old)), [place("new")]);
        assert_eq!(paths.older(&place("new")), Some("old".to_owned()));
        assert_eq!(paths.older(&place("old")), None);
        // Nothing of it changed: nobody is concerned.
        assert_eq!(paths.note(&place("old"), Some(&old)), []);

        let moved = trigger("old", "/y", 1);
        assert_eq!(paths.note(&place("old"), Some(&moved)), [place("new")]);
        assert_eq!(paths.older(&place("new")), None);

        paths.note(&place("old"), Some(&old));
        assert_eq!(paths.note(&place("old"), None), [place("new")]);
        assert_eq!(paths.older(&place("new")), None);
    }

    #[test]
    fn triggers_of_the_same_second_go_by_name() {
        let paths = Paths::default();
        for name in ["b", "a", "c"] {
            paths.note(&place(name), Some(&trigger(name, "x", 0)));
        }
        assert_eq!(paths.older(&place("a")), None);
        assert_eq!(paths.older(&place("b")), Some("a".to_owned()));
        assert_eq!(paths.older(&place("c")), Some("a".to_owned()));
    }
}
