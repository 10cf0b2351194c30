//! The kinds that are served: those of CustomResourceDefinitions and a few of Kubernetes' own.

mod builtin;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::admission::schema::Schema;
use crate::json_path::JsonPath;

/// Position of a kind in the [`Registry`]; names its table in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KindId(pub(crate) usize);

/// One served kind.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) id: KindId,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Whether `status` is written by the subresource alone.
    pub(crate) has_status: bool,
    /// A kind of Kubernetes itself: decoded into a type there, so a wrong type is an error of decoding.
    pub(crate) builtin: bool,
    pub(crate) schema: Schema,
    /// The schema as published.
    pub(crate) document: Value,
    pub(crate) columns: Vec<Column>,
    /// Field selectors beside `metadata.name` and `metadata.namespace`: name and path.
    pub(crate) selectable: Vec<(String, JsonPath)>,
    /// Set on a kind that shows the objects of another one under other field names.
    pub(crate) view: Option<View>,
}

/// Another shape of the objects of one kind: `events.k8s.io` of core Events.
#[derive(Debug)]
pub(crate) struct View {
    /// The kind whose objects are shown.
    pub(crate) of: KindId,
    /// Field names: here, there.
    pub(crate) renames: &'static [(&'static str, &'static str)],
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) cell: Cell,
}

/// Where a column's value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Name,
    Path(JsonPath),
    /// The number of entries in the maps named.
    Count(&'static [&'static str]),
    /// `kind/name` of an Event's object.
    Involved,
    /// The owner that controls.
    Controller,
}

impl Kind {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `flows.automation.kubezap.io`, `secrets`.
    pub(crate) fn qualified_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The kind under which its objects are stored.
    pub(crate) fn storage(&self) -> KindId {
        self.view.as_ref().map_or(self.id, |view| view.of)
    }

    /// An object of the stored shape, as this kind shows it.
    pub(crate) fn show(&self, stored: &Value) -> Value {
        let mut object = stored.clone();
        if let Some(view) = &self.view {
            object["apiVersion"] = self.api_version().into();
            rename(
                &mut object,
                view.renames.iter().map(|(here, there)| (*there, *here)),
            );
        }
        object
    }

    /// Turns an object as this kind shows it into the stored shape.
    pub(crate) fn unshow(&self, registry: &Registry, object: &mut Value) {
        if let Some(view) = &self.view {
            object["apiVersion"] = registry.get(view.of).api_version().into();
            rename(object, view.renames.iter().copied());
        }
    }
}

fn rename<'a>(object: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    for (from, to) in names {
        if let Some(value) = map.shift_remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}

/// All served kinds.
#[derive(Debug)]
pub(crate) struct Registry {
    kinds: Vec<Kind>,
    by_path: BTreeMap<(String, String, String), KindId>,
    by_owner: BTreeMap<(String, String), KindId>,
}

impl Registry {
    /// Serves the built-in kinds and those that the definitions describe.
    pub(crate) fn new(definitions: &[CustomResourceDefinition]) -> Self {
        let mut kinds = builtin::kinds();
        for definition in definitions {
            kinds.extend(from_definition(definition));
        }
        for (at, kind) in kinds.iter_mut().enumerate() {
            kind.id = KindId(at);
        }
        let by_path = kinds
            .iter()
            .map(|kind| {
                let path = (
                    kind.group.clone(),
                    kind.version.clone(),
                    kind.plural.clone(),
                );
                (path, kind.id)
            })
            .collect();
        let by_owner = kinds
            .iter()
            .map(|kind| ((kind.api_version(), kind.kind.clone()), kind.storage()))
            .collect();
        Self {
            kinds,
            by_path,
            by_owner,
        }
    }

    pub(crate) fn get(&self, id: KindId) -> &Kind {
        &self.kinds[id.0]
    }

    pub(crate) fn all(&self) -> &[Kind] {
        &self.kinds
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        let path = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.by_path.get(&path).map(|id| self.get(*id))
    }

    /// The kind that an owner reference names; `None` for one that is not served.
    pub(crate) fn owner(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.by_owner
            .get(&(api_version.to_owned(), kind.to_owned()))
            .map(|id| self.get(*id))
    }

    pub(crate) fn namespaces(&self) -> &Kind {
        self.find("", "v1", "namespaces").unwrap_or(&self.kinds[0])
    }

    /// Groups and versions in the order of discovery.
    pub(crate) fn group_versions(&self) -> Vec<(&str, &str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for kind in &self.kinds {
            let entry = (kind.group.as_str(), kind.version.as_str());
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
        found
    }

    pub(crate) fn of_group<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Kind> {
        self.kinds
            .iter()
            .filter(move |kind| kind.group == group && kind.version == version)
    }
}

/// The served versions of a definition.
fn from_definition(definition: &CustomResourceDefinition) -> Vec<Kind> {
    let spec = &definition.spec;
    let names = &spec.names;
    let mut kinds = Vec::new();
    for version in spec.versions.iter().filter(|version| version.served) {
        let document = version
            .schema
            .as_ref()
            .and_then(|schema| schema.open_api_v3_schema.as_ref())
            .and_then(|schema| serde_json::to_value(schema).ok())
            .unwrap_or_else(|| json!({"type": "object"}));
        let mut columns = vec![name_column()];
        match &version.additional_printer_columns {
            Some(given) => {
                columns.extend(given.iter().map(|column| Column {
                    name: column.name.clone(),
                    kind: column.type_.clone(),
                    format: column.format.clone().unwrap_or_default(),
                    description: column.description.clone().unwrap_or_default(),
                    priority: i64::from(column.priority.unwrap_or(0)),
                    cell: Cell::Path(JsonPath::parse(&column.json_path)),
                }));
            }
            None => columns.push(age_column()),
        }
        kinds.push(Kind {
            id: KindId(0),
            group: spec.group.clone(),
            version: version.name.clone(),
            kind: names.kind.clone(),
            plural: names.plural.clone(),
            singular: names
                .singular
                .clone()
                .unwrap_or_else(|| names.kind.to_lowercase()),
            short_names: names.short_names.clone().unwrap_or_default(),
            categories: names.categories.clone().unwrap_or_default(),
            namespaced: spec.scope == "Namespaced",
            has_status: version
                .subresources
                .as_ref()
                .is_some_and(|subresources| subresources.status.is_some()),
            builtin: false,
            schema: Schema::compile(&document),
            document,
            columns,
            selectable: version
                .selectable_fields
                .iter()
                .flatten()
                .map(|field| {
                    let name = field.json_path.trim_start_matches('.').to_owned();
                    (name, JsonPath::parse(&field.json_path))
                })
                .collect(),
            view: None,
        });
    }
    kinds
}

pub(crate) fn name_column() -> Column {
    Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: "Name must be unique within a namespace.".to_owned(),
        priority: 0,
        cell: Cell::Name,
    }
}

pub(crate) fn age_column() -> Column {
    Column {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        format: String::new(),
        description: "When the object was made.".to_owned(),
        priority: 0,
        cell: Cell::Path(JsonPath::parse(".metadata.creationTimestamp")),
    }
}
