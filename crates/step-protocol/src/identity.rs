//! Who is at the other end: the SPIFFE URI in a certificate's subject alternative name.
//!
//! The CA of the installation vouches for the chain; these functions say which name a peer must then present.

use rustls_pki_types::CertificateDer;

/// The controller of `installation`, the only client an executor serves.
pub fn controller_uri(installation: &str) -> String {
    format!("spiffe://{installation}/controller")
}

/// The executor of `namespace`, the only server a controller hands that namespace's credentials to.
pub fn executor_uri(installation: &str, namespace: &str) -> String {
    format!("spiffe://{installation}/ns/{namespace}/executor")
}

/// Whether `certificate` names `uri`, and nothing else: a SPIFFE certificate has exactly one URI.
///
/// Says nothing of the chain, which the TLS library has verified before. `false` for a certificate that does not parse.
pub fn presents(certificate: &[u8], uri: &str) -> bool {
    let der = CertificateDer::from_slice(certificate);
    let Ok(certificate) = webpki::EndEntityCert::try_from(&der) else {
        return false;
    };
    let mut names = certificate.valid_uri_names();
    names.next() == Some(uri) && names.next().is_none()
}
