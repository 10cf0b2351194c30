//! Whether a sender may fire a Trigger. What needs no body is checked before the body is read; a signature after it.

use hmac::{Hmac, KeyInit, Mac};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use kubezap_api::lower::Auth;
use kubezap_engine::secret::Secret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::route::Route;
use super::secrets::{SecretError, SecretKey, Secrets};

/// The header of GitHub's signature: `sha256=` and the hexadecimal HMAC-SHA256 of the body.
pub(crate) static GITHUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");

/// Why a check failed; in the access log and a counter, never in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The header that the check reads is not there.
    MissingHeader,
    /// It is there more than once, or is not of the check's form.
    MalformedHeader,
    /// Another token.
    TokenMismatch,
    /// A signature of something else, or with another key.
    SignatureMismatch,
}

impl Failure {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MissingHeader => "missing_header",
            Self::MalformedHeader => "malformed_header",
            Self::TokenMismatch => "token_mismatch",
            Self::SignatureMismatch => "signature_mismatch",
        }
    }
}

/// Why a sender is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It failed the check.
    Failed(Failure),
    /// The check cannot be made.
    Unavailable(SecretError),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What is left to check once the body is read.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Nothing: the check passed, or the Trigger asks for none.
    Nothing,
    /// A signature over the raw body.
    Signature { key: SecretKey, claimed: [u8; 32] },
}

/// The type of a check as manifests write it; empty for a Trigger without one.
pub(crate) fn name(auth: &Auth) -> &'static str {
    match auth {
        Auth::None => "",
        Auth::HmacGithub { .. } => "hmac",
        Auth::Bearer { .. } => "bearer",
    }
}

/// The header that the check reads; never stored.
pub(crate) fn header(auth: &Auth) -> Option<&'static HeaderName> {
    match auth {
        Auth::None => None,
        Auth::HmacGithub { .. } => Some(&GITHUB_SIGNATURE),
        Auth::Bearer { .. } => {
            static NAME: HeaderName = AUTHORIZATION;
            Some(&NAME)
        }
    }
}

/// Makes the checks that need no body. A signature's header is read here as well: a request without one is refused
/// before its body is read and before its Secret is.
pub(crate) async fn before_body(
    route: &Route,
    headers: &HeaderMap,
    secrets: &Secrets,
) -> Result<Pending, Refusal> {
    match &route.auth {
        Auth::None => Ok(Pending::Nothing),
        Auth::Bearer { token } => {
            let offered = bearer(headers)?;
            let key = route.secret(token);
            let token = secrets
                .get(&key, route.flow_name())
                .await
                .map_err(Refusal::Unavailable)?;
            if same(offered, token.expose()) {
                Ok(Pending::Nothing)
            } else {
                Err(Failure::TokenMismatch.into())
            }
        }
        Auth::HmacGithub { secret } => Ok(Pending::Signature {
            key: route.secret(secret),
            claimed: github(headers)?,
        }),
    }
}

impl Pending {
    /// Makes the check that needs the body.
    pub(crate) async fn with_body(
        self,
        body: &[u8],
        secrets: &Secrets,
        flow: &str,
    ) -> Result<(), Refusal> {
        match self {
            Self::Nothing => Ok(()),
            Self::Signature { key, claimed } => {
                let secret = secrets
                    .get(&key, flow)
                    .await
                    .map_err(Refusal::Unavailable)?;
                if signed(&secret, body, &claimed) {
                    Ok(())
                } else {
                    Err(Failure::SignatureMismatch.into())
                }
            }
        }
    }
}

/// A header that must be there exactly once: of two, one would be checked and the other believed.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a [u8], Failure> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Err(Failure::MissingHeader),
        (Some(value), None) => Ok(value.as_bytes()),
        (Some(_), Some(_)) => Err(Failure::MalformedHeader),
    }
}

/// RFC 6750, section 2.1; the scheme in any case.
fn bearer(headers: &HeaderMap) -> Result<&[u8], Failure> {
    let value = single(headers, &AUTHORIZATION)?;
    let token = match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
        _ => return Err(Failure::MalformedHeader),
    };
    if token.is_empty() {
        return Err(Failure::MalformedHeader);
    }
    Ok(token)
}

fn github(headers: &HeaderMap) -> Result<[u8; 32], Failure> {
    let value = single(headers, &GITHUB_SIGNATURE)?;
    let digits = value
        .trim_ascii()
        .strip_prefix(b"sha256=")
        .ok_or(Failure::MalformedHeader)?;
    let mut claimed = [0; 32];
    hex::decode_to_slice(digits, &mut claimed).map_err(|_| Failure::MalformedHeader)?;
    Ok(claimed)
}

/// Compares digests, in constant time: comparing the texts would tell the token's length.
fn same(offered: &[u8], token: &[u8]) -> bool {
    Sha256::digest(offered).ct_eq(&Sha256::digest(token)).into()
}

fn signed(secret: &Secret, body: &[u8], claimed: &[u8; 32]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose()) else {
        return false;
    };
    mac.update(body);
    mac.verify_slice(claimed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    /// GitHub's own example: docs.github.com, "Validating webhook deliveries", "Testing the webhook payload validation".
    const SECRET: &[u8] = b"It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const SIGNATURE: &str =
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn githubs_published_signature_verifies() {
        let claimed = github(&headers(&[("x-hub-signature-256", SIGNATURE)])).unwrap();
        let secret = Secret::new(SECRET.to_vec());
        assert!(signed(&secret, BODY, &claimed));
        assert!(!signed(&secret, b"Hello, World?", &claimed));
        assert!(!signed(&Secret::new(b"another".to_vec()), BODY, &claimed));
        let mut other = claimed;
        other[31] ^= 1;
        assert!(!signed(&secret, BODY, &other));
    }

    #[test]
    fn a_signature_of_another_form_is_malformed() {
        for value in [
            "",
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            "sha1=757107ea0eb2509fc211221cce984b8a37570b6d",
            "sha256=",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e1700",
            "sha256=zz7107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        ] {
            assert_eq!(
                github(&headers(&[("x-hub-signature-256", value)])),
                Err(Failure::MalformedHeader),
                "{value}"
            );
        }
        assert_eq!(github(&headers(&[])), Err(Failure::MissingHeader));
        let twice = headers(&[
            ("x-hub-signature-256", SIGNATURE),
            ("x-hub-signature-256", SIGNATURE),
        ]);
        assert_eq!(github(&twice), Err(Failure::MalformedHeader));
    }

    #[test]
    fn a_bearer_token_is_read_as_rfc_6750_says() {
        let read = |value: &str| bearer(&headers(&[("authorization", value)])).map(<[u8]>::to_vec);
        assert_eq!(read("Bearer abc"), Ok(b"abc".to_vec()));
        assert_eq!(read("bearer   abc"), Ok(b"abc".to_vec()));
        for malformed in ["Bearer", "Bearer ", "Bearer   ", "Basic abc", "abc", ""] {
            assert_eq!(
                read(malformed),
                Err(Failure::MalformedHeader),
                "{malformed}"
            );
        }
        assert_eq!(bearer(&headers(&[])), Err(Failure::MissingHeader));
    }

    #[test]
    fn only_the_same_token_is_the_same() {
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"abc", b"abd"));
        assert!(!same(b"ab", b"abc"));
        assert!(!same(b"", b"abc"));
    }
}
