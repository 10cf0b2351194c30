//! Patches: merge, JSON, and strategic merge for built-in kinds, taken as a merge.

use http::StatusCode;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::request::Request;

/// Operations that a JSON patch may have.
const MOST_OPERATIONS: usize = 10_000;

/// A parsed patch.
pub(crate) enum Patch {
    Merge(Value),
    Json(json_patch::Patch),
}

impl Patch {
    /// Parses a body by its content type.
    ///
    /// # Errors
    /// The type is not one of the three, or the body does not parse.
    pub(crate) fn parse(request: &Request<'_>) -> Result<Self> {
        match request.content_type() {
            "application/merge-patch+json" => merge(&request.body).map(Self::Merge),
            "application/strategic-merge-patch+json" if request.kind.builtin => {
                let mut patch = merge(&request.body)?;
                refuse_directives(&patch)?;
                strip_order(&mut patch);
                Ok(Self::Merge(patch))
            }
            "application/json-patch+json" => {
                let patch: json_patch::Patch = serde_json::from_slice(&request.body)
                    .map_err(|error| Failure::bad_request(error.to_string()))?;
                if patch.0.len() > MOST_OPERATIONS {
                    return Err(Failure::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        format!(
                            "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                            patch.0.len()
                        ),
                    ));
                }
                Ok(Self::Json(patch))
            }
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                Err(Failure::unsupported_media_type(
                    "the local API keeps no field ownership, so it takes no server-side apply: use client-side apply (kubectl apply without --server-side) or a merge patch",
                ))
            }
            _ => {
                let strategic = if request.kind.builtin {
                    ", application/strategic-merge-patch+json"
                } else {
                    ""
                };
                Err(Failure::unsupported_media_type(format!(
                    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json{strategic}"
                )))
            }
        }
    }

    /// What an object becomes.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value> {
        let mut patched = object.clone();
        match self {
            Self::Merge(patch) => json_patch::merge(&mut patched, patch),
            Self::Json(patch) => json_patch::patch(&mut patched, patch).map_err(|error| {
                let mut failure = Failure::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "Invalid",
                    "the server rejected our request due to an error in our request",
                );
                failure.set_details(serde_json::json!({
                    "causes": [{"reason": "UnexpectedServerResponse", "message": error.to_string()}],
                }));
                failure
            })?,
        }
        Ok(patched)
    }
}

fn merge(body: &[u8]) -> Result<Value> {
    let patch: Value =
        serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?;
    if patch.is_object() {
        Ok(patch)
    } else {
        Err(Failure::bad_request("a merge patch is a JSON object"))
    }
}

/// Directives of a strategic merge would be stored as fields, or silently do nothing.
fn refuse_directives(patch: &Value) -> Result<()> {
    match patch {
        Value::Object(map) => {
            for (key, value) in map {
                if key == "$patch"
                    || key == "$retainKeys"
                    || key.starts_with("$deleteFromPrimitiveList/")
                {
                    return Err(Failure::bad_request(format!(
                        "the local API takes a strategic merge patch as a merge patch, so it does not know {key}"
                    )));
                }
                refuse_directives(value)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(refuse_directives),
        _ => Ok(()),
    }
}

fn strip_order(patch: &mut Value) {
    if let Value::Object(map) = patch {
        map.retain(|key, _| !key.starts_with("$setElementOrder/"));
        map.values_mut().for_each(strip_order);
    }
}
