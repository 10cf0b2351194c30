//! Reads a request's body into one buffer that is wiped after parsing: it holds credentials.

use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kubezap_step_protocol::{ExecuteRequest, OLDEST_VERSION, VERSION};
use serde::Deserialize;
use zeroize::Zeroizing;

/// A rendered body of 4 MiB in base64, with headers and certificates to spare.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// A body that is not a request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("the request exceeds {MAX_BYTES} bytes")]
    TooLarge,
    #[error("the request was cut off")]
    CutOff,
    /// The parser's own text quotes what it read, which may be a credential.
    #[error("the request is not what the protocol says, at line {line} column {column}")]
    Malformed { line: usize, column: usize },
    #[error(
        "protocol version {0} is not understood here ({OLDEST_VERSION} to {VERSION} are): roll out the executor's image of this controller"
    )]
    Version(u32),
}

impl Refused {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::CutOff | Self::Malformed { .. } | Self::Version(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// All that every version has in common.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

pub(super) async fn read(mut incoming: Incoming) -> Result<ExecuteRequest, Refused> {
    let announced = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > MAX_BYTES {
        return Err(Refused::TooLarge);
    }
    // Growing would leave copies behind, so the announced size is taken at once.
    let mut json = Zeroizing::new(Vec::with_capacity(announced));
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|_| Refused::CutOff)?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if json.len() + data.len() > MAX_BYTES {
            return Err(Refused::TooLarge);
        }
        json.extend_from_slice(data);
    }
    parse(&json)
}

fn parse(json: &[u8]) -> Result<ExecuteRequest, Refused> {
    // The version first: a newer request may not even parse.
    let Versioned { version } = serde_json::from_slice(json).map_err(|error| malformed(&error))?;
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(Refused::Version(version));
    }
    serde_json::from_slice(json).map_err(|error| malformed(&error))
}

fn malformed(error: &serde_json::Error) -> Refused {
    Refused::Malformed {
        line: error.line(),
        column: error.column(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_from_the_future_is_named_though_its_request_does_not_parse() {
        let refused = parse(br#"{"version": 99, "target": {}}"#).err().unwrap();
        assert!(matches!(refused, Refused::Version(99)), "{refused}");
    }

    #[test]
    fn a_malformed_request_is_not_quoted() {
        let refused = parse(br#"{"version": 1, "executionID": "a", "method": 5, "url": "s3cret"}"#)
            .err()
            .unwrap();
        assert_eq!(
            refused.to_string(),
            "the request is not what the protocol says, at line 1 column 46"
        );
    }
}
