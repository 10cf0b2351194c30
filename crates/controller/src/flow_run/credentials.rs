//! The Secrets and ConfigMaps that a call names, read when it leaves. Nothing is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret as SecretObject};
use kube::{Api, Client};
use kubezap_engine::effect::{KeyRef, References};
use kubezap_engine::secret::{Credentials, Secret};
use zeroize::Zeroize as _;

/// Made by Kubernetes for a ServiceAccount: whoever holds it is that account.
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// Label of what the controller makes for itself, such as the identities of its workloads.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kubezap");

/// Why a value cannot be had. The texts name objects and keys, never a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialError {
    /// It does not exist.
    #[error("the {kind} {name} does not exist")]
    Missing {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Which.
        name: String,
    },
    /// It exists, without the key.
    #[error("the {kind} {name} has no key {key}")]
    MissingKey {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Which.
        name: String,
        /// Which key.
        key: String,
    },
    /// Flows may not use it.
    #[error("the Secret {name} may not be used: {why}")]
    Refused {
        /// Which.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// The controller may not read it.
    #[error("the controller may not read the {kind} {name}; grant it get in this namespace")]
    Forbidden {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Which.
        name: String,
    },
    /// The API server gave no answer: nothing is said of the object.
    #[error("cannot read the {kind} {name}: {source}")]
    Unavailable {
        /// `Secret` or `ConfigMap`.
        kind: &'static str,
        /// Which.
        name: String,
        /// What it said.
        source: Box<kube::Error>,
    },
}

/// Delay before something is read again that the API server gave no answer for.
pub(super) const AGAIN: Duration = Duration::from_secs(1);

impl CredentialError {
    /// Whether the same read may give something else soon.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Missing { .. }
            | Self::MissingKey { .. }
            | Self::Refused { .. }
            | Self::Forbidden { .. } => false,
        }
    }
}

/// Reads everything that is named, each object once.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    references: &References,
) -> Result<Credentials, CredentialError> {
    let secrets = secrets(client, namespace, &references.secrets);
    let configmaps = configmaps(client, namespace, &references.configmaps);
    let (secrets, configmaps) = futures::try_join!(secrets, configmaps)?;
    Ok(Credentials {
        secrets,
        configmaps,
    })
}

/// Reads ConfigMaps only.
pub(super) async fn configmaps(
    client: &Client,
    namespace: &str,
    keys: &BTreeSet<KeyRef>,
) -> Result<BTreeMap<KeyRef, String>, CredentialError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let read = by_object(keys).into_iter().map(|(name, keys)| {
        let api = &api;
        async move {
            let found = api.get_opt(name).await;
            let object = found_or("ConfigMap", name, found)?;
            keys.into_iter()
                .map(|key| Ok((key.clone(), text_of(&object, key)?)))
                .collect::<Result<Vec<_>, _>>()
        }
    });
    Ok(try_join_all(read).await?.into_iter().flatten().collect())
}

async fn secrets(
    client: &Client,
    namespace: &str,
    keys: &BTreeSet<KeyRef>,
) -> Result<BTreeMap<KeyRef, Secret>, CredentialError> {
    let api: Api<SecretObject> = Api::namespaced(client.clone(), namespace);
    let read = by_object(keys).into_iter().map(|(name, keys)| {
        let api = &api;
        async move {
            let found = api.get_opt(name).await;
            let mut object = found_or("Secret", name, found)?;
            let values = values_of(name, &mut object, keys);
            wipe(&mut object);
            values
        }
    });
    Ok(try_join_all(read).await?.into_iter().flatten().collect())
}

fn by_object(keys: &BTreeSet<KeyRef>) -> BTreeMap<&str, Vec<&KeyRef>> {
    let mut objects: BTreeMap<&str, Vec<&KeyRef>> = BTreeMap::new();
    for key in keys {
        objects.entry(&key.name).or_default().push(key);
    }
    objects
}

fn found_or<K>(
    kind: &'static str,
    name: &str,
    found: kube::Result<Option<K>>,
) -> Result<K, CredentialError> {
    let name = || name.to_owned();
    match found {
        Ok(Some(object)) => Ok(object),
        Ok(None) => Err(CredentialError::Missing { kind, name: name() }),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Err(CredentialError::Forbidden { kind, name: name() })
        }
        Err(source) => Err(CredentialError::Unavailable {
            kind,
            name: name(),
            source: Box::new(source),
        }),
    }
}

fn values_of(
    name: &str,
    object: &mut SecretObject,
    keys: Vec<&KeyRef>,
) -> Result<Vec<(KeyRef, Secret)>, CredentialError> {
    if let Some(why) = refusal(object) {
        return Err(CredentialError::Refused {
            name: name.to_owned(),
            why,
        });
    }
    keys.into_iter()
        .map(|key| {
            let value = object
                .data
                .as_mut()
                .and_then(|data| data.get_mut(&key.key))
                .ok_or_else(|| CredentialError::MissingKey {
                    kind: "Secret",
                    name: name.to_owned(),
                    key: key.key.clone(),
                })?;
            Ok((key.clone(), Secret::new(std::mem::take(&mut value.0))))
        })
        .collect()
}

fn refusal(object: &SecretObject) -> Option<&'static str> {
    if object.type_.as_deref() == Some(SERVICE_ACCOUNT_TOKEN) {
        return Some("it is the token of a ServiceAccount");
    }
    let (label, value) = MANAGED_BY;
    let ours = object
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(label))
        .is_some_and(|by| by == value);
    ours.then_some("it belongs to KubeZap itself")
}

/// Overwrites what nobody asked for.
fn wipe(object: &mut SecretObject) {
    for value in object.data.iter_mut().flat_map(BTreeMap::values_mut) {
        value.0.zeroize();
    }
}

/// Binary values come as their base64 text.
fn text_of(object: &ConfigMap, key: &KeyRef) -> Result<String, CredentialError> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let text = object
        .data
        .as_ref()
        .and_then(|data| data.get(&key.key))
        .cloned();
    let binary = || {
        let value = object.binary_data.as_ref()?.get(&key.key)?;
        Some(STANDARD.encode(&value.0))
    };
    text.or_else(binary)
        .ok_or_else(|| CredentialError::MissingKey {
            kind: "ConfigMap",
            name: key.name.clone(),
            key: key.key.clone(),
        })
}
