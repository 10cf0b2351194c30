//! The JSONPath compliance suite (RFC 9535): every selector that is valid selects what it must, every other is refused.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers of tests are not test functions

use std::path::PathBuf;

use kubezap_engine::expression::ResultMapping;
use serde_json::Value as Json;

/// The folder of public conformance data; `None` when it is absent, which fails in CI.
fn file(name: &str) -> Option<String> {
    let folder = std::env::var_os("KUBEZAP_CONFORMANCE").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
        PathBuf::from,
    );
    match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => Some(text),
        Err(error) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("{name} in {}: {error}", folder.display())
        }
        Err(_) => {
            eprintln!("skipped: no {name} in {}", folder.display());
            None
        }
    }
}

#[test]
fn the_compliance_suite_passes_whole() {
    let Some(suite) = file("jsonpath.json") else {
        return;
    };
    let suite: Json = serde_json::from_str(&suite).unwrap();
    let cases = suite["tests"].as_array().unwrap();
    assert!(cases.len() >= 703, "only {} cases", cases.len());
    let failed: Vec<String> = cases.iter().filter_map(|case| run(case).err()).collect();
    assert!(
        failed.is_empty(),
        "{} of {} fail:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

fn run(case: &Json) -> Result<(), String> {
    let selector = case["selector"].as_str().unwrap();
    let parsed = ResultMapping::parse(selector);
    if case["invalid_selector"] == Json::Bool(true) {
        return match parsed {
            Err(_) => Ok(()),
            Ok(_) => Err(format!("{}: {selector} is not refused", case["name"])),
        };
    }
    let mapping = parsed.map_err(|error| format!("{}: {error}", case["name"]))?;
    let selected: Vec<Json> = mapping
        .select(&case["document"])
        .into_iter()
        .cloned()
        .collect();
    let selected = Json::Array(selected);
    let fits = match case.get("results") {
        Some(results) => results.as_array().unwrap().contains(&selected),
        None => case["result"] == selected,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{}: {selector} selects {selected}", case["name"]))
    }
}
