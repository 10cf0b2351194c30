//! The shared table of URLs that a guard without an allow-list refuses or passes.

use std::path::PathBuf;

use kubezap_executor::{AllowList, Guard};
use url::Url;

#[derive(serde::Deserialize)]
struct Table {
    refused: Vec<String>,
    allowed: Vec<String>,
}

fn table() -> Option<Table> {
    let folder = std::env::var_os("KUBEZAP_CONFORMANCE").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/conformance"
            ))
        },
        PathBuf::from,
    );
    match std::fs::read_to_string(folder.join("egress.json")) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(error) => {
            let ci = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!ci, "no conformance data in {}: {error}", folder.display());
            println!("skipped: no conformance data in {}", folder.display());
            None
        }
    }
}

fn passes(url: &str) -> bool {
    let url = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    Guard::default()
        .check_url(&url, &AllowList::default())
        .is_ok()
}

#[test]
fn every_url_of_the_shared_table_gets_its_verdict() {
    let Some(table) = table() else { return };
    assert!(!table.refused.is_empty() && !table.allowed.is_empty());
    for url in &table.refused {
        assert!(!passes(url), "{url} must be refused");
    }
    for url in &table.allowed {
        assert!(passes(url), "{url} must pass");
    }
}
