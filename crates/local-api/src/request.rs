//! What a request asks for: path, query, headers and body.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::admission::FieldValidation;
use crate::failure::{Failure, Result};
use crate::field::FieldError;
use crate::kinds::{Kind, Registry};
use crate::protobuf;
use crate::selector::Selector;

/// Bytes that a body may have.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// A request about objects of one kind.
#[derive(Debug)]
pub(crate) struct Request<'r> {
    pub(crate) kind: &'r Kind,
    pub(crate) verb: Verb,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) query: Query,
    pub(crate) shape: Shape,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// How the client wants objects to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    /// Metadata alone.
    Partial,
    Table(Include),
}

/// What each row of a table carries beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl<'r> Request<'r> {
    /// Reads a request. `Ok(None)`: its path names no objects.
    ///
    /// # Errors
    /// The path names a kind that is not served, or the method does not fit.
    pub(crate) fn parse(
        registry: &'r Registry,
        parts: &Parts,
        body: Bytes,
    ) -> Result<Option<Self>> {
        let segments: Vec<String> = parts
            .uri
            .path()
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned())
            .collect();
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match words.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Ok(None),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..]
                if !rest.is_empty() && (rest != ["status"] || !group.is_empty()) =>
            {
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return Err(Failure::unknown_path()),
        };
        let kind = registry
            .find(group, version, plural)
            .ok_or_else(Failure::unknown_path)?;
        if namespace.is_some() && !kind.namespaced {
            return Err(Failure::unknown_path());
        }
        if subresource.is_some_and(|subresource| subresource != "status" || !kind.has_status) {
            return Err(Failure::unknown_path());
        }
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let on_one = name.is_some();
        let verb = match parts.method {
            Method::GET if query.flag("watch") && !on_one => Verb::Watch,
            Method::GET if on_one => Verb::Get,
            Method::GET => Verb::List,
            Method::POST if !on_one => Verb::Create,
            Method::PUT if on_one => Verb::Update,
            Method::PATCH if on_one => Verb::Patch,
            Method::DELETE if on_one && subresource.is_none() => Verb::Delete,
            Method::DELETE if !on_one => Verb::DeleteCollection,
            _ => return Err(Failure::method_not_allowed()),
        };
        // Objects of a namespaced kind are named within one.
        let needs_namespace = on_one || matches!(verb, Verb::Create | Verb::DeleteCollection);
        if kind.namespaced && needs_namespace && namespace.is_none() {
            return Err(Failure::method_not_allowed());
        }
        let shape = Shape::parse(&parts.headers, &query)?;
        Ok(Some(Self {
            kind,
            verb,
            namespace,
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            query,
            shape,
            headers: parts.headers.clone(),
            body,
        }))
    }

    pub(crate) fn content_type(&self) -> &str {
        let header = self.headers.get(header::CONTENT_TYPE);
        let text = header
            .and_then(|value| value.to_str().ok())
            .unwrap_or("application/json");
        text.split(';').next().unwrap_or_default().trim()
    }

    pub(crate) fn selector(&self) -> Result<Selector> {
        Selector::parse(
            self.kind,
            self.query.get("labelSelector").unwrap_or_default(),
            self.query.get("fieldSelector").unwrap_or_default(),
        )
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value> {
        match self.content_type() {
            "application/json" | "" | "*/*" => {}
            protobuf::MEDIA_TYPE if self.kind.builtin => {
                return protobuf::decode(&self.body).ok_or_else(|| {
                    Failure::unsupported_media_type(
                        "the local API reads protobuf of Namespaces, Secrets and ConfigMaps only; send JSON",
                    )
                });
            }
            other => {
                return Err(Failure::unsupported_media_type(format!(
                    "the body of the request was in an unknown format - accepted media types include: application/json (got {other})"
                )));
            }
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {error}",
                self.kind.kind
            ))
        })
    }

    /// Whether nothing is to be stored.
    pub(crate) fn dry_run(&self) -> Result<bool> {
        self.one_of("dryRun", &["All"]).map(|given| given.is_some())
    }

    pub(crate) fn field_validation(&self) -> Result<FieldValidation> {
        Ok(
            match self.one_of("fieldValidation", &["Ignore", "Strict", "Warn"])? {
                Some("Ignore") => FieldValidation::Ignore,
                Some("Strict") => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
        )
    }

    fn one_of(&self, option: &str, words: &[&str]) -> Result<Option<&str>> {
        let Some(given) = self.query.get(option).filter(|given| !given.is_empty()) else {
            return Ok(None);
        };
        if words.contains(&given) {
            return Ok(Some(given));
        }
        let kind = match self.verb {
            Verb::Create => "CreateOptions",
            Verb::Patch => "PatchOptions",
            Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
            _ => "UpdateOptions",
        };
        let supported: Vec<Value> = words.iter().map(|word| Value::from(*word)).collect();
        let error = FieldError::not_supported(option, given.into(), &supported);
        Err(Failure::invalid_named("meta.k8s.io", kind, "", &[error]))
    }
}

impl Shape {
    fn parse(headers: &HeaderMap, query: &Query) -> Result<Self> {
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("*/*");
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "*/*" | "application/*" | "") {
                continue;
            }
            let parameter = |wanted: &str| {
                range
                    .split(';')
                    .filter_map(|part| part.trim().split_once('='))
                    .find(|(name, _)| *name == wanted)
                    .map(|(_, value)| value)
            };
            match (parameter("as"), parameter("v")) {
                (None, _) => return Ok(Self::Object),
                (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("v1")) => {
                    return Ok(Self::Partial);
                }
                (Some("Table"), Some("v1")) => {
                    return Ok(Self::Table(match query.get("includeObject") {
                        Some("None") => Include::Nothing,
                        Some("Object") => Include::Object,
                        _ => Include::Metadata,
                    }));
                }
                _ => {}
            }
        }
        Err(Failure::new(
            http::StatusCode::NOT_ACCEPTABLE,
            "NotAcceptable",
            "only the following media types are accepted: application/json",
        ))
    }
}

/// A decoded query.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(
            form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "1" | "True" | "t"))
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!(
                    "strconv.ParseInt: parsing {}: invalid syntax",
                    crate::field::quote(text)
                ))
            }),
        }
    }

    /// `resourceVersion`; 0 when absent.
    pub(crate) fn version(&self) -> Result<Option<u64>> {
        let Some(text) = self.get("resourceVersion").filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            let error = FieldError::invalid(
                "resourceVersion",
                text,
                format!(
                    "strconv.ParseUint: parsing {}: invalid syntax",
                    crate::field::quote(text)
                ),
            );
            Failure::invalid_named("", "", "", &[error])
        })
    }
}
