//! Certificates for tests: the CA of an installation and what it issues. Made anew each time, never stored.

use std::net::IpAddr;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// The certificate authority of one installation.
pub struct Identity {
    installation: String,
    ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Identity {
    /// Makes the authority of `installation`.
    ///
    /// # Panics
    /// When no key can be made.
    pub fn new(installation: &str) -> Self {
        let key = KeyPair::generate().expect("a key pair");
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{installation} CA"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_pem = params.self_signed(&key).expect("a CA certificate").pem();
        Self {
            installation: installation.to_owned(),
            ca_pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// The authority's certificate, PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// Issues a certificate that names one URI, for either side of a connection: `(certificate, key)`, PEM.
    ///
    /// # Panics
    /// When the URI holds characters that a certificate cannot.
    pub fn issue(&self, uri: &str) -> (String, String) {
        let uri = Ia5String::try_from(uri).expect("a URI is ASCII");
        self.leaf(vec![SanType::URI(uri)])
    }

    /// Issues the certificate of the installation's controller.
    pub fn controller(&self) -> (String, String) {
        self.issue(&format!("spiffe://{}/controller", self.installation))
    }

    /// Issues the certificate of a namespace's executor.
    pub fn executor(&self, namespace: &str) -> (String, String) {
        self.issue(&format!(
            "spiffe://{}/ns/{namespace}/executor",
            self.installation
        ))
    }

    /// Issues a certificate for an ordinary server, by DNS names and addresses.
    ///
    /// # Panics
    /// When a name holds characters that a certificate cannot.
    pub fn server(&self, names: &[&str]) -> (String, String) {
        let names = names.iter().map(|name| match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(Ia5String::try_from(*name).expect("a DNS name is ASCII")),
        });
        self.leaf(names.collect())
    }

    fn leaf(&self, names: Vec<SanType>) -> (String, String) {
        let key = KeyPair::generate().expect("a key pair");
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("a leaf certificate");
        (certificate.pem(), key.serialize_pem())
    }
}
