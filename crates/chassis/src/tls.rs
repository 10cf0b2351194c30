//! TLS material from PEM files. Reloading it when the files change comes with the workloads that mount it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Where a workload finds its certificate, its key, and the authority that the other side's certificate comes from.
#[derive(Clone, Debug)]
pub struct Files {
    /// Certificate chain, leaf first (PEM).
    pub certificate: PathBuf,
    /// Private key (PEM: PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
    /// Certificates of the authority (PEM).
    pub authority: PathBuf,
}

/// What one side of a mutual TLS connection holds, read.
#[derive(Debug)]
pub struct Identity {
    /// Certificate chain, leaf first.
    pub chain: Vec<CertificateDer<'static>>,
    /// Private key.
    pub key: PrivateKeyDer<'static>,
    /// Whom the other side's certificate must come from.
    pub roots: Arc<RootCertStore>,
}

/// Why TLS material cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {what} from {}: {source}", path.display())]
    Read {
        /// `the certificate`, `the private key` or `the authority`.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: pem::Error,
    },
    /// A file holds no certificate.
    #[error("{} holds no certificate in PEM form", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// Readable, and of no use to rustls.
    #[error("the TLS material does not fit together: {0}")]
    Unusable(String),
}

impl Identity {
    /// Reads all three files.
    ///
    /// # Errors
    /// Names the file that cannot be used.
    pub fn load(files: &Files) -> Result<Self, TlsError> {
        Ok(Self {
            chain: certificates("the certificate", &files.certificate)?,
            key: PrivateKeyDer::from_pem_file(&files.key).map_err(|source| TlsError::Read {
                what: "the private key",
                path: files.key.clone(),
                source,
            })?,
            roots: Arc::new(roots(&files.authority)?),
        })
    }

    /// Makes a server that asks every client for a certificate of the authority. ALPN: HTTP/2, HTTP/1.1.
    ///
    /// # Errors
    /// When key and certificate do not belong together.
    pub fn server(&self) -> Result<ServerConfig, TlsError> {
        let verifier = WebPkiClientVerifier::builder(self.roots.clone())
            .build()
            .map_err(unusable)?;
        let mut config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Makes a client that shows its certificate and accepts servers of the authority, by name.
    ///
    /// # Errors
    /// When key and certificate do not belong together.
    pub fn client(&self) -> Result<ClientConfig, TlsError> {
        let verifier = WebPkiServerVerifier::builder(self.roots.clone())
            .build()
            .map_err(unusable)?;
        ClientConfig::builder()
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            .map_err(unusable)
    }
}

/// Reads the certificates of a PEM file into a root store.
///
/// # Errors
/// When the file cannot be read, holds none, or one that is no trust anchor.
pub fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates("the authority", path)? {
        store.add(certificate).map_err(unusable)?;
    }
    Ok(store)
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = |source| TlsError::Read {
        what,
        path: path.to_owned(),
        source,
    };
    let found = CertificateDer::pem_file_iter(path)
        .map_err(read)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(read)?;
    if found.is_empty() {
        return Err(TlsError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(found)
}

fn unusable(error: impl ToString) -> TlsError {
    TlsError::Unusable(error.to_string())
}
