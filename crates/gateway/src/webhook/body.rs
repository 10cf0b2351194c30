//! The size of a request, and its body read once: within a limit, a deadline and the memory that all bodies share.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Why a body is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// Larger than the limit.
    TooLarge,
    /// The deadline passed.
    TooSlow,
    /// The sender went away or broke the protocol.
    Broken,
    /// All memory for bodies is in use.
    Busy,
}

/// A body in memory, and its share of the memory for bodies.
pub(crate) struct Read {
    pub(crate) bytes: Bytes,
    pub(crate) share: Share,
}

/// The memory that the bodies of all requests in flight share.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Semaphore>);

const UNIT: usize = 1024;

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(
            (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS),
        )))
    }

    fn share(&self) -> Share {
        Share {
            memory: self.0.clone(),
            taken: Vec::new(),
            bytes: 0,
        }
    }
}

/// What one body holds of the memory; given back when dropped.
pub(crate) struct Share {
    memory: Arc<Semaphore>,
    taken: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Share {
    /// Never waits: whoever holds some and waits for more could wait for itself.
    fn grow_to(&mut self, bytes: usize) -> Result<(), BodyError> {
        let missing = bytes.div_ceil(UNIT).saturating_sub(self.bytes / UNIT);
        if missing > 0 {
            // Whole 16 KiB at a time, so that a body of single bytes does not hold a permit for each.
            let units = missing.next_multiple_of(16);
            let permits = u32::try_from(units).map_err(|_| BodyError::Busy)?;
            let permit = self
                .memory
                .clone()
                .try_acquire_many_owned(permits)
                .map_err(|_| BodyError::Busy)?;
            self.taken.push(permit);
            self.bytes += units * UNIT;
        }
        Ok(())
    }
}

/// Counts names and values, as they are stored.
pub(crate) fn headers_size(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

/// Refuses by `Content-Length`, before a byte of the body is read.
pub(crate) fn refuse_by_length(headers: &HeaderMap, limit: usize) -> Result<(), BodyError> {
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    match announced {
        Some(length) if length > limit as u64 => Err(BodyError::TooLarge),
        _ => Ok(()),
    }
}

/// Reads the body, of `limit` bytes at most, until `deadline`. What it says of its own length is not believed.
pub(crate) async fn read(
    body: &mut Incoming,
    limit: usize,
    deadline: Instant,
    memory: &Memory,
) -> Result<Read, BodyError> {
    let mut share = memory.share();
    let expected = body.size_hint().exact().unwrap_or(0);
    let expected = usize::try_from(expected).unwrap_or(limit).min(limit);
    share.grow_to(expected)?;
    let mut bytes = BytesMut::with_capacity(expected);
    loop {
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers carry nothing that is stored.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > limit {
            return Err(BodyError::TooLarge);
        }
        share.grow_to(bytes.len() + data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok(Read {
        bytes: bytes.freeze(),
        share,
    })
}

/// How much a body takes when it is stored: as text, or as base64.
pub(crate) fn stored_size(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(_) => bytes.len().div_ceil(3) * 4,
    }
}

/// Reads what a refused sender still sends, bounded, so that it sees the answer: a socket closed over unread data is reset,
/// and the answer in it is lost.
pub(crate) async fn discard(mut body: Incoming) {
    const MOST: usize = 2 << 20;
    const LONGEST: Duration = Duration::from_secs(2);
    let mut left = MOST;
    let _ = tokio::time::timeout(LONGEST, async {
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_bodies_count_as_base64() {
        assert_eq!(stored_size(b"abc"), 3);
        assert_eq!(stored_size("é".as_bytes()), 2);
        assert_eq!(stored_size(&[0xff]), 4);
        assert_eq!(stored_size(&[0xff; 393_216]), 524_288);
        assert_eq!(stored_size(&[0xff; 393_217]), 524_292);
    }

    #[test]
    fn bodies_share_memory_and_give_it_back() {
        let memory = Memory::new(64 * UNIT);
        let mut first = memory.share();
        first.grow_to(1).unwrap();
        first.grow_to(16 * UNIT).unwrap();
        assert_eq!(first.taken.len(), 1);
        let mut second = memory.share();
        second.grow_to(48 * UNIT).unwrap();
        assert_eq!(first.grow_to(17 * UNIT), Err(BodyError::Busy));
        drop(second);
        first.grow_to(17 * UNIT).unwrap();
    }

    #[test]
    fn a_length_at_the_limit_passes_and_one_more_does_not() {
        let mut headers = HeaderMap::new();
        assert_eq!(refuse_by_length(&headers, 10), Ok(()));
        headers.insert(CONTENT_LENGTH, 10.into());
        assert_eq!(refuse_by_length(&headers, 10), Ok(()));
        headers.insert(CONTENT_LENGTH, 11.into());
        assert_eq!(refuse_by_length(&headers, 10), Err(BodyError::TooLarge));
    }
}
