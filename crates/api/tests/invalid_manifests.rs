//! `invalid.yaml`: what is wrong with a manifest, in the words a user sees.
//!
//! This file runs the entries that `lower` refuses. Those that a schema refuses run against a server, where schemas are
//! applied.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

use std::collections::BTreeSet;

use kubezap_api::{Flow, Trigger, lower};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Invalid {
    name: String,
    by: By,
    manifest: Value,
    #[serde(default)]
    old: Option<Value>,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Schema,
    Lower,
}

fn table() -> Vec<Invalid> {
    serde_saphyr::from_str(include_str!("invalid.yaml")).unwrap()
}

#[test]
fn the_table_is_well_formed() {
    let table = table();
    assert!(table.len() >= 60, "{} entries", table.len());
    let names: BTreeSet<_> = table.iter().map(|entry| &entry.name).collect();
    assert_eq!(names.len(), table.len(), "two entries have one name");
    for entry in &table {
        assert!(!entry.message.is_empty(), "{}", entry.name);
        assert!(
            entry.old.is_none() || entry.by == By::Schema,
            "{}",
            entry.name
        );
    }
}

#[test]
fn what_lowering_refuses_is_said_with_its_path() {
    let mut otherwise = Vec::new();
    for entry in table() {
        if entry.by != By::Lower {
            continue;
        }
        let ready = match entry.manifest["kind"].as_str() {
            Some("Flow") => {
                let flow: Flow = serde_json::from_value(entry.manifest).unwrap();
                lower::flow("sample", &flow.spec).ready()
            }
            Some("Trigger") => {
                let trigger: Trigger = serde_json::from_value(entry.manifest).unwrap();
                let lowered = lower::trigger(&trigger);
                assert_eq!(lowered.webhook, None, "{}", entry.name);
                lowered.ready()
            }
            other => panic!("{}: {other:?} is not lowered", entry.name),
        };
        assert_eq!(ready.reason, "InvalidSpec", "{}", entry.name);
        if ready.message != entry.message {
            otherwise.push(format!("{}\t{}", entry.name, ready.message));
        }
    }
    assert!(
        otherwise.is_empty(),
        "says otherwise:\n{}",
        otherwise.join("\n")
    );
}
