//! What the local API serves: kinds built in, and those of CustomResourceDefinitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::schema::Schema;

/// One kind of one version.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Whether `.status` is written through its own subresource.
    pub(crate) status: bool,
    /// The schema of a custom kind; built-in kinds are taken as they are.
    pub(crate) schema: Option<Schema>,
    pub(crate) columns: Vec<Column>,
    /// Paths that field selectors may name, beside `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: Vec<String>,
}

/// A printer column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_: String,
    pub(crate) description: String,
    pub(crate) priority: i32,
    /// A simple JSONPath such as `.spec.flowRef.name`.
    pub(crate) path: String,
}

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `triggers.automation.kubezap.io`, or `secrets` for the core group.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    fn built_in(
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        short: &[&str],
        namespaced: bool,
    ) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
            categories: Vec::new(),
            namespaced,
            status: kind == "Namespace",
            schema: None,
            columns: Vec::new(),
            selectable: match kind {
                "Secret" => vec!["type".to_owned()],
                "Event" => [
                    "involvedObject.kind",
                    "involvedObject.name",
                    "involvedObject.namespace",
                    "involvedObject.uid",
                    "reason",
                    "type",
                ]
                .map(str::to_owned)
                .to_vec(),
                _ => Vec::new(),
            },
        }
    }
}

/// Every kind that is served: the built-in ones, then those of the definitions.
pub(crate) fn all(definitions: &[CustomResourceDefinition]) -> Vec<Kind> {
    let mut kinds = vec![
        Kind::built_in("", "v1", "Namespace", "namespaces", &["ns"], false),
        Kind::built_in("", "v1", "Secret", "secrets", &[], true),
        Kind::built_in("", "v1", "ConfigMap", "configmaps", &["cm"], true),
        Kind::built_in("", "v1", "Event", "events", &["ev"], true),
        Kind::built_in("coordination.k8s.io", "v1", "Lease", "leases", &[], true),
        Kind::built_in(
            "apps",
            "v1",
            "ControllerRevision",
            "controllerrevisions",
            &[],
            true,
        ),
    ];
    kinds.extend(definitions.iter().flat_map(custom));
    kinds
}

fn custom(definition: &CustomResourceDefinition) -> Vec<Kind> {
    let spec = &definition.spec;
    let versions = spec.versions.iter().filter(|version| version.served);
    versions
        .map(|version| {
            let schema = version
                .schema
                .as_ref()
                .and_then(|schema| schema.open_api_v3_schema.as_ref());
            let schema = serde_json::to_value(schema).unwrap_or(Value::Null);
            Kind {
                group: spec.group.clone(),
                version: version.name.clone(),
                kind: spec.names.kind.clone(),
                plural: spec.names.plural.clone(),
                singular: spec
                    .names
                    .singular
                    .clone()
                    .unwrap_or_else(|| spec.names.kind.to_lowercase()),
                short_names: spec.names.short_names.clone().unwrap_or_default(),
                categories: spec.names.categories.clone().unwrap_or_default(),
                namespaced: spec.scope == "Namespaced",
                status: version
                    .subresources
                    .as_ref()
                    .is_some_and(|subresources| subresources.status.is_some()),
                schema: Some(Schema::new(schema)),
                columns: version
                    .additional_printer_columns
                    .iter()
                    .flatten()
                    .map(|column| Column {
                        name: column.name.clone(),
                        type_: column.type_.clone(),
                        description: column.description.clone().unwrap_or_default(),
                        priority: column.priority.unwrap_or_default(),
                        path: column.json_path.clone(),
                    })
                    .collect(),
                selectable: version
                    .selectable_fields
                    .iter()
                    .flatten()
                    .map(|field| field.json_path.trim_start_matches('.').to_owned())
                    .collect(),
            }
        })
        .collect()
}

/// The value at a simple path such as `.spec.flowRef.name` or `status.conditions[?(@.type=="Ready")].status`.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix("[?(@.") {
            let (test, after) = filter.split_once(")]")?;
            let (key, wanted) = test.split_once("==")?;
            let wanted = wanted.trim_matches(['"', '\'']);
            value = value
                .as_array()?
                .iter()
                .find(|item| item[key.trim()] == wanted)?;
            rest = after.trim_start_matches('.');
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            value = value.get(&rest[..end])?;
            rest = rest[end..].trim_start_matches('.');
        }
    }
    Some(value)
}
