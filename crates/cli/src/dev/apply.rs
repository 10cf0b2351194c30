//! Brings the local API to what the files say: creates, replaces and deletes, as `kubectl apply` would.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use http::{Method, Request};
use kube::Client;
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope};
use serde_json::Value;

use crate::manifest::{self, Complaint, Manifest};

/// Kinds are applied in this order, so that what others name is there first.
const ORDER: [&str; 7] = [
    "Namespace",
    "Secret",
    "ConfigMap",
    "Integration",
    "WebhookGatewayConfig",
    "Flow",
    "Trigger",
];

/// Identity of an applied object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    /// Its kind.
    pub(crate) kind: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

/// What one pass over the files did.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Objects that are new or changed, with the manifest they came from.
    pub(crate) applied: Vec<ObjectKey>,
    /// Objects whose manifest is gone.
    pub(crate) deleted: Vec<ObjectKey>,
    /// What could not be applied.
    pub(crate) complaints: Vec<Complaint>,
}

/// Keeps the local API in step with a set of files.
pub(crate) struct Applier {
    client: Client,
    paths: Vec<PathBuf>,
    resources: BTreeMap<(String, String), Option<(ApiResource, Scope)>>,
    /// What is applied, as it was in the file.
    held: BTreeMap<ObjectKey, Manifest>,
    /// Objects as they were last tried, so that a mistake is reported once.
    tried: BTreeMap<ObjectKey, Value>,
}

impl Applier {
    /// Watches over the given files and folders.
    pub(crate) fn new(client: Client, paths: Vec<PathBuf>) -> Self {
        Self {
            client,
            paths,
            resources: BTreeMap::new(),
            held: BTreeMap::new(),
            tried: BTreeMap::new(),
        }
    }

    /// The manifest that an object came from.
    pub(crate) fn manifest(&self, key: &ObjectKey) -> Option<&Manifest> {
        self.held.get(key)
    }

    /// One pass: reads every file and applies what differs from the last pass. A file with a mistake keeps the
    /// objects it brought before.
    ///
    /// # Errors
    /// A path that cannot be read. The API's own errors are complaints.
    pub(crate) async fn pass(&mut self) -> Result<Pass, Complaint> {
        let mut pass = Pass::default();
        let mut manifests = Vec::new();
        let mut unread = BTreeSet::new();
        for file in manifest::find(&self.paths)? {
            match manifest::read(&file) {
                Ok(mut found) => manifests.append(&mut found),
                Err(mut complaints) => {
                    unread.insert(file);
                    pass.complaints.append(&mut complaints);
                }
            }
        }
        manifests.sort_by_key(|manifest| {
            ORDER
                .iter()
                .position(|kind| *kind == manifest.kind())
                .unwrap_or(ORDER.len())
        });

        let mut wanted: BTreeMap<ObjectKey, PathBuf> = BTreeMap::new();
        for manifest in manifests {
            let key = key_of(&manifest);
            if let Some(other) = wanted.get(&key) {
                let message = format!(
                    "{}/{} stands in {} too; this one is left out",
                    key.kind,
                    key.name,
                    other.display()
                );
                pass.complaints
                    .push(manifest.complain("metadata.name", message));
                continue;
            }
            wanted.insert(key.clone(), manifest.file.clone());
            if self.tried.get(&key) == Some(&manifest.object) {
                if let Some(held) = self
                    .held
                    .get_mut(&key)
                    .filter(|held| held.object == manifest.object)
                {
                    *held = manifest;
                }
                continue;
            }
            self.tried.insert(key.clone(), manifest.object.clone());
            match self.apply(&manifest, &key).await {
                Ok(()) => {
                    self.held.insert(key.clone(), manifest);
                    pass.applied.push(key);
                }
                Err(mut complaints) => pass.complaints.append(&mut complaints),
            }
        }

        let gone: Vec<_> = self
            .held
            .iter()
            .filter(|(key, held)| !wanted.contains_key(*key) && !unread.contains(&held.file))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            if let Some(manifest) = self.held.remove(&key) {
                self.tried.remove(&key);
                if let Err(mut complaints) = self.delete(&manifest, &key).await {
                    pass.complaints.append(&mut complaints);
                }
                pass.deleted.push(key);
            }
        }
        Ok(pass)
    }

    async fn apply(&mut self, manifest: &Manifest, key: &ObjectKey) -> Result<(), Vec<Complaint>> {
        let url = self
            .collection(manifest, key)
            .await
            .map_err(|complaint| vec![complaint])?;
        let object_url = format!("{url}/{}", key.name);
        let mut object = manifest.object.clone();
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = Value::String(key.namespace.clone());
        }
        let current: Option<Value> = match self.request(Method::GET, &object_url, None).await {
            Ok(current) => Some(current),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(vec![manifest.complain("", error.to_string())]),
        };
        let answer = match current {
            Some(current) => {
                object["metadata"]["resourceVersion"] =
                    current["metadata"]["resourceVersion"].clone();
                self.request(
                    Method::PUT,
                    &format!("{object_url}?fieldValidation=Strict"),
                    Some(&object),
                )
                .await
            }
            None => {
                self.request(
                    Method::POST,
                    &format!("{url}?fieldValidation=Strict"),
                    Some(&object),
                )
                .await
            }
        };
        answer
            .map(|_| ())
            .map_err(|error| complaints_of(manifest, error))
    }

    async fn delete(&mut self, manifest: &Manifest, key: &ObjectKey) -> Result<(), Vec<Complaint>> {
        let url = self
            .collection(manifest, key)
            .await
            .map_err(|complaint| vec![complaint])?;
        match self
            .request(Method::DELETE, &format!("{url}/{}", key.name), None)
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(complaints_of(manifest, error)),
        }
    }

    /// The URL of the collection an object belongs to; makes the namespace when it is not there.
    async fn collection(
        &mut self,
        manifest: &Manifest,
        key: &ObjectKey,
    ) -> Result<String, Complaint> {
        let api_version = manifest.object["apiVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let (resource, scope) = self
            .resource(&api_version, &key.kind)
            .await
            .ok_or_else(|| {
                manifest.complain(
                    "kind",
                    format!(
                        "{api_version} {} is not served by the local API; it is left out",
                        key.kind
                    ),
                )
            })?;
        if scope == Scope::Namespaced {
            self.ensure_namespace(&key.namespace)
                .await
                .map_err(|error| manifest.complain("metadata.namespace", error.to_string()))?;
        }
        let namespace = (scope == Scope::Namespaced).then_some(key.namespace.as_str());
        Ok(<kube::core::DynamicObject as kube::Resource>::url_path(
            &resource, namespace,
        ))
    }

    async fn resource(&mut self, api_version: &str, kind: &str) -> Option<(ApiResource, Scope)> {
        let id = (api_version.to_owned(), kind.to_owned());
        if !self.resources.contains_key(&id) {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let found = kube::discovery::pinned_kind(
                &self.client,
                &GroupVersionKind::gvk(group, version, kind),
            )
            .await;
            self.resources.insert(
                id.clone(),
                found
                    .ok()
                    .map(|(resource, capabilities)| (resource, capabilities.scope)),
            );
        }
        self.resources.get(&id).cloned().flatten()
    }

    async fn ensure_namespace(&self, name: &str) -> Result<(), kube::Error> {
        let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        match self
            .request(Method::GET, &format!("/api/v1/namespaces/{name}"), None)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => self
                .request(Method::POST, "/api/v1/namespaces", Some(&namespace))
                .await
                .map(|_| ()),
            other => other.map(|_| ()),
        }
    }

    async fn request(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header("content-type", "application/json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

/// Identity of a manifest's object; namespaced objects without a namespace go to `default`.
fn key_of(manifest: &Manifest) -> ObjectKey {
    let namespace = match manifest.kind() {
        "Namespace" => "",
        _ => manifest.object["metadata"]["namespace"]
            .as_str()
            .unwrap_or("default"),
    };
    ObjectKey {
        kind: manifest.kind().to_owned(),
        namespace: namespace.to_owned(),
        name: manifest.name().to_owned(),
    }
}

/// One complaint per cause, each at its field's line; else the whole message.
fn complaints_of(manifest: &Manifest, error: kube::Error) -> Vec<Complaint> {
    let kube::Error::Api(status) = error else {
        return vec![manifest.complain("", error.to_string())];
    };
    let what = format!("{}/{}", manifest.kind(), manifest.name());
    let causes = status
        .details
        .as_ref()
        .map(|details| details.causes.as_slice())
        .unwrap_or_default();
    if causes.is_empty() {
        return vec![manifest.complain(
            unknown_field(&status.message).unwrap_or_default(),
            format!("{what}: {}", status.message),
        )];
    }
    causes
        .iter()
        .map(|cause| {
            manifest.complain(
                &cause.field,
                format!("{what}: {}: {}", cause.field, cause.message),
            )
        })
        .collect()
}

/// The path in the server's `unknown field "spec.x"`.
fn unknown_field(message: &str) -> Option<&str> {
    message.split_once("unknown field \"")?.1.split('"').next()
}
