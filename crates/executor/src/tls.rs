//! TLS towards targets: whom to trust, and what to present.

use std::sync::{Arc, OnceLock};

use kubezap_step_protocol::ClientCertificate;
use rustls::client::WantsClientCert;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Certificates or a key that a handshake cannot use. The text holds none of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("the CA bundle is not PEM certificates")]
    CaBundle,
    #[error("the CA bundle holds no certificate")]
    EmptyCaBundle,
    #[error("the client certificate is not PEM certificates")]
    Certificate,
    #[error("the client certificate's key is not a PEM private key")]
    Key,
    #[error("the client certificate and its key do not belong together")]
    Pair,
}

/// The system's trust store, read when the first call needs it.
#[derive(Default)]
pub(crate) struct SystemTrust {
    roots: OnceLock<Arc<RootCertStore>>,
    plain: OnceLock<Arc<ClientConfig>>,
}

impl SystemTrust {
    fn roots(&self) -> Arc<RootCertStore> {
        let load = || {
            let found = rustls_native_certs::load_native_certs();
            let mut roots = RootCertStore::empty();
            let (added, ignored) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                tracing::warn!(
                    "no system certificates found: every https target without a CA bundle will be refused"
                );
            } else {
                tracing::debug!(added, ignored, "system certificates read");
            }
            Arc::new(roots)
        };
        self.roots.get_or_init(load).clone()
    }

    /// Trusts the system's certificates and presents none.
    fn plain(&self) -> Arc<ClientConfig> {
        self.plain
            .get_or_init(|| Arc::new(finish(builder(self.roots()).with_no_client_auth())))
            .clone()
    }
}

/// TLS for one client.
pub(crate) enum ClientTls {
    /// The system's trust, shared, read at the first https call.
    System(Arc<SystemTrust>),
    /// A CA bundle or a client certificate of its own.
    Own(Arc<ClientConfig>),
}

impl ClientTls {
    pub(crate) fn new(
        system: &Arc<SystemTrust>,
        ca_bundle: Option<&str>,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Self, TlsError> {
        if ca_bundle.is_none() && certificate.is_none() {
            return Ok(Self::System(Arc::clone(system)));
        }
        let roots = match ca_bundle {
            Some(pem) => Arc::new(bundle(pem)?),
            None => system.roots(),
        };
        let config = match certificate {
            None => builder(roots).with_no_client_auth(),
            Some(ClientCertificate { certificate, key }) => {
                let chain = certificates(certificate).ok_or(TlsError::Certificate)?;
                if chain.is_empty() {
                    return Err(TlsError::Certificate);
                }
                let key =
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| TlsError::Key)?;
                builder(roots)
                    .with_client_auth_cert(chain, key)
                    .map_err(|_| TlsError::Pair)?
            }
        };
        Ok(Self::Own(Arc::new(finish(config))))
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        match self {
            Self::System(trust) => trust.plain(),
            Self::Own(config) => Arc::clone(config),
        }
    }
}

fn builder(roots: Arc<RootCertStore>) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    // The provider supports both versions, so this cannot fail.
    #[allow(clippy::expect_used)]
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("aws-lc-rs speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
}

fn finish(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

fn bundle(pem: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem).ok_or(TlsError::CaBundle)? {
        roots.add(certificate).map_err(|_| TlsError::CaBundle)?;
    }
    if roots.is_empty() {
        return Err(TlsError::EmptyCaBundle);
    }
    Ok(roots)
}

fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .ok()
}
