//! What is served: groups, resources, version, and OpenAPI for custom kinds.

use serde_json::{Value, json};

use crate::kinds::Kind;

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The answer to a discovery path, or `None` when it is none.
pub(crate) fn answer(kinds: &[Kind], path: &str, accept: &str, address: &str) -> Option<Value> {
    let aggregated = accept.contains("as=APIGroupDiscoveryList");
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Some(version()),
        ["api"] if aggregated => Some(aggregate(kinds, |kind| kind.group.is_empty())),
        ["apis"] if aggregated => Some(aggregate(kinds, |kind| !kind.group.is_empty())),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        })),
        ["apis"] => {
            let groups: Vec<_> = groups(kinds)
                .into_iter()
                .map(|(group, versions)| group_json(&group, &versions))
                .collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["api", version] => resources(kinds, "", version),
        ["apis", group] => {
            let (group, versions) = groups(kinds).into_iter().find(|(name, _)| name == group)?;
            let mut json = group_json(&group, &versions);
            json["kind"] = json!("APIGroup");
            json["apiVersion"] = json!("v1");
            Some(json)
        }
        ["apis", group, version] => resources(kinds, group, version),
        ["openapi", "v3"] => {
            let paths: serde_json::Map<_, _> = groups(kinds)
                .into_iter()
                .flat_map(|(group, versions)| {
                    versions
                        .into_iter()
                        .map(move |version| format!("apis/{group}/{version}"))
                })
                .map(|path| {
                    (
                        path.clone(),
                        json!({"serverRelativeURL": format!("/openapi/v3/{path}")}),
                    )
                })
                .collect();
            Some(json!({"paths": paths}))
        }
        ["openapi", "v3", "apis", group, version] => Some(open_api(kinds, group, version)),
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "33", "gitVersion": "v1.33.0+kubezap-dev", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

/// Named groups with their versions, in the order in which they are served.
fn groups(kinds: &[Kind]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version) => {}
            Some((_, versions)) => versions.push(kind.version.clone()),
            None => groups.push((kind.group.clone(), vec![kind.version.clone()])),
        }
    }
    groups
}

fn group_json(group: &str, versions: &[String]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

fn resources(kinds: &[Kind], group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
    {
        resources.push(json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": VERBS, "shortNames": kind.short_names, "categories": kind.categories,
        }));
        if kind.status {
            resources.push(json!({
                "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!resources.is_empty()).then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}))
}

fn aggregate(kinds: &[Kind], mine: impl Fn(&Kind) -> bool) -> Value {
    let core = kinds
        .iter()
        .filter(|kind| kind.group.is_empty() && mine(kind))
        .map(|_| (String::new(), vec!["v1".to_owned()]))
        .take(1);
    let named = groups(kinds)
        .into_iter()
        .filter(|(group, _)| kinds.iter().any(|kind| kind.group == *group && mine(kind)));
    let items: Vec<_> = core
        .chain(named)
        .map(|(group, versions)| {
            let versions: Vec<_> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<_> = kinds
                        .iter()
                        .filter(|kind| kind.group == group && kind.version == *version)
                        .map(|kind| aggregated_resource(kind, &group, version))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": group, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &Kind, group: &str, version: &str) -> Value {
    let response = json!({"group": group, "version": version, "kind": kind.kind});
    let mut resource = json!({
        "resource": kind.plural, "responseKind": response, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": VERBS, "shortNames": kind.short_names, "categories": kind.categories,
    });
    if kind.status {
        resource["subresources"] = json!([{"subresource": "status", "responseKind": response, "verbs": ["get", "patch", "update"]}]);
    }
    resource
}

/// Schemas, and the paths that tell kubectl which query parameters are understood.
fn open_api(kinds: &[Kind], group: &str, version: &str) -> Value {
    let mut schemas = serde_json::Map::new();
    let mut paths = serde_json::Map::new();
    let reversed = group.split('.').rev().collect::<Vec<_>>().join(".");
    for kind in kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
    {
        let identity = json!([{"group": group, "version": version, "kind": kind.kind}]);
        let name = format!("{reversed}.{version}.{}", kind.kind);
        let mut schema = kind
            .schema
            .as_ref()
            .map_or_else(|| json!({"type": "object"}), |schema| schema.json().clone());
        schema["x-kubernetes-group-version-kind"] = identity;
        schema["properties"]["apiVersion"] = json!({"type": "string"});
        schema["properties"]["kind"] = json!({"type": "string"});
        schema["properties"]["metadata"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        schemas.insert(name.clone(), schema);
        let scope = if kind.namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let operation = |action: &str| {
            json!({
                "parameters": [
                    {"name": "dryRun", "in": "query", "schema": {"type": "string"}},
                    {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}}}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind.kind},
            })
        };
        paths.insert(
            format!("/apis/{group}/{version}{scope}/{}", kind.plural),
            json!({"get": operation("list"), "post": operation("post")}),
        );
        paths.insert(
            format!("/apis/{group}/{version}{scope}/{}/{{name}}", kind.plural),
            json!({"get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete")}),
        );
    }
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.33.0"}, "paths": paths, "components": {"schemas": schemas}})
}
