//! JSON that holds credentials, in memory that is overwritten when it is let go.

use std::io::{self, Write};

use bytes::Bytes;
use serde::Serialize;
use zeroize::Zeroizing;

/// Writes a value as JSON. The bytes are overwritten when the last owner drops them.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<Bytes> {
    let mut buffer = Buffer(Zeroizing::new(Vec::with_capacity(4096)));
    serde_json::to_writer(&mut buffer, value)?;
    Ok(Bytes::from_owner(buffer.0))
}

/// Grows by moving to a new allocation itself: a vector's own growth would leave its bytes behind.
struct Buffer(Zeroizing<Vec<u8>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let mut larger = Vec::with_capacity(needed.max(self.0.capacity() * 2));
            larger.extend_from_slice(&self.0);
            self.0 = Zeroizing::new(larger);
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_larger_than_the_first_buffer_is_whole() {
        let value = "0123456789\"".repeat(10_000);
        let written = super::json(&value).unwrap();
        assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), value);
    }
}
