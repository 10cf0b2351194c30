//! Kubernetes' own kinds, as far as KubeZap uses them.

use serde_json::{Value, json};

use super::{Cell, Column, Kind, KindId, View, age_column, name_column};
use crate::admission::schema::Schema;
use crate::json_path::JsonPath;

/// Field names of `events.k8s.io/v1` beside those of core Events.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Makes the built-in kinds; Namespace comes first.
pub(super) fn kinds() -> Vec<Kind> {
    let mut namespace = kind("", "v1", "Namespace", "namespaces", &["ns"], namespace());
    namespace.namespaced = false;
    namespace.has_status = true;
    namespace.columns = vec![
        name_column(),
        path("Status", "string", ".status.phase"),
        age_column(),
    ];
    namespace.selectable = selectable(&["status.phase"]);

    let mut secret = kind("", "v1", "Secret", "secrets", &[], secret());
    secret.columns = vec![
        name_column(),
        path("Type", "string", ".type"),
        column("Data", "integer", Cell::Count(&["data"])),
        age_column(),
    ];
    secret.selectable = selectable(&["type"]);

    let mut config_map = kind("", "v1", "ConfigMap", "configmaps", &["cm"], config_map());
    config_map.columns = vec![
        name_column(),
        column("Data", "integer", Cell::Count(&["data", "binaryData"])),
        age_column(),
    ];

    let mut event = kind("", "v1", "Event", "events", &["ev"], event());
    event.columns = vec![
        path("Last Seen", "date", ".lastTimestamp"),
        path("Type", "string", ".type"),
        path("Reason", "string", ".reason"),
        column("Object", "string", Cell::Involved),
        path("Message", "string", ".message"),
        Column {
            priority: 1,
            ..name_column()
        },
    ];
    event.selectable = selectable(&[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "type",
    ]);
    event
        .selectable
        .push(("source".to_owned(), JsonPath::parse(".source.component")));

    let mut revision = kind(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
        &[],
        controller_revision(),
    );
    revision.columns = vec![
        name_column(),
        column("Controller", "string", Cell::Controller),
        path("Revision", "string", ".revision"),
        age_column(),
    ];

    let mut lease = kind("coordination.k8s.io", "v1", "Lease", "leases", &[], lease());
    lease.columns = vec![
        name_column(),
        path("Holder", "string", ".spec.holderIdentity"),
        age_column(),
    ];

    let mut events_v1 = kind("events.k8s.io", "v1", "Event", "events", &["ev"], {
        let mut document = self::event();
        if let Some(properties) = document["properties"].as_object_mut() {
            for (here, there) in EVENT_FIELDS {
                if let Some(property) = properties.shift_remove(*there) {
                    properties.insert((*here).to_owned(), property);
                }
            }
        }
        document
    });
    events_v1.columns = event.columns.clone();
    // The position of core Events in this list.
    events_v1.view = Some(View {
        of: KindId(3),
        renames: EVENT_FIELDS,
    });

    vec![
        namespace, secret, config_map, event, revision, lease, events_v1,
    ]
}

fn kind(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    short_names: &[&str],
    mut document: Value,
) -> Kind {
    if let Some(properties) = document["properties"].as_object_mut() {
        for (key, schema) in [
            ("apiVersion", json!({"type": "string"})),
            ("kind", json!({"type": "string"})),
            ("metadata", json!({"type": "object"})),
        ] {
            properties.insert(key.to_owned(), schema);
        }
    }
    Kind {
        id: KindId(0),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: short_names.iter().map(|name| (*name).to_owned()).collect(),
        categories: Vec::new(),
        namespaced: true,
        has_status: false,
        builtin: true,
        schema: Schema::compile(&document),
        document,
        columns: Vec::new(),
        selectable: Vec::new(),
        view: None,
    }
}

fn column(name: &str, kind: &str, cell: Cell) -> Column {
    Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        cell,
    }
}

fn path(name: &str, kind: &str, path: &str) -> Column {
    column(name, kind, Cell::Path(JsonPath::parse(path)))
}

fn selectable(fields: &[&str]) -> Vec<(String, JsonPath)> {
    fields
        .iter()
        .map(|field| ((*field).to_owned(), JsonPath::parse(&format!(".{field}"))))
        .collect()
}

fn string_map() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn bytes_map() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string", "format": "byte"}})
}

fn namespace() -> Value {
    json!({
        "type": "object",
        "description": "Namespace provides a scope for Names.",
        "properties": {
            "spec": {"type": "object", "properties": {
                "finalizers": {"type": "array", "items": {"type": "string"}},
            }},
            "status": {"type": "object", "properties": {
                "phase": {"type": "string"},
                "conditions": {"type": "array", "items": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }},
        },
    })
}

fn secret() -> Value {
    json!({
        "type": "object",
        "description": "Secret holds secret data of a certain type.",
        "properties": {
            "data": bytes_map(),
            "stringData": string_map(),
            "type": {"type": "string"},
            "immutable": {"type": "boolean"},
        },
    })
}

fn config_map() -> Value {
    json!({
        "type": "object",
        "description": "ConfigMap holds configuration data.",
        "properties": {
            "data": string_map(),
            "binaryData": bytes_map(),
            "immutable": {"type": "boolean"},
        },
    })
}

fn event() -> Value {
    let object = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"},
        "fieldPath": {"type": "string"},
        "kind": {"type": "string"},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "resourceVersion": {"type": "string"},
        "uid": {"type": "string"},
    }});
    json!({
        "type": "object",
        "description": "Event is a report of something that happened.",
        "properties": {
            "involvedObject": object,
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "source": {"type": "object", "properties": {
                "component": {"type": "string"},
                "host": {"type": "string"},
            }},
            "firstTimestamp": {"type": "string", "format": "date-time"},
            "lastTimestamp": {"type": "string", "format": "date-time"},
            "count": {"type": "integer", "format": "int32"},
            "type": {"type": "string"},
            "eventTime": {"type": "string", "format": "date-time"},
            "series": {"type": "object", "properties": {
                "count": {"type": "integer", "format": "int32"},
                "lastObservedTime": {"type": "string", "format": "date-time"},
            }},
            "action": {"type": "string"},
            "related": object,
            "reportingComponent": {"type": "string"},
            "reportingInstance": {"type": "string"},
        },
    })
}

fn lease() -> Value {
    json!({
        "type": "object",
        "description": "Lease defines a lease concept.",
        "properties": {"spec": {"type": "object", "properties": {
            "holderIdentity": {"type": "string"},
            "leaseDurationSeconds": {"type": "integer", "format": "int32"},
            "acquireTime": {"type": "string", "format": "date-time"},
            "renewTime": {"type": "string", "format": "date-time"},
            "leaseTransitions": {"type": "integer", "format": "int32"},
            "preferredHolder": {"type": "string"},
            "strategy": {"type": "string"},
        }}},
    })
}

fn controller_revision() -> Value {
    json!({
        "type": "object",
        "description": "ControllerRevision implements an immutable snapshot of state data.",
        "required": ["revision"],
        "properties": {
            "data": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "revision": {"type": "integer", "format": "int64"},
        },
    })
}
