//! A small Kubernetes API in the process: for `kubezap dev`, and for tests.
//!
//! It serves our kinds with their CRD schemas and a few built-in ones. It is a development server: one token, loopback only, no
//! admission webhooks, no RBAC, no Deployments. What it does otherwise than the real server is listed where the contract suite is
//! (`kubezap_testing::contract`).

mod audit;
mod discovery;
mod errors;
mod faults;
mod kinds;
mod patch;
mod request;
mod schema;
mod selector;
mod serve;
mod service;
mod store;
mod table;
mod watch;
mod write;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::audit::AuditEntry;
pub use crate::faults::{Fault, Faults, Rule};
pub use crate::request::Verb;
pub use crate::serve::ServeError;
pub use crate::service::{AnswerBody, Lost, Service};

/// What an API is made from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The custom kinds.
    pub definitions: Vec<CustomResourceDefinition>,
    /// Keeps every request for [`LocalApi::audit`]; grows without bound.
    pub audit: bool,
}

impl Options {
    /// Serves the given kinds, without audit.
    pub fn new(definitions: Vec<CustomResourceDefinition>) -> Self {
        Self {
            definitions,
            audit: false,
        }
    }
}

/// A Kubernetes API. Cheap to clone; all clones are one API.
#[derive(Clone, Debug)]
pub struct LocalApi {
    api: Arc<service::Api>,
    door: Arc<OnceLock<Arc<serve::Door>>>,
}

impl LocalApi {
    /// An API with the namespaces `default` and `kube-system` and nothing else.
    pub fn new(options: Options) -> Self {
        let Options { definitions, audit } = options;
        let api = Arc::new(service::Api {
            kinds: Arc::new(kinds::all(&definitions)),
            store: Arc::new(store::Store::new()),
            faults: Faults::default(),
            audit: audit::Audit::new(audit),
            address: OnceLock::new(),
        });
        let query = request::Query::default();
        for name in ["default", "kube-system"] {
            let mut inner = api.store.lock();
            let mut writer = write::Writer {
                kinds: &api.kinds,
                inner: &mut inner,
                index: 0,
                namespace: String::new(),
                query: &query,
                warnings: Vec::new(),
            };
            // An empty store refuses neither.
            let _ = writer.create(
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            );
        }
        Self {
            api,
            door: Arc::default(),
        }
    }

    /// The API as a tower service, without authentication.
    pub fn service(&self) -> Service {
        Service(self.api.clone())
    }

    /// A client in this process, without a socket.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.service(), default_namespace)
    }

    /// The kubeconfig for an API that is served at an address; carries the token.
    ///
    /// # Errors
    /// No certificate could be made.
    pub fn kubeconfig(&self, address: SocketAddr) -> Result<String, ServeError> {
        Ok(self.door()?.kubeconfig(address))
    }

    /// Serves HTTPS until `stop`.
    ///
    /// # Errors
    /// No certificate could be made or used.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        if let Ok(address) = listener.local_addr() {
            // Whoever serves twice keeps the first address in discovery.
            let _ = self.api.address.set(address.to_string());
        }
        serve::serve(self.service(), self.door()?, listener, stop).await
    }

    /// What should go wrong.
    pub fn faults(&self) -> &Faults {
        &self.api.faults
    }

    /// Every request so far; empty unless [`Options::audit`] was set.
    pub fn audit(&self) -> Vec<AuditEntry> {
        self.api.audit.entries()
    }

    /// Forgets the history, so that a watch from an older version is told 410.
    pub fn compact(&self) {
        self.api.store.lock().compact();
    }

    fn door(&self) -> Result<Arc<serve::Door>, ServeError> {
        match self.door.get() {
            Some(door) => Ok(door.clone()),
            None => {
                let door = Arc::new(serve::Door::new()?);
                Ok(self.door.get_or_init(|| door).clone())
            }
        }
    }
}
