//! The client's side of mutual TLS: the controller's certificate, and the only server a namespace's calls go to.

use std::error::Error as StdError;
use std::sync::Arc;

use kubezap_chassis::tls::{Identity, TlsError};
use kubezap_step_protocol::identity;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

/// TLS 1.3 towards the executor of `namespace`.
pub(super) fn client(
    identity: &Identity,
    installation: &str,
    namespace: &str,
) -> Result<ClientConfig, TlsError> {
    let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = OnlyExecutor {
        roots: Arc::clone(&identity.roots),
        uri: identity::executor_uri(installation, namespace),
        provider: Arc::clone(&provider),
    };
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
        .map_err(unusable)
}

/// Whether two were read from the same material.
pub(super) fn same(one: &Identity, other: &Identity) -> bool {
    one.chain == other.chain
        && one.key.secret_der() == other.key.secret_der()
        && one.roots.roots == other.roots.roots
}

/// Whether the other side refused this certificate: in TLS 1.3 a client learns it after it has begun to send, and what it
/// sent was never read.
///
/// HTTP/2 keeps no more of the connection's error than its text, so that is what is compared, with rustls' own.
pub(super) fn refused_by_peer(error: &(dyn StdError + 'static)) -> bool {
    let refusals = OF_HANDSHAKE.map(|alert| rustls::Error::AlertReceived(alert).to_string());
    let mut cause = Some(error);
    while let Some(error) = cause {
        if refusals.contains(&error.to_string()) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Alerts with which a server ends a handshake because of the client's certificate; it sends none of them later.
const OF_HANDSHAKE: [AlertDescription; 9] = [
    AlertDescription::HandshakeFailure,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::CertificateRequired,
];

/// Accepts a server by the URI of its certificate; what name it was dialled by says nothing.
#[derive(Debug)]
struct OnlyExecutor {
    roots: Arc<RootCertStore>,
    uri: String,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OnlyExecutor {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        if identity::presents(end_entity, &self.uri) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    /// TLS 1.2 is off.
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::PeerIncompatible(
            rustls::PeerIncompatible::Tls12NotOffered,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
