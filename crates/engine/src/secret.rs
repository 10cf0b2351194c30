//! Credentials as a type of their own: never printed, never serialized, zeroed on drop; and their masking in what comes back.

mod buffer;
mod redactor;

pub(crate) use buffer::Buffer;
pub use redactor::Redactor;

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use crate::effect::KeyRef;

/// Bytes of a credential, or text that contains one. No `Display`, no `Serialize`; `Debug` shows `***`.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes over.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the one place that sends or compares them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What a shell read for one call.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Values of Secret keys.
    pub secrets: BTreeMap<KeyRef, Secret>,
    /// Values of ConfigMap keys.
    pub configmaps: BTreeMap<KeyRef, String>,
}

impl Credentials {
    /// Finds the values read for this call in whatever comes back.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets.values())
    }
}
