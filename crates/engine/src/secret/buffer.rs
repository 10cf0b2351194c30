//! Text under construction that may hold a credential.

use zeroize::Zeroizing;

use super::Secret;

/// Bytes that grow without leaving copies behind: what an allocation held is zeroed before it is given back.
#[derive(Default)]
pub(crate) struct Buffer(Zeroizing<Vec<u8>>);

impl Buffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let mut larger = Zeroizing::new(Vec::with_capacity((needed * 2).max(256)));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.push(text.as_bytes());
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_secret(self) -> Secret {
        Secret(self.0)
    }
}
