//! Manifests as files hold them: every object with its file and the line of each of its fields.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

/// Files in a folder that are never applied.
const NOT_MANIFESTS: [&str; 3] = ["mocks.yaml", "kustomization.yaml", "kustomization.yml"];

/// One object of a manifest.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// Where it was read.
    pub(crate) file: PathBuf,
    /// The object.
    pub(crate) object: Value,
    tree: Spanned<Node>,
}

/// Something wrong with a file, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The file.
    pub(crate) file: PathBuf,
    /// Line, from 1; 0 when only the file is known.
    pub(crate) line: u64,
    /// What is wrong.
    pub(crate) message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.message),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.message),
        }
    }
}

impl Manifest {
    /// The object's kind.
    pub(crate) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// A complaint about the field at a path such as `spec.steps[2].action`, at the line of the deepest part of
    /// it that the file has.
    pub(crate) fn complain(&self, path: &str, message: impl Into<String>) -> Complaint {
        Complaint {
            file: self.file.clone(),
            line: self.line_of(path),
            message: message.into(),
        }
    }

    /// The line of a path, from 1.
    pub(crate) fn line_of(&self, path: &str) -> u64 {
        let mut line = self.tree.defined.line();
        let mut node = &self.tree;
        for segment in segments(path) {
            let next = match (&node.value, &segment) {
                (Node::Mapping(entries), Segment::Key(key)) => entries
                    .iter()
                    .find(|(name, _)| name.value == *key)
                    .map(|(name, child)| (name.defined.line(), child)),
                (Node::Sequence(items), Segment::Index(index)) => {
                    items.get(*index).map(|child| (child.defined.line(), child))
                }
                _ => None,
            };
            let Some((at, child)) = next else { break };
            (line, node) = (at, child);
        }
        line
    }
}

/// Every manifest file below the given paths: files as given, folders searched for `*.yaml`, `*.yml` and `*.json`.
///
/// # Errors
/// A path that cannot be read.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Complaint> {
    let mut files = Vec::new();
    for path in paths {
        let unreadable = |error: std::io::Error| Complaint {
            file: path.clone(),
            line: 0,
            message: error.to_string(),
        };
        if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            search(path, &mut files).map_err(unreadable)?;
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn search(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || NOT_MANIFESTS.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            search(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|ext| ["yaml", "yml", "json"].iter().any(|known| ext == *known))
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads one file of one or more documents.
///
/// # Errors
/// One complaint for a file that cannot be read or parsed, or one for each document that is no Kubernetes object.
pub(crate) fn read(file: &Path) -> Result<Vec<Manifest>, Vec<Complaint>> {
    let complaint = |line, message| {
        vec![Complaint {
            file: file.to_owned(),
            line,
            message,
        }]
    };
    let text = std::fs::read_to_string(file).map_err(|error| complaint(0, error.to_string()))?;
    parse(file, &text)
}

/// Parses the text of one file.
///
/// # Errors
/// As [`read`].
pub(crate) fn parse(file: &Path, text: &str) -> Result<Vec<Manifest>, Vec<Complaint>> {
    let documents: Vec<Spanned<Node>> = serde_saphyr::from_multiple(text).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        vec![Complaint {
            file: file.to_owned(),
            line,
            message: first_line(&error.without_snippet().to_string()),
        }]
    })?;
    let mut manifests = Vec::new();
    let mut complaints = Vec::new();
    for tree in documents {
        let object = tree.value.to_json();
        if object.is_null() {
            continue;
        }
        let manifest = Manifest {
            file: file.to_owned(),
            object,
            tree,
        };
        match ["apiVersion", "kind"]
            .iter()
            .find(|key| !manifest.object[**key].is_string())
        {
            Some(key) => complaints.push(manifest.complain(
                "",
                format!("{key} is missing: this is not a Kubernetes object"),
            )),
            None if manifest.object["kind"] == "List" => match unpack(&manifest) {
                Ok(items) => manifests.extend(items),
                Err(complaint) => complaints.push(complaint),
            },
            None if manifest.name().is_empty() => {
                complaints.push(manifest.complain("metadata", "metadata.name is missing"))
            }
            None => manifests.push(manifest),
        }
    }
    if complaints.is_empty() {
        Ok(manifests)
    } else {
        Err(complaints)
    }
}

/// The items of a `kind: List`.
fn unpack(list: &Manifest) -> Result<Vec<Manifest>, Complaint> {
    let items = match &list.tree.value {
        Node::Mapping(entries) => entries
            .iter()
            .find(|(name, _)| name.value == "items")
            .map(|(_, items)| items),
        _ => None,
    };
    match items.map(|items| &items.value) {
        Some(Node::Sequence(items)) => Ok(items
            .iter()
            .map(|item| Manifest {
                file: list.file.clone(),
                object: item.value.to_json(),
                tree: item.clone(),
            })
            .collect()),
        _ => Err(list.complain("", "items is missing from a List")),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// A YAML node that keeps the place of everything in it.
#[derive(Clone, Debug)]
enum Node {
    Scalar(Value),
    Sequence(Vec<Spanned<Node>>),
    Mapping(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Node {
    fn to_json(&self) -> Value {
        match self {
            Node::Scalar(value) => value.clone(),
            Node::Sequence(items) => items.iter().map(|item| item.value.to_json()).collect(),
            Node::Mapping(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(name, child)| (name.value.clone(), child.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Mapping(entries))
    }
}

#[derive(Debug, PartialEq)]
enum Segment {
    Key(String),
    Index(usize),
}

/// Splits `spec.steps[2].headers[X-Token]` as the API server writes paths.
fn segments(path: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (content, after) = inner.split_once(']').unwrap_or((inner, ""));
            let content = content.trim_matches('"');
            segments.push(
                content
                    .parse()
                    .map_or_else(|_| Segment::Key(content.to_owned()), Segment::Index),
            );
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            segments.push(Segment::Key(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches('.');
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: &str = "\
apiVersion: automation.kubezap.io/v1alpha1
kind: Flow
metadata:
  name: first
spec:
  steps:
  - name: a
    action:
      type: http
      http:
        url: https://example.com
---
apiVersion: v1
kind: Secret
metadata: {name: second}
";

    fn parsed() -> Vec<Manifest> {
        parse(Path::new("f.yaml"), FLOW).unwrap()
    }

    #[test]
    fn every_document_of_a_file_is_a_manifest() {
        let names: Vec<_> = parsed()
            .iter()
            .map(|manifest| manifest.name().to_owned())
            .collect();
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn a_path_is_found_at_the_line_of_its_key() {
        let flow = &parsed()[0];
        assert_eq!(flow.line_of("spec.steps[0].action.http.url"), 11);
        assert_eq!(flow.line_of("spec.steps[0].name"), 7);
        assert_eq!(flow.line_of("spec"), 5);
    }

    #[test]
    fn a_path_that_the_file_lacks_is_reported_at_its_nearest_parent() {
        let flow = &parsed()[0];
        assert_eq!(flow.line_of("spec.steps[0].action.http.method"), 10);
        assert_eq!(flow.line_of("spec.steps[7].name"), 6);
    }

    #[test]
    fn a_syntax_error_names_file_and_line() {
        let complaints = parse(Path::new("f.yaml"), "a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].line >= 2, "{complaints:?}");
    }

    #[test]
    fn a_document_that_is_no_object_is_a_complaint() {
        let complaints = parse(Path::new("f.yaml"), "\nservices: {}\n").unwrap_err();
        assert_eq!(
            complaints[0].to_string(),
            "f.yaml:2: apiVersion is missing: this is not a Kubernetes object"
        );
    }

    #[test]
    fn a_list_is_unpacked() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n";
        let manifests = parse(Path::new("f.yaml"), text).unwrap();
        assert_eq!(manifests[0].name(), "s");
        assert_eq!(manifests[0].line_of("metadata"), 6);
    }
}
