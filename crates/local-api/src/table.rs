//! What `kubectl get` prints: `meta.k8s.io/v1` Table with a kind's columns.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::json_path::text_of;
use crate::kinds::{Cell, Column};

pub(crate) fn table(
    columns: &[Column],
    rows: Vec<Value>,
    metadata: Value,
    with_columns: bool,
) -> Value {
    let definitions: Value = if with_columns {
        columns
            .iter()
            .map(|column| {
                json!({
                    "name": column.name,
                    "type": column.kind,
                    "format": column.format,
                    "description": column.description,
                    "priority": column.priority,
                })
            })
            .collect()
    } else {
        Value::Null
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// One row; `shown` is what goes along with the cells, or null.
pub(crate) fn row(columns: &[Column], object: &Value, shown: Value) -> Value {
    let cells: Vec<Value> = columns.iter().map(|column| cell(column, object)).collect();
    let mut row = json!({"cells": cells});
    if !shown.is_null() {
        row["object"] = shown;
    }
    row
}

fn cell(column: &Column, object: &Value) -> Value {
    match &column.cell {
        Cell::Name => object["metadata"]["name"].clone(),
        Cell::Count(maps) => {
            let sizes = maps.iter().filter_map(|map| object.get(map)?.as_object());
            sizes.map(serde_json::Map::len).sum::<usize>().into()
        }
        Cell::Involved => {
            let involved = &object["involvedObject"];
            let kind = involved["kind"].as_str().unwrap_or_default().to_lowercase();
            format!("{kind}/{}", text_of(&involved["name"])).into()
        }
        Cell::Controller => {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let controller = owners
                .into_iter()
                .flatten()
                .find(|owner| owner["controller"] == true);
            match controller {
                Some(owner) => {
                    let kind = text_of(&owner["kind"]).to_lowercase();
                    format!("{kind}/{}", text_of(&owner["name"])).into()
                }
                None => "<none>".into(),
            }
        }
        Cell::Path(path) => match path.first(object) {
            None | Some(Value::Null) => Value::Null,
            Some(value) => typed(&column.kind, value),
        },
    }
}

fn typed(kind: &str, value: &Value) -> Value {
    match (kind, value) {
        ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", value) => text_of(value).into(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(at) => age(Timestamp::now().duration_since(at)).into(),
            Err(_) => "<unknown>".into(),
        },
        _ => Value::Null,
    }
}

/// A duration for people, with two units at most, as kubectl prints ages.
fn age(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    if seconds < 120 {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, "m", seconds % 60, "s")
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if hours < 192 {
        two(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else if days < 2920 {
        two(days / 365, "y", days % 365, "d")
    } else {
        format!("{}y", days / 365)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (660, "11m"),
            (10_860, "3h1m"),
            (100_000, "27h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (100_000_000, "3y62d"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
    }
}
