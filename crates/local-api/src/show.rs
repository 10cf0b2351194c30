//! Objects as a client asked to see them: whole, metadata alone, or as rows of a table.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Registry};
use crate::request::{Include, Shape};
use crate::store::Stored;
use crate::table;

/// Shows single objects and lists of one kind in one shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show<'r> {
    pub(crate) kind: &'r Kind,
    pub(crate) shape: Shape,
}

/// A list's own metadata.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) version: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<u64>,
}

impl ListMeta {
    fn value(&self) -> Value {
        let mut metadata = Map::new();
        metadata.insert(
            "resourceVersion".to_owned(),
            self.version.to_string().into(),
        );
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        Value::Object(metadata)
    }
}

impl Show<'_> {
    pub(crate) fn one(&self, object: &Stored) -> Bytes {
        match self.shape {
            Shape::Object if self.kind.view.is_none() => object.json(),
            Shape::Object => self.kind.show(&object.value).to_string().into(),
            Shape::Partial => partial(&object.value).to_string().into(),
            Shape::Table(include) => {
                let metadata = json!({"resourceVersion": object.version.to_string()});
                self.table(&[object], include, metadata, true)
            }
        }
    }

    /// One object of a watch; a table's columns come with its first event only.
    pub(crate) fn event(&self, object: &Stored, first: bool) -> Bytes {
        match self.shape {
            Shape::Table(include) => {
                let metadata = json!({"resourceVersion": object.version.to_string()});
                self.table(&[object], include, metadata, first)
            }
            _ => self.one(object),
        }
    }

    pub(crate) fn list(&self, objects: &[Arc<Stored>], meta: &ListMeta) -> Bytes {
        let (api_version, kind) = match self.shape {
            Shape::Table(include) => {
                let objects: Vec<&Stored> = objects.iter().map(Arc::as_ref).collect();
                return self.table(&objects, include, meta.value(), true);
            }
            Shape::Partial => (
                "meta.k8s.io/v1".to_owned(),
                "PartialObjectMetadataList".to_owned(),
            ),
            Shape::Object => (self.kind.api_version(), format!("{}List", self.kind.kind)),
        };
        let mut text = format!(
            "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\",\"metadata\":{},\"items\":[",
            meta.value()
        )
        .into_bytes();
        for (at, object) in objects.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.one(object));
        }
        text.extend_from_slice(b"]}");
        text.into()
    }

    fn table(
        &self,
        objects: &[&Stored],
        include: Include,
        metadata: Value,
        columns: bool,
    ) -> Bytes {
        let rows = objects
            .iter()
            .map(|object| {
                let shown = match include {
                    Include::Nothing => Value::Null,
                    Include::Metadata => partial(&object.value),
                    Include::Object => self.kind.show(&object.value),
                };
                table::row(&self.kind.columns, &object.value, shown)
            })
            .collect();
        table::table(&self.kind.columns, rows, metadata, columns)
            .to_string()
            .into()
    }

    /// A bookmark's object.
    pub(crate) fn bookmark(&self, version: u64, initial_end: bool) -> Bytes {
        let mut metadata =
            json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        match self.shape {
            Shape::Table(_) => {
                let object = json!({
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata,
                });
                let row = json!({"cells": [], "object": object});
                let list = json!({"resourceVersion": version.to_string()});
                table::table(&self.kind.columns, vec![row], list, false)
                    .to_string()
                    .into()
            }
            Shape::Partial => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            })
            .to_string()
            .into(),
            Shape::Object => json!({
                "kind": self.kind.kind,
                "apiVersion": self.kind.api_version(),
                "metadata": metadata,
            })
            .to_string()
            .into(),
        }
    }
}

fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// The kind whose columns and selectors hold for stored objects.
pub(crate) fn storage<'r>(registry: &'r Registry, kind: &Kind) -> &'r Kind {
    registry.get(kind.storage())
}
