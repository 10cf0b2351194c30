//! What is served: groups, versions and resources, plain and aggregated, and the server's version.

use http::HeaderMap;
use http::header;
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Registry};

/// What kubectl prints as the server's version: that of the API the kinds are written for.
const MINOR: &str = "33";

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Answers a discovery path; `None` for any other. The second part tells that the answer is aggregated.
pub(crate) fn answer(
    registry: &Registry,
    path: &str,
    headers: &HeaderMap,
) -> Option<(Value, bool)> {
    let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
    let aggregated = wants_aggregated(headers);
    Some(match words.as_slice() {
        ["version"] => (version(), false),
        ["api"] if aggregated => (aggregate(registry, true), true),
        ["apis"] if aggregated => (aggregate(registry, false), true),
        ["api"] => (
            json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [],
            }),
            false,
        ),
        ["apis"] => (
            json!({
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": groups(registry, None),
            }),
            false,
        ),
        ["api", version] => (resources(registry, "", version)?, false),
        ["apis", group] => {
            let mut found = groups(registry, Some(group)).into_iter().next()?;
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            (found, false)
        }
        ["apis", group, version] => (resources(registry, group, version)?, false),
        _ => return None,
    })
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let first = accept
        .and_then(|accept| accept.split(',').next())
        .unwrap_or_default();
    first.contains("as=APIGroupDiscoveryList")
        && first.contains("v=v2")
        && !first.contains("v=v2beta1")
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.0+kubezap"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

fn groups(registry: &Registry, only: Option<&str>) -> Vec<Value> {
    registry
        .group_versions()
        .into_iter()
        .filter(|(group, _)| !group.is_empty() && only.is_none_or(|only| only == *group))
        .map(|(group, version)| {
            let entry = json!({"groupVersion": format!("{group}/{version}"), "version": version});
            json!({"name": group, "versions": [entry], "preferredVersion": entry})
        })
        .collect()
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    let mut api_version = None;
    for kind in registry.of_group(group, version) {
        api_version = Some(kind.api_version());
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": verbs(kind),
        });
        for (key, list) in [
            ("shortNames", &kind.short_names),
            ("categories", &kind.categories),
        ] {
            if !list.is_empty() {
                resource[key] = list.as_slice().into();
            }
        }
        resources.push(resource);
        if kind.has_status {
            resources.push(json!({
                "name": format!("{}/status", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": api_version?,
        "resources": resources,
    }))
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    // The real server has no deletecollection of namespaces either.
    VERBS
        .iter()
        .copied()
        .filter(|verb| kind.namespaced || *verb != "deletecollection")
        .collect()
}

fn aggregate(registry: &Registry, core: bool) -> Value {
    let items: Vec<Value> = registry
        .group_versions()
        .into_iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, version)| {
            let resources: Vec<Value> = registry
                .of_group(group, version)
                .map(aggregated_resource)
                .collect();
            let mut metadata = Map::new();
            if !group.is_empty() {
                metadata.insert("name".to_owned(), group.into());
            }
            json!({
                "metadata": metadata,
                "versions": [{
                    "version": version,
                    "resources": resources,
                    "freshness": "Current",
                }],
            })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let response = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    for (key, list) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !list.is_empty() {
            resource[key] = list.as_slice().into();
        }
    }
    if kind.has_status {
        resource["subresources"] = json!([{
            "subresource": "status",
            "responseKind": response,
            "verbs": ["get", "patch", "update"],
        }]);
    }
    resource
}
