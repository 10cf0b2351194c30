//! `Table`, which kubectl prints.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Column, Kind, at};

/// Whether the client asks for a table, by its Accept header.
pub(crate) fn is_asked(accept: &str) -> bool {
    accept
        .split(',')
        .next()
        .is_some_and(|first| first.contains("as=Table"))
}

/// A table of objects.
pub(crate) fn of(kind: &Kind, objects: &[&Value], list_metadata: Value, now: Timestamp) -> Value {
    let columns = columns(kind);
    let definitions: Vec<_> = columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": column.type_, "format": if column.name == "Name" { "name" } else { "" },
                "description": column.description, "priority": column.priority,
            })
        })
        .collect();
    let rows: Vec<_> = objects
        .iter()
        .map(|object| {
            let cells: Vec<_> = columns.iter().map(|column| cell(column, object, now)).collect();
            json!({
                "cells": cells,
                "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]},
            })
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata, "columnDefinitions": definitions, "rows": rows})
}

fn columns(kind: &Kind) -> Vec<Column> {
    let column = |name: &str, type_: &str, path: &str| Column {
        name: name.to_owned(),
        type_: type_.to_owned(),
        description: String::new(),
        priority: 0,
        path: path.to_owned(),
    };
    let mut columns = vec![column("Name", "string", ".metadata.name")];
    match kind.kind.as_str() {
        "Namespace" => columns.push(column("Status", "string", ".status.phase")),
        "Secret" => columns.push(column("Type", "string", ".type")),
        "Event" => columns.extend([
            column("Type", "string", ".type"),
            column("Reason", "string", ".reason"),
            column("Object", "string", ".involvedObject.name"),
            column("Message", "string", ".message"),
        ]),
        "Lease" => columns.push(column("Holder", "string", ".spec.holderIdentity")),
        "ControllerRevision" => columns.push(column("Revision", "integer", ".revision")),
        _ => {}
    }
    columns.extend(kind.columns.iter().cloned());
    if !columns.iter().any(|column| column.type_ == "date") {
        columns.push(column("Age", "date", ".metadata.creationTimestamp"));
    }
    columns
}

fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    match (at(object, &column.path), column.type_.as_str()) {
        (None | Some(Value::Null), "date") => json!("<unknown>"),
        (None, _) => Value::Null,
        (Some(Value::String(text)), "date") => match text.parse::<Timestamp>() {
            Ok(time) => json!(age(now.duration_since(time).as_secs())),
            Err(_) => json!("<invalid>"),
        },
        (Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null)), _) => {
            value.clone()
        }
        (Some(other), _) => json!(other.to_string()),
    }
}

/// Time passed as `kubectl` writes it.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..600 => match seconds % 60 {
            0 => format!("{}m", seconds / 60),
            rest => format!("{}m{rest}s", seconds / 60),
        },
        seconds @ 600..10_800 => format!("{}m", seconds / 60),
        seconds @ 10_800..28_800 => match seconds % 3_600 / 60 {
            0 => format!("{}h", seconds / 3_600),
            rest => format!("{}h{rest}m", seconds / 3_600),
        },
        seconds @ 28_800..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
