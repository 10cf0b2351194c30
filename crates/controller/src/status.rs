//! The one place where the controller writes conditions: a merge patch of nothing else, and none when nothing changed.

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use kubezap_api::conditions::{self, Verdict};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::reconcile::ReconcileError;

/// What an object's conditions should be.
#[derive(Debug)]
pub(crate) struct Conditions {
    before: Vec<Condition>,
    after: Vec<Condition>,
    generation: Option<i64>,
    now: Timestamp,
}

impl Conditions {
    /// Starts from what the object says now.
    pub(crate) fn of(object: &impl Resource, before: &[Condition], now: Timestamp) -> Self {
        Self {
            before: before.to_vec(),
            after: before.to_vec(),
            generation: object.meta().generation,
            now,
        }
    }

    /// Says whether a condition holds.
    pub(crate) fn set(&mut self, type_: &str, verdict: &Verdict) {
        conditions::set(&mut self.after, type_, verdict, self.generation, self.now);
    }

    /// Says whether a condition holds, or that it should not be there.
    pub(crate) fn set_or_remove(&mut self, type_: &str, verdict: Option<&Verdict>) {
        match verdict {
            Some(verdict) => self.set(type_, verdict),
            None => {
                conditions::remove(&mut self.after, type_);
            }
        }
    }

    /// Writes them, if they differ from what the object says.
    pub(crate) async fn record<K>(self, client: &Client, object: &K) -> Result<(), ReconcileError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        if self.before == self.after {
            return Ok(());
        }
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<K> = Api::namespaced(client.clone(), &namespace);
        // The uid keeps the patch off a later object of the same name.
        let patch = json!({
            "metadata": {"uid": object.meta().uid},
            "status": {"conditions": self.after},
        });
        let patched = api
            .patch_status(
                &object.name_any(),
                &PatchParams::default(),
                &Patch::Merge(&patch),
            )
            .await;
        match patched {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(source) => Err(ReconcileError::Api {
                attempt: "write the conditions",
                source,
            }),
        }
    }
}

/// Whether the conditions speak of the object as it is: what the controller writes itself needs no second look.
pub(crate) fn is_observed(object: &impl Resource, conditions: &[Condition]) -> bool {
    let generation = object.meta().generation;
    conditions::find(conditions, conditions::READY)
        .is_some_and(|ready| ready.observed_generation == generation)
}
