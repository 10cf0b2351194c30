//! The patch types: merge (RFC 7396), JSON (RFC 6902), and for a few built-in kinds strategic merge, applied as a merge.

use serde_json::Value;

use crate::errors::Refusal;
use crate::kinds::Kind;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The object that a patch makes of another.
pub(crate) fn apply(
    kind: &Kind,
    old: &Value,
    content_type: &str,
    body: &[u8],
) -> Result<Value, Refusal> {
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    let mut object = old.clone();
    let parse = || {
        serde_json::from_slice::<Value>(body)
            .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))
    };
    match content_type {
        MERGE => json_patch::merge(&mut object, &parse()?),
        STRATEGIC if kind.schema.is_none() => json_patch::merge(&mut object, &parse()?),
        JSON => {
            let patch: json_patch::Patch = serde_json::from_slice(body)
                .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(&mut object, &patch).map_err(|error| {
                Refusal::bad_request(format!(
                    "the server rejected our request due to an error in our request: {error}"
                ))
            })?;
        }
        APPLY => {
            return Err(Refusal::bad_request(
                "server-side apply is not served by the local API: use client-side apply (kubectl apply without --server-side), or a merge patch",
            ));
        }
        _ => {
            return Err(Refusal::unsupported_media_type(
                content_type,
                &[JSON, MERGE],
            ));
        }
    }
    Ok(object)
}
