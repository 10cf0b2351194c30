//! ControllerRevisions: what a Flow, or a Trigger's action, was when runs were pinned to it.
//!
//! They have no owner: a run under way outlives its Flow.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use kubezap_api::metadata::{LABEL_FLOW, LABEL_TRIGGER};
use kubezap_engine::trigger::label_value;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::reconcile::ReconcileError;

/// The most bytes of an object's name.
const MAX_NAME: usize = 253;

/// Hexadecimal digits of the hash in a name.
const DIGITS: usize = 10;

/// Whose spec a revision holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A Flow.
    Flow,
    /// A Trigger, for its action.
    Trigger,
}

impl Holder {
    fn label(self) -> &'static str {
        match self {
            Self::Flow => LABEL_FLOW,
            Self::Trigger => LABEL_TRIGGER,
        }
    }
}

/// A spec to keep.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) holder: Holder,
    pub(crate) namespace: String,
    /// The Flow's or the Trigger's name.
    pub(crate) of: String,
    pub(crate) data: Value,
}

impl Revision {
    /// `<name>-<hash of the spec>`, the same for the same spec at any time.
    pub(crate) fn name(&self) -> String {
        let mut canonical = self.data.clone();
        canonical.sort_all_objects();
        let mut hash = hex::encode(Sha256::digest(canonical.to_string()));
        hash.truncate(DIGITS);
        let room = MAX_NAME - DIGITS - 1;
        let start = if self.of.len() <= room {
            self.of.as_str()
        } else {
            // Names are ASCII; the name of a real object never ends this way, and need not: the hash follows.
            self.of[..room].trim_end_matches(['-', '.'])
        };
        format!("{start}-{hash}")
    }

    /// Stores it as the newest, and gives its name. A spec that was stored before keeps its object, which becomes the
    /// newest.
    pub(crate) async fn store(&self, client: &Client) -> Result<String, ReconcileError> {
        let api: Api<ControllerRevision> = Api::namespaced(client.clone(), &self.namespace);
        let name = self.name();
        let label = label_value(&self.of);
        let selector = format!("{}={label}", self.holder.label());
        let stored = api
            .list(&ListParams::default().labels(&selector))
            .await
            .map_err(ReconcileError::api("list the revisions"))?
            .items;
        let newest = stored.iter().map(|revision| revision.revision).max();
        let same = stored
            .into_iter()
            .find(|revision| revision.metadata.name.as_deref() == Some(&name));
        let next = newest.unwrap_or_default() + 1;
        match same {
            Some(revision) if !self.is_held_by(&revision) => {
                return Err(ReconcileError::Collision { name });
            }
            Some(revision) if Some(revision.revision) == newest => {}
            Some(mut revision) => {
                revision.revision = next;
                api.replace(&name, &PostParams::default(), &revision)
                    .await
                    .map_err(ReconcileError::api("make an earlier revision the newest"))?;
            }
            None => {
                let revision = self.object(&name, label, next);
                api.create(&PostParams::default(), &revision)
                    .await
                    .map_err(ReconcileError::api("store the revision"))?;
            }
        }
        Ok(name)
    }

    fn object(&self, name: &str, label: String, number: i64) -> ControllerRevision {
        let mut object = ControllerRevision {
            data: Some(RawExtension(self.data.clone())),
            revision: number,
            ..ControllerRevision::default()
        };
        object.metadata.name = Some(name.to_owned());
        object.metadata.namespace = Some(self.namespace.clone());
        object.metadata.labels = Some(BTreeMap::from([(self.holder.label().to_owned(), label)]));
        object
    }

    fn is_held_by(&self, object: &ControllerRevision) -> bool {
        object.data.as_ref().is_some_and(|data| data.0 == self.data)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(of: &str, data: Value) -> Revision {
        Revision {
            holder: Holder::Flow,
            namespace: "default".into(),
            of: of.into(),
            data,
        }
    }

    #[test]
    fn the_name_depends_on_what_the_spec_says_and_not_on_its_order() {
        let one = revision("orders", json!({"a": 1, "b": {"c": 2, "d": 3}})).name();
        let same = revision("orders", json!({"b": {"d": 3, "c": 2}, "a": 1})).name();
        let other = revision("orders", json!({"a": 1, "b": {"c": 2, "d": 4}})).name();
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert!(one.starts_with("orders-"), "{one}");
        assert_eq!(one.len(), "orders-".len() + 10);
    }

    #[test]
    fn the_longest_name_still_fits() {
        let name = revision(&"a.".repeat(126), json!({})).name();
        assert!(name.len() <= 253, "{}", name.len());
        assert!(!name.contains(".-"), "{name}");
    }
}
