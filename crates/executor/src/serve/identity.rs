//! The server's side of mutual TLS: its own certificate, and the only client it takes.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use kubezap_step_protocol::identity;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject as _;
use zeroize::Zeroizing;

/// Certificate, key and CA of an executor, replaceable while it runs. TLS 1.3 only; cheap to clone.
#[derive(Clone)]
pub struct ServerTls {
    inner: Arc<Inner>,
}

struct Inner {
    source: Source,
    current: RwLock<Loaded>,
}

struct Loaded {
    pem: Pem,
    config: Arc<ServerConfig>,
}

struct Source {
    installation: String,
    files: Option<Files>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    ca: PathBuf,
}

#[derive(PartialEq, Eq)]
struct Pem {
    certificate: String,
    key: Zeroizing<String>,
    ca: String,
}

/// Certificates that cannot be served with.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// A file is not there or not readable.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// One of the three is not PEM of its kind, or empty.
    #[error("the {0} is not PEM, or empty")]
    Pem(&'static str),
    /// Certificate and key do not fit, or the CA cannot verify anything.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
}

impl ServerTls {
    /// Takes PEM texts; they never change.
    ///
    /// # Errors
    /// They are not what they should be, or do not fit together.
    pub fn from_pem(
        certificate: &str,
        key: &str,
        ca: &str,
        installation: &str,
    ) -> Result<Self, ServerTlsError> {
        let pem = Pem {
            certificate: certificate.to_owned(),
            key: Zeroizing::new(key.to_owned()),
            ca: ca.to_owned(),
        };
        Self::new(
            Source {
                installation: installation.to_owned(),
                files: None,
            },
            pem,
        )
    }

    /// Reads PEM files, now and at every [`ServerTls::reload`]. A CA file may hold several, as it does while the CA rotates.
    ///
    /// # Errors
    /// A file cannot be read, or as [`ServerTls::from_pem`].
    pub fn from_files(
        certificate: PathBuf,
        key: PathBuf,
        ca: PathBuf,
        installation: &str,
    ) -> Result<Self, ServerTlsError> {
        let files = Files {
            certificate,
            key,
            ca,
        };
        let pem = files.read()?;
        Self::new(
            Source {
                installation: installation.to_owned(),
                files: Some(files),
            },
            pem,
        )
    }

    fn new(source: Source, pem: Pem) -> Result<Self, ServerTlsError> {
        let config = config(&pem, &source.installation)?;
        Ok(Self {
            inner: Arc::new(Inner {
                source,
                current: RwLock::new(Loaded { pem, config }),
            }),
        })
    }

    /// Reads the files again and uses them for new connections. Returns whether anything had changed.
    ///
    /// # Errors
    /// As [`ServerTls::from_files`]; what was in use stays in use.
    pub fn reload(&self) -> Result<bool, ServerTlsError> {
        let Source {
            installation,
            files: Some(files),
        } = &self.inner.source
        else {
            return Ok(false);
        };
        let pem = files.read()?;
        if self.current().pem == pem {
            return Ok(false);
        }
        let config = config(&pem, installation)?;
        *self
            .inner
            .current
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Loaded { pem, config };
        Ok(true)
    }

    /// What the next connection is accepted with.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().config)
    }

    fn current(&self) -> std::sync::RwLockReadGuard<'_, Loaded> {
        self.inner
            .current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    fn read(&self) -> Result<Pem, ServerTlsError> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|source| ServerTlsError::Read {
                path: path.clone(),
                source,
            })
        };
        Ok(Pem {
            certificate: read(&self.certificate)?,
            key: Zeroizing::new(read(&self.key)?),
            ca: read(&self.ca)?,
        })
    }
}

fn config(pem: &Pem, installation: &str) -> Result<Arc<ServerConfig>, ServerTlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = certificates(&pem.certificate, "certificate")?;
    let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes())
        .map_err(|_| ServerTlsError::Pem("key"))?;
    let mut roots = RootCertStore::empty();
    for ca in certificates(&pem.ca, "CA")? {
        roots.add(ca).map_err(unusable)?;
    }
    let chain_verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(unusable)?;
    let verifier = OnlyController {
        chain: chain_verifier,
        uri: identity::controller_uri(installation),
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // A resumed session would not be verified again; handshakes are rare here.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn certificates(
    pem: &str,
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, ServerTlsError> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or(ServerTlsError::Pem(what))
}

fn unusable(error: impl fmt::Display) -> ServerTlsError {
    ServerTlsError::Unusable(error.to_string())
}

/// Verifies the chain as usual, then that the leaf names the controller: every workload of the installation has a
/// certificate of the same CA.
#[derive(Debug)]
struct OnlyController {
    chain: Arc<dyn ClientCertVerifier>,
    uri: String,
}

impl ClientCertVerifier for OnlyController {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.chain.verify_client_cert(leaf, intermediates, now)?;
        if identity::presents(leaf, &self.uri) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chain
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }

    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        true
    }
}
