//! The Secrets that Triggers name: a GET for each use, shared by the uses of the next three seconds.
//!
//! The gateway may GET the Secrets its Triggers name and nothing more, so there is no watch. Without sharing, every request,
//! a forged one too, would cost the API server a GET. A value is forgotten three seconds after it was read, zeroed, and a
//! rotated or newly created Secret counts after three seconds at the latest. At most one GET of a Secret is under way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1 as k8s;
use kube::{Api, Client};
use kubezap_chassis::metrics::{Labels, Metrics};
use kubezap_engine::secret::Secret;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long what was read counts, a missing Secret too.
const KEPT: Duration = Duration::from_secs(3);
/// How long a failure counts, so that the requests which waited for one GET do not each make another.
const FAILURE_KEPT: Duration = Duration::from_millis(500);
const GET_DEADLINE: Duration = Duration::from_secs(5);

/// A key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SecretKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) key: String,
}

/// Why there is no value. None of these ever opens a Trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("secret_not_found")]
    NotFound,
    #[error("secret_key_missing")]
    KeyMissing,
    #[error("secret_empty")]
    Empty,
    #[error("secret_type_refused")]
    TypeRefused,
    #[error("secret_forbidden")]
    Forbidden,
    #[error("secret_unavailable")]
    Unavailable,
}

type Answer = Result<Arc<Secret>, SecretError>;

#[derive(Default)]
struct Slot(tokio::sync::Mutex<Option<(Instant, Answer)>>);

pub(crate) struct Secrets {
    client: Client,
    slots: Mutex<HashMap<SecretKey, Arc<Slot>>>,
    accesses: Family<Labels, Counter>,
}

impl Secrets {
    pub(crate) fn new(client: Client, metrics: &Metrics) -> Self {
        Self {
            client,
            slots: Mutex::default(),
            accesses: metrics.register(
                "secret_accesses",
                "Secrets read, by the flow they were read for",
                Family::default(),
            ),
        }
    }

    /// Reads a key; `flow` is for the metric.
    pub(crate) async fn get(&self, key: &SecretKey, flow: &str) -> Answer {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(key.clone()).or_default().clone()
        };
        let mut held = slot.0.lock().await;
        if let Some((until, answer)) = &*held
            && Instant::now() < *until
        {
            return answer.clone();
        }
        let answer = self.read(key, flow).await;
        if let Err(reason) = &answer {
            tracing::warn!(
                namespace = key.namespace,
                secret = key.name,
                key = key.key,
                %reason,
                "a webhook's secret cannot be used; its requests are answered 503"
            );
        }
        let kept = match answer {
            Err(SecretError::Unavailable) => FAILURE_KEPT,
            _ => KEPT,
        };
        *held = Some((Instant::now() + kept, answer.clone()));
        answer
    }

    /// Forgets values as they stop counting, until `shutdown`.
    pub(crate) async fn forget(&self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(KEPT);
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            self.expire();
        }
    }

    fn expire(&self) {
        let now = Instant::now();
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|_, slot| match slot.0.try_lock() {
            Ok(held) => held.as_ref().is_some_and(|(until, _)| now < *until),
            Err(_) => true,
        });
    }

    async fn read(&self, key: &SecretKey, flow: &str) -> Answer {
        self.accesses
            .get_or_create(&vec![
                ("namespace", key.namespace.clone()),
                ("secret", key.name.clone()),
                ("flow", flow.to_owned()),
            ])
            .inc();
        let secrets: Api<k8s::Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        // What failed is told by its kind only: the text of a decoding error quotes what it could not decode.
        let secret = match timeout(GET_DEADLINE, secrets.get(&key.name)).await {
            Ok(Ok(secret)) => secret,
            Ok(Err(kube::Error::Api(status))) => {
                return Err(match status.code {
                    404 => SecretError::NotFound,
                    401 | 403 => SecretError::Forbidden,
                    _ => SecretError::Unavailable,
                });
            }
            Ok(Err(_)) | Err(_) => return Err(SecretError::Unavailable),
        };
        take(secret, &key.key)
    }
}

/// Takes one value out; every value is zeroed when it is dropped.
fn take(secret: k8s::Secret, key: &str) -> Answer {
    let refused = secret.type_.as_deref() == Some("kubernetes.io/service-account-token");
    let mut wanted = None;
    for (name, value) in secret.data.unwrap_or_default() {
        let value = Secret::new(value.0);
        if name == key {
            wanted = Some(value);
        }
    }
    match wanted {
        _ if refused => Err(SecretError::TypeRefused),
        None => Err(SecretError::KeyMissing),
        // An empty key or token would be no secret at all.
        Some(value) if value.expose().is_empty() => Err(SecretError::Empty),
        Some(value) => Ok(Arc::new(value)),
    }
}
