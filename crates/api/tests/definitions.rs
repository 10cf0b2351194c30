//! The definitions follow Kubernetes' rules for structural schemas, and every value in them is bounded.

#![allow(clippy::unwrap_used)] // helpers of tests are not test functions

use kubezap_api::crds;
use serde_json::{Map, Value};

/// Calls `visit` with every schema of every kind and its path.
fn each_schema(mut visit: impl FnMut(&str, &Map<String, Value>)) {
    fn walk(at: &str, schema: &Value, visit: &mut impl FnMut(&str, &Map<String, Value>)) {
        let schema = schema
            .as_object()
            .unwrap_or_else(|| panic!("{at} is no schema"));
        visit(at, schema);
        if let Some(properties) = schema.get("properties") {
            for (name, property) in properties.as_object().unwrap() {
                walk(&format!("{at}.{name}"), property, visit);
            }
        }
        if let Some(items) = schema.get("items") {
            walk(&format!("{at}[]"), items, visit);
        }
        if let Some(values) = schema.get("additionalProperties") {
            walk(&format!("{at}{{}}"), values, visit);
        }
    }
    for crd in crds() {
        let schema = crd.spec.versions[0].schema.clone().unwrap();
        let schema = serde_json::to_value(schema.open_api_v3_schema).unwrap();
        walk(&crd.spec.names.kind, &schema, &mut visit);
    }
}

#[test]
fn every_string_list_and_map_is_bounded() {
    each_schema(
        |at, schema| match schema.get("type").and_then(Value::as_str) {
            Some("string") => assert!(
                schema.contains_key("maxLength") || schema.contains_key("enum"),
                "{at} has no maxLength"
            ),
            Some("array") => assert!(schema.contains_key("maxItems"), "{at} has no maxItems"),
            Some("object") if schema.contains_key("additionalProperties") => assert!(
                schema.contains_key("maxProperties"),
                "{at} has no maxProperties"
            ),
            _ => {}
        },
    );
}

#[test]
fn schemas_are_structural() {
    each_schema(|at, schema| {
        for keyword in [
            "$ref",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "const",
            "definitions",
            "nullable",
            "title",
            "uniqueItems",
            "patternProperties",
        ] {
            assert!(!schema.contains_key(keyword), "{at} has {keyword}");
        }
        let int_or_string = schema.contains_key("x-kubernetes-int-or-string");
        assert_eq!(schema.contains_key("type"), !int_or_string, "{at}: type");
        if let Some(words) = schema.get("enum") {
            assert!(
                words.as_array().unwrap().iter().all(Value::is_string),
                "{at}: {words}"
            );
        }
        if let Some(format) = schema.get("format") {
            let known = ["int32", "int64", "date-time"];
            assert!(known.contains(&format.as_str().unwrap()), "{at}: {format}");
        }
        assert!(
            !(schema.contains_key("properties") && schema.contains_key("additionalProperties")),
            "{at} has both properties and additionalProperties"
        );
        for name in schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            assert!(
                schema["properties"].get(name.as_str().unwrap()).is_some(),
                "{at} requires {name}, which it does not have"
            );
        }
        if schema.get("type").is_some_and(|kind| kind == "array") {
            assert!(schema.contains_key("items"), "{at} has no items");
        }
    });
}

#[test]
fn every_field_is_explained_in_one_paragraph() {
    each_schema(|at, schema| {
        // Items and values are explained by the field that holds them.
        if at.ends_with("[]") || at.ends_with("{}") {
            return;
        }
        let description = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !at.contains(".conditions") {
            assert!(description.ends_with('.'), "{at}: {description:?}");
        }
        assert!(!description.contains('\n'), "{at}: {description:?}");
        assert!(
            !description.contains('`'),
            "{at}: kubectl explain shows no markup"
        );
    });
}

#[test]
fn rules_have_messages_and_keep_to_what_api_servers_can_afford() {
    let mut rules = 0;
    each_schema(|at, schema| {
        let all = schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array);
        for rule in all.into_iter().flatten() {
            rules += 1;
            let text = rule["rule"].as_str().unwrap();
            for costly in [
                "cel.bind", "sortBy", ".all(", ".exists(", ".map(", ".filter(", "matches(",
            ] {
                assert!(!text.contains(costly), "{at}: {text}");
            }
            let message = rule["message"].as_str().unwrap();
            assert!(
                !message.is_empty() && !message.ends_with('.') && !message.contains('\n'),
                "{at}"
            );
            if let Some(path) = rule.get("fieldPath") {
                let field = path.as_str().unwrap().strip_prefix('.').unwrap();
                assert!(schema["properties"].get(field).is_some(), "{at}: {path}");
            }
        }
    });
    assert!(rules > 35, "{rules} rules");
}

#[test]
fn each_definition_is_under_100_kb() {
    for crd in crds() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        assert!(size < 100_000, "{}: {size} bytes", crd.spec.names.kind);
    }
}

#[test]
fn kinds_are_listed_with_their_columns_names_and_category() {
    let crds = crds();
    let names: Vec<_> = crds
        .iter()
        .map(|crd| crd.metadata.name.as_deref().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "flowruns.automation.kubezap.io",
            "flows.automation.kubezap.io",
            "integrations.automation.kubezap.io",
            "triggers.automation.kubezap.io",
            "webhookgatewayconfigs.automation.kubezap.io",
        ]
    );
    for crd in &crds {
        assert_eq!(crd.spec.scope, "Namespaced");
        assert_eq!(crd.spec.names.categories.as_ref().unwrap(), &["kubezap"]);
        assert_eq!(crd.spec.names.short_names.as_ref().unwrap().len(), 1);
        let version = &crd.spec.versions[0];
        assert!(version.served && version.storage);
        assert!(version.subresources.as_ref().unwrap().status.is_some());
    }
    let run = &crds[0].spec.versions[0];
    let columns: Vec<_> = run
        .additional_printer_columns
        .iter()
        .flatten()
        .filter(|column| column.priority.unwrap_or_default() == 0)
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(columns, ["FLOW", "PHASE", "AGE", "DURATION"]);
    let selectable: Vec<_> = run
        .selectable_fields
        .iter()
        .flatten()
        .map(|field| field.json_path.as_str())
        .collect();
    assert_eq!(
        selectable,
        [
            ".status.phase",
            ".spec.flowRef.name",
            ".spec.triggerRef.name"
        ]
    );
}

#[test]
fn lists_with_one_writer_are_atomic_and_named_lists_are_maps() {
    let mut found = Vec::new();
    each_schema(|at, schema| {
        for keyword in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
            if let Some(kind) = schema.get(keyword) {
                found.push(format!("{at} {}", kind.as_str().unwrap()));
            }
        }
    });
    found.retain(|line| !line.contains(".conditions"));
    assert_eq!(
        found,
        [
            "FlowRun.spec.triggerData.headers atomic",
            "FlowRun.status.steps atomic",
            "FlowRun.status.steps[].results atomic",
            "Flow.spec.params map",
            "Flow.spec.steps map",
        ]
    );
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let mut found = Vec::new();
    each_schema(|at, schema| {
        if let Some(default) = schema.get("default") {
            found.push(format!("{at} = {default}"));
        }
    });
    let expected: Vec<_> = include_str!("defaults.txt").lines().collect();
    assert_eq!(found, expected, "{}", found.join("\n"));
}
