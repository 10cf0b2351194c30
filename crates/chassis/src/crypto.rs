//! The process-wide cryptography provider of rustls.

/// Makes aws-lc-rs the provider that every TLS configuration of this process uses.
///
/// The first thing a main does: a dependency that also brings `ring` would otherwise leave rustls without a default, and
/// the first connection would panic. Calling it again, or after another provider was installed, changes nothing.
pub fn install() {
    // The error means that a provider stands already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
