//! What a request asks for, read from its method, path and query.

use std::collections::BTreeMap;

use http::{Method, Uri};

use crate::errors::Refusal;
use crate::kinds::Kind;
use crate::selector::Selector;
use crate::store::KindIndex;

/// A request for a resource.
#[derive(Debug)]
pub(crate) struct ResourceRequest {
    pub(crate) kind: KindIndex,
    /// `None` means all namespaces, or a cluster-wide kind.
    pub(crate) namespace: Option<String>,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Whether `/status` is meant.
    pub(crate) status: bool,
    pub(crate) verb: Verb,
    pub(crate) query: Query,
}

/// The API verb, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// Changes of a collection.
    Watch,
    /// A new object.
    Create,
    /// A whole object in place of another.
    Update,
    /// A part of an object.
    Patch,
    /// One object goes.
    Delete,
    /// A collection goes.
    DeleteCollection,
}

impl Verb {
    /// As RBAC and audit logs spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}

/// Query parameters.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn read(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.get(name)
            .map(|value| {
                value.parse().map_err(|_| {
                    Refusal::bad_request(format!("invalid value for {name}: \"{value}\""))
                })
            })
            .transpose()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.get("dryRun") == Some("All")
    }

    pub(crate) fn selector(&self, kind: &Kind) -> Result<Selector, Refusal> {
        Selector::read(
            self.get("labelSelector").unwrap_or_default(),
            self.get("fieldSelector").unwrap_or_default(),
            kind,
        )
    }
}

/// Finds the resource that a path names; `None` for paths that name none.
pub(crate) fn read(
    kinds: &[Kind],
    method: &Method,
    uri: &Uri,
) -> Option<Result<ResourceRequest, Refusal>> {
    let path = uri.path().trim_matches('/');
    let mut parts = path.split('/');
    let (group, version) = match parts.next()? {
        "api" => ("", parts.next()?),
        "apis" => (parts.next()?, parts.next()?),
        _ => return None,
    };
    let rest: Vec<&str> = parts.collect();
    let find = |plural: &str| {
        kinds.iter().position(|kind| {
            kind.group == group && kind.version == version && kind.plural == plural
        })
    };
    let (namespace, plural, tail) = match rest.as_slice() {
        ["namespaces", namespace, plural, tail @ ..]
            if *plural != "status" && *plural != "finalize" =>
        {
            (Some((*namespace).to_owned()), *plural, tail)
        }
        [plural, tail @ ..] => (None, *plural, tail),
        [] => return None,
    };
    let Some(kind) = find(plural) else {
        return Some(Err(Refusal::no_such_path()));
    };
    let (name, status) = match tail {
        [] => ("", false),
        [name] => (*name, false),
        [name, "status"] if kinds[kind].status => (*name, true),
        _ => return Some(Err(Refusal::no_such_path())),
    };
    if namespace.is_some() != kinds[kind].namespaced && !(namespace.is_none() && name.is_empty()) {
        return Some(Err(Refusal::no_such_path()));
    }
    let query = Query::read(uri);
    let verb = match (method.as_str(), name.is_empty()) {
        ("GET", _) if query.is_true("watch") => Verb::Watch,
        ("GET", true) => Verb::List,
        ("GET", false) => Verb::Get,
        ("POST", true) => Verb::Create,
        ("PUT", false) => Verb::Update,
        ("PATCH", false) => Verb::Patch,
        ("DELETE", true) => Verb::DeleteCollection,
        ("DELETE", false) => Verb::Delete,
        _ => return Some(Err(Refusal::method_not_allowed())),
    };
    if verb == Verb::Create && kinds[kind].namespaced && namespace.is_none() {
        return Some(Err(Refusal::method_not_allowed()));
    }
    if status && !matches!(verb, Verb::Get | Verb::Update | Verb::Patch) {
        return Some(Err(Refusal::method_not_allowed()));
    }
    Some(Ok(ResourceRequest {
        kind,
        namespace,
        name: name.to_owned(),
        status,
        verb,
        query,
    }))
}
