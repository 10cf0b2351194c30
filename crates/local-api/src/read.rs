//! Get and list.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::Inner;
use crate::failure::{Failure, Result};
use crate::field::FieldError;
use crate::reply::Reply;
use crate::request::Request;
use crate::show::{ListMeta, Show, storage};
use crate::store::{Key, Stored, key};

impl Inner {
    pub(crate) fn get(&self, request: &Request<'_>) -> Result<Reply> {
        let object = self.stored(request)?;
        let show = Show {
            kind: request.kind,
            shape: request.shape,
        };
        Ok(Reply::ok(show.one(&object)))
    }

    /// The object that a request names.
    pub(crate) fn stored(&self, request: &Request<'_>) -> Result<Arc<Stored>> {
        let key = self.key(request);
        let found = self.store.get(&key);
        found.ok_or_else(|| Failure::not_found(request.kind, &key.name))
    }

    pub(crate) fn key(&self, request: &Request<'_>) -> Key {
        Key {
            kind: request.kind.storage(),
            namespace: request.namespace.clone().unwrap_or_default(),
            name: request.name.clone().unwrap_or_default(),
        }
    }

    pub(crate) fn list(&self, request: &Request<'_>) -> Result<Reply> {
        let (objects, meta) = self.select(request)?;
        let show = Show {
            kind: request.kind,
            shape: request.shape,
        };
        Ok(Reply::ok(show.list(&objects, &meta)))
    }

    /// The objects of one page.
    fn select(&self, request: &Request<'_>) -> Result<(Vec<Arc<Stored>>, ListMeta)> {
        let selector = request.selector()?;
        let query = &request.query;
        let limit = query.number("limit")?.unwrap_or(0);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let token = query
            .get("continue")
            .filter(|token| !token.is_empty())
            .map(Token::decode)
            .transpose()?;
        let asked = query.version()?;
        let exact = match query.get("resourceVersionMatch").unwrap_or_default() {
            "" => false,
            mode => {
                check_match(mode, asked, token.is_some())?;
                mode == "Exact"
            }
        };
        if token.is_some() && asked.is_some_and(|version| version != 0) {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }

        let kind = request.kind.storage();
        let namespace = request.namespace.as_deref();
        let state = self.store.lock();
        if let Some(asked) = asked
            && asked > state.version
        {
            return Err(Failure::too_large_version(asked, state.version));
        }
        let snapshot = match &token {
            Some(token) => token.version,
            None if exact => asked,
            None => None,
        };
        let version = snapshot.unwrap_or(state.version);
        let objects = match snapshot {
            None => state.list(kind, namespace),
            Some(version) => state.list_at(kind, namespace, version).map_err(|_| {
                let Some(token) = &token else {
                    return Failure::expired(format!(
                        "The resourceVersion for the provided list is too old. ({version})"
                    ));
                };
                let mut failure = Failure::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
                );
                failure.continue_token = Some(Token { version: None, after: token.after.clone() }.encode());
                failure
            })?,
        };
        drop(state);

        let selecting = storage(&self.registry, request.kind);
        let mut rest = objects.into_iter().filter(|object| {
            let later = token.as_ref().is_none_or(|token| {
                let at = key(kind, object);
                (at.namespace.as_str(), at.name.as_str())
                    > (token.after.0.as_str(), token.after.1.as_str())
            });
            later && selector.matches(selecting, &object.value)
        });
        let page: Vec<Arc<Stored>> = if limit == 0 {
            rest.by_ref().collect()
        } else {
            rest.by_ref().take(limit).collect()
        };
        let left = rest.count() as u64;
        let mut meta = ListMeta {
            version,
            ..ListMeta::default()
        };
        if left > 0
            && let Some(last) = page.last()
        {
            let last = key(kind, last);
            meta.continue_token = Some(
                Token {
                    version: Some(version),
                    after: (last.namespace, last.name),
                }
                .encode(),
            );
            meta.remaining = selector.is_empty().then_some(left);
        }
        Ok((page, meta))
    }
}

fn check_match(mode: &str, version: Option<u64>, continued: bool) -> Result<()> {
    let error = if !matches!(mode, "Exact" | "NotOlderThan") {
        FieldError::not_supported(
            "resourceVersionMatch",
            mode.into(),
            &["Exact".into(), "NotOlderThan".into()],
        )
    } else if continued {
        FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        )
    } else if version.is_none() {
        FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )
    } else if mode == "Exact" && version == Some(0) {
        FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
        )
    } else {
        return Ok(());
    };
    Err(Failure::invalid_named(
        "meta.k8s.io",
        "ListOptions",
        "",
        &[error],
    ))
}

/// Where the next page of a list begins.
struct Token {
    /// The snapshot; `None` continues in what is there now.
    version: Option<u64>,
    /// Namespace and name of the last object shown.
    after: (String, String),
}

impl Token {
    fn encode(&self) -> String {
        let value = json!({
            "v": "meta.k8s.io/v1",
            "rv": self.version.map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX)),
            "start": [self.after.0, self.after.1],
        });
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    fn decode(text: &str) -> Result<Self> {
        let invalid = || {
            Failure::bad_request("continue key is not valid: encoded continue token is not valid")
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid())?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
        let version = value["rv"].as_i64().ok_or_else(invalid)?;
        let text = |at: usize| {
            value["start"][at]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(invalid)
        };
        Ok(Self {
            version: u64::try_from(version).ok(),
            after: (text(0)?, text(1)?),
        })
    }
}
