//! What the controller and an executor say to each other: `POST /execute`, JSON, over mutual TLS.

use serde::{Deserialize, Serialize};

/// The newest version of this protocol; an executor understands this one and the one before.
pub const VERSION: u32 = 1;

/// A call to make.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteRequest {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// Refused while the first of this id is in flight, and for 5 minutes after.
    #[serde(rename = "executionID")]
    pub execution_id: String,
    /// HTTP method, upper case.
    pub method: String,
    /// Absolute URL, http or https.
    pub url: String,
    /// Headers in order.
    pub headers: Vec<Header>,
    /// Body, standard base64.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_base64"
    )]
    pub body: Option<Vec<u8>>,
    /// The most the call may take, in milliseconds from arrival.
    pub timeout_millis: u64,
    /// Bounds.
    pub limits: Limits,
    /// Redirects to follow: 0 is none.
    pub max_redirects: u32,
    /// Targets this namespace may reach beyond the public internet: `[*.]host[:port|:*]` or `CIDR[:port]`.
    pub allow: Vec<String>,
    /// PEM certificates to trust instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
    /// PEM certificate chain and key to present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
}

/// One header.
#[derive(Clone, Serialize, Deserialize)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Derived from a credential: dropped when a redirect leaves the origin.
    #[serde(default)]
    pub sensitive: bool,
}

/// A certificate to present to the target.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// PEM chain.
    pub certificate: String,
    /// PEM key.
    pub key: String,
}

/// What a response may not exceed; beyond is an error, never a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Body bytes, decompressed.
    pub response_bytes: u64,
    /// Header bytes.
    pub header_bytes: u64,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "result")]
pub enum ExecuteResponse {
    /// The target answered.
    Response {
        /// Status code.
        status: u16,
        /// Names in lower case, every value, in order.
        headers: Vec<(String, String)>,
        /// Body, standard base64.
        #[serde(with = "base64_bytes")]
        body: Vec<u8>,
    },
    /// It did not.
    Failed {
        /// Why.
        code: Code,
        /// For people, starting with the host concerned where there is one.
        message: String,
    },
}

/// Why a call has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The egress guard refused the target.
    EgressDenied,
    /// The name does not resolve.
    Dns,
    /// No connection, or it broke.
    Connect,
    /// The handshake failed.
    Tls,
    /// Time was up.
    Timeout,
    /// Body or headers exceed the limits.
    ResponseTooLarge,
    /// Not a request that can be sent.
    InvalidRequest,
    /// The controller hung up.
    Canceled,
    /// A mocked host has no route for it (`kubezap dev` only).
    MockUnmatched,
}

mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        STANDARD
            .decode(text.as_bytes())
            .map_err(serde::de::Error::custom)
    }
}

mod optional_base64 {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Bytes(#[serde(with = "super::base64_bytes")] Vec<u8>);

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => super::base64_bytes::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|bytes| bytes.0))
    }
}
