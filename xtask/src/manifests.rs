//! `cargo xtask manifests`: writes what is generated from Rust types into `config/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

const HEADER: &str =
    "# Generated from crates/api by `cargo xtask manifests`; changes made here are lost.\n";

/// Writes the files, or with `check` compares them and fails when one differs.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = workspace_root();
    if check {
        let stale = stale(&root)?;
        if !stale.is_empty() {
            let names: Vec<_> = stale
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            bail!(
                "not what the Rust types say: {}; run `cargo xtask manifests`",
                names.join(", ")
            );
        }
        return Ok(());
    }
    for (path, content) in generated()? {
        let path = root.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Everything that is generated: path from the workspace's root, and content.
fn generated() -> Result<BTreeMap<PathBuf, String>> {
    let folder = Path::new("config/crd");
    let mut files = BTreeMap::new();
    let mut resources = Vec::new();
    for crd in kubezap_api::crds() {
        let name = format!("{}.yaml", crd.spec.names.plural);
        let yaml = serde_saphyr::to_string(&serde_json::to_value(&crd)?)?;
        files.insert(folder.join(&name), format!("{HEADER}{yaml}"));
        resources.push(name);
    }
    let kustomization = serde_json::json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    });
    files.insert(
        folder.join("kustomization.yaml"),
        format!("{HEADER}{}", serde_saphyr::to_string(&kustomization)?),
    );
    Ok(files)
}

/// Files that differ from what is generated, are missing, or should not be there.
fn stale(root: &Path) -> Result<Vec<PathBuf>> {
    let generated = generated()?;
    let mut stale: Vec<_> = generated
        .iter()
        .filter(|(path, content)| {
            fs::read_to_string(root.join(path)).ok().as_ref() != Some(*content)
        })
        .map(|(path, _)| path.clone())
        .collect();
    let folder = root.join("config/crd");
    let entries = fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let path = Path::new("config/crd").join(entry?.file_name());
        if !generated.contains_key(&path) {
            stale.push(path);
        }
    }
    Ok(stale)
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_config_are_what_the_rust_types_say() {
        assert_eq!(stale(&workspace_root()).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn each_definition_is_under_100_kb() {
        for (path, content) in generated().unwrap() {
            assert!(
                content.len() < 100_000,
                "{} has {} bytes",
                path.display(),
                content.len()
            );
        }
    }
}
