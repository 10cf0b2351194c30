//! What the controller and an executor say to each other: `POST /execute`, JSON, over mutual TLS.
//!
//! Both ends authenticate by the URI in their certificate ([`identity`]). A request holds resolved credentials, so it
//! has no `Debug` and wipes its own buffers when it is dropped; a response prints its size, never its content.

pub mod identity;

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// The newest version of this protocol; an executor understands this one and the one before.
pub const VERSION: u32 = 1;

/// The oldest version an executor still understands: it is rolled out before or after the controller, never with it.
pub const OLDEST_VERSION: u32 = if VERSION > 1 { VERSION - 1 } else { 1 };

/// A call to make.
///
/// Credentials are in it as they will be sent. Dropping it overwrites the URL, header values, body and key; a field
/// is moved out with `std::mem::take`, and whoever takes it wipes it.
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
    /// Nothing reads the response's body: it may have any size and comes back empty.
    #[serde(default)]
    pub discard_body: bool,
}

impl Drop for ExecuteRequest {
    fn drop(&mut self) {
        self.url.zeroize();
        for header in &mut self.headers {
            header.value.zeroize();
        }
        if let Some(body) = &mut self.body {
            body.zeroize();
        }
        if let Some(certificate) = &mut self.client_certificate {
            certificate.key.zeroize();
        }
    }
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
    /// Body bytes as they arrive. `Accept-Encoding` is sent only where a step sets it, and then the encoding stays.
    pub response_bytes: u64,
    /// Header bytes.
    pub header_bytes: u64,
}

impl Default for Limits {
    /// 1 MiB of body, 64 KiB of headers.
    fn default() -> Self {
        Self {
            response_bytes: 1024 * 1024,
            header_bytes: 64 * 1024,
        }
    }
}

/// What became of a call.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
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

impl fmt::Debug for ExecuteResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response {
                status,
                headers,
                body,
            } => f
                .debug_struct("Response")
                .field("status", status)
                .field("headers", &headers.len())
                .field("body_bytes", &body.len())
                .finish(),
            Self::Failed { code, message } => f
                .debug_struct("Failed")
                .field("code", code)
                .field("message", message)
                .finish(),
        }
    }
}

/// Why a call has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Code {
    /// Every code, for tables and counters.
    pub const ALL: [Code; 9] = [
        Code::EgressDenied,
        Code::Dns,
        Code::Connect,
        Code::Tls,
        Code::Timeout,
        Code::ResponseTooLarge,
        Code::InvalidRequest,
        Code::Canceled,
        Code::MockUnmatched,
    ];

    /// The name on the wire, in messages and as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::EgressDenied => "egress_denied",
            Code::Dns => "dns",
            Code::Connect => "connect",
            Code::Tls => "tls",
            Code::Timeout => "timeout",
            Code::ResponseTooLarge => "response_too_large",
            Code::InvalidRequest => "invalid_request",
            Code::Canceled => "canceled",
            Code::MockUnmatched => "mock_unmatched",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

mod base64_bytes {
    use std::fmt;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Visitor;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        // Decodes from the input itself: a copy of the text would outlive the request unwiped.
        struct Base64;
        impl Visitor<'_> for Base64 {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("standard base64")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
                // The crate's error names an offending byte, which may be a credential's.
                STANDARD
                    .decode(text)
                    .map_err(|_| E::custom("not standard base64"))
            }
        }
        deserializer.deserialize_str(Base64)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ExecuteRequest {
        ExecuteRequest {
            version: VERSION,
            execution_id: "run/step/1".into(),
            method: "POST".into(),
            url: "https://api.example.com/".into(),
            headers: vec![Header {
                name: "Authorization".into(),
                value: "Bearer t".into(),
                sensitive: true,
            }],
            body: Some(vec![0, 255, 10]),
            timeout_millis: 30_000,
            limits: Limits::default(),
            max_redirects: 0,
            allow: vec!["10.0.0.0/8:443".into()],
            ca_bundle: None,
            client_certificate: None,
            discard_body: false,
        }
    }

    #[test]
    fn a_request_survives_the_wire() {
        let text = serde_json::to_string(&request()).unwrap();
        let back: ExecuteRequest = serde_json::from_str(&text).unwrap();
        assert_eq!(back.body.as_deref(), Some(&[0u8, 255, 10][..]));
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }

    #[test]
    fn fields_keep_their_names_on_the_wire() {
        let value = serde_json::to_value(request()).unwrap();
        let keys: Vec<&str> = value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys,
            [
                "version",
                "executionID",
                "method",
                "url",
                "headers",
                "body",
                "timeoutMillis",
                "limits",
                "maxRedirects",
                "allow",
                "discardBody"
            ]
        );
        assert_eq!(value["body"], "AP8K");
    }

    #[test]
    fn a_body_that_is_not_base64_is_refused_without_being_quoted() {
        let mut value = serde_json::to_value(request()).unwrap();
        value["body"] = "s3cret!".into();
        let error = serde_json::from_value::<ExecuteRequest>(value)
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "not standard base64");
    }

    #[test]
    fn debug_output_of_a_response_holds_no_content() {
        let response = ExecuteResponse::Response {
            status: 200,
            headers: vec![("set-cookie".into(), "session=hidden".into())],
            body: b"hidden".to_vec(),
        };
        let text = format!("{response:?}");
        assert!(!text.contains("hidden"), "{text}");
        assert!(text.contains("200"), "{text}");
    }

    #[test]
    fn a_code_is_spelled_the_same_everywhere() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
