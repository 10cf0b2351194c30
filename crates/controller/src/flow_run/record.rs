//! The only writer of a FlowRun's status, its label, and the one read after a conflict. Each is one request: what its
//! answer means is for the driver.

use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{PartialObjectMeta, Request};
use kube::{Client, Resource};
use kubezap_api::metadata::LABEL_SLOT;
use kubezap_api::{FlowRun, lower, status};
use kubezap_engine::driver::{ReadAnswer, RunKey, Slot, WriteAnswer};
use kubezap_engine::flow::Problem;
use kubezap_engine::run::Run;
use serde_json::json;

/// What a FlowRun says that does not change while it runs.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) generation: Option<i64>,
    pub(super) created: Timestamp,
    /// The trace that the run continues.
    pub(super) traceparent: Option<String>,
    /// What of its spec has no effect.
    pub(super) degraded: Vec<Problem>,
}

/// PUTs a status, conditional on the resourceVersion.
///
/// The body names the object and holds the status: the server takes nothing else from it.
pub(super) async fn write(
    client: &Client,
    key: &RunKey,
    resource_version: &str,
    run: &Run,
    facts: &Facts,
) -> WriteAnswer {
    let mut status = status::to_status(run, facts.generation, facts.created);
    status::report(&mut status, &facts.degraded, facts.created);
    let body = json!({
        "apiVersion": FlowRun::api_version(&()),
        "kind": FlowRun::kind(&()),
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "uid": key.uid,
            "resourceVersion": resource_version,
        },
        "status": status,
    });
    let request = Request::new(FlowRun::url_path(&(), Some(&key.namespace))).replace_subresource(
        "status",
        &key.name,
        &PostParams::default(),
        body.to_string().into_bytes(),
    );
    let stored = match request {
        Ok(request) => client.request::<PartialObjectMeta<FlowRun>>(request).await,
        Err(error) => Err(kube::Error::BuildRequest(error)),
    };
    answer(key, stored, "write its status")
}

/// Puts the slot label onto a run that has none, conditional on the resourceVersion.
pub(super) async fn label(
    client: &Client,
    key: &RunKey,
    resource_version: &str,
    slot: Slot,
) -> WriteAnswer {
    let patch = json!({
        "metadata": {
            "uid": key.uid,
            "resourceVersion": resource_version,
            "labels": {LABEL_SLOT: slot.to_string()},
        },
    });
    let stored = api(client, key)
        .patch_metadata(&key.name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    answer(key, stored, "label it")
}

/// GETs a run.
pub(super) async fn read(client: &Client, key: &RunKey) -> ReadAnswer {
    match api(client, key).get_opt(&key.name).await {
        Ok(Some(object)) if object.metadata.uid.as_deref() == Some(&key.uid) => {
            ReadAnswer::Found(lower::run_object(&object))
        }
        Ok(_) => ReadAnswer::Gone,
        Err(error) => {
            warn(key, "read it", &error);
            ReadAnswer::Unavailable
        }
    }
}

fn api(client: &Client, key: &RunKey) -> Api<FlowRun> {
    Api::namespaced(client.clone(), &key.namespace)
}

fn answer(
    key: &RunKey,
    stored: kube::Result<PartialObjectMeta<FlowRun>>,
    attempt: &'static str,
) -> WriteAnswer {
    match stored {
        Ok(stored) => match stored.metadata.resource_version {
            Some(resource_version) => WriteAnswer::Stored { resource_version },
            // No server answers so; the read that follows a conflict tells.
            None => WriteAnswer::Conflict,
        },
        Err(kube::Error::Api(status)) if status.code == 409 => WriteAnswer::Conflict,
        Err(kube::Error::Api(status)) if status.code == 404 => WriteAnswer::Gone,
        Err(kube::Error::Api(status)) if matches!(status.code, 413 | 422) => WriteAnswer::Refused {
            message: status.message.clone(),
        },
        Err(error) => {
            warn(key, attempt, &error);
            WriteAnswer::Unavailable
        }
    }
}

fn warn(key: &RunKey, attempt: &'static str, error: &kube::Error) {
    tracing::warn!(
        namespace = key.namespace,
        flow_run = key.name,
        attempt,
        %error,
        "the API server did not answer as it should"
    );
}
