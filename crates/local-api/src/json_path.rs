//! The JSONPath that columns and selectable fields use: names, indices, `[*]` and `[?(@.name=="value")]`.

use serde_json::Value;

/// A parsed path. One that uses more than is supported finds nothing.
#[derive(Clone, Debug)]
pub(crate) struct JsonPath(Option<Vec<Segment>>);

#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Field(String),
    Index(usize),
    All,
    Equal { path: Vec<String>, value: String },
}

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Self {
        Self(segments(text))
    }

    /// Everything that the path leads to.
    pub(crate) fn find<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        let Some(segments) = &self.0 else {
            return Vec::new();
        };
        let mut found = vec![root];
        for segment in segments {
            found = match segment {
                Segment::Field(name) => found.iter().filter_map(|value| value.get(name)).collect(),
                Segment::Index(at) => found.iter().filter_map(|value| value.get(at)).collect(),
                Segment::All => found.into_iter().flat_map(items).collect(),
                Segment::Equal { path, value } => found
                    .into_iter()
                    .flat_map(items)
                    .filter(|item| {
                        let at = path.iter().try_fold(*item, |item, name| item.get(name));
                        at.is_some_and(|at| text_of(at) == *value)
                    })
                    .collect(),
            };
        }
        found
    }

    pub(crate) fn first<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.find(root).into_iter().next()
    }
}

/// A scalar as selectors and columns compare and print it.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn items(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(map) => map.values().collect(),
        _ => Vec::new(),
    }
}

fn segments(text: &str) -> Option<Vec<Segment>> {
    let mut rest = text.strip_prefix('$').unwrap_or(text);
    let mut segments = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = name(after);
            if name.is_empty() {
                return None;
            }
            segments.push(Segment::Field(name));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[?(@.") {
            let (condition, after) = after.split_once(")]")?;
            let (path, value) = condition.split_once("==")?;
            let value = value.trim();
            let quoted = ['"', '\'']
                .iter()
                .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
            segments.push(Segment::Equal {
                path: path.trim().split('.').map(str::to_owned).collect(),
                value: quoted.unwrap_or(value).to_owned(),
            });
            rest = after;
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            segments.push(match inside.trim_matches(['\'', '"']) {
                "*" => Segment::All,
                key if key.len() < inside.len() => Segment::Field(key.to_owned()),
                index => Segment::Index(index.parse().ok()?),
            });
            rest = after;
        }
    }
    Some(segments)
}

/// Reads a name; `\.` stands for a dot in it.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                if let Some((_, escaped)) = chars.next() {
                    name.push(escaped);
                }
            }
            '.' | '[' => return (name, &text[at..]),
            other => name.push(other),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_fields_items_and_conditions() {
        let object = json!({
            "metadata": {"annotations": {"kubezap.io/note": "n"}},
            "status": {"conditions": [
                {"type": "Accepted", "status": "False"},
                {"type": "Ready", "status": "True"},
            ]},
        });
        let first = |path: &str| JsonPath::parse(path).first(&object).map(text_of);
        assert_eq!(
            first(r#".status.conditions[?(@.type=="Ready")].status"#).as_deref(),
            Some("True")
        );
        assert_eq!(
            first(".status.conditions[0].type").as_deref(),
            Some("Accepted")
        );
        assert_eq!(
            first(r".metadata.annotations.kubezap\.io/note").as_deref(),
            Some("n")
        );
        assert_eq!(first(".status.absent"), None);
        assert_eq!(
            JsonPath::parse(".status.conditions[*].type")
                .find(&object)
                .len(),
            2
        );
    }

    #[test]
    fn an_unsupported_path_finds_nothing() {
        assert!(
            JsonPath::parse("..name")
                .find(&json!({"name": 1}))
                .is_empty()
        );
        assert!(
            JsonPath::parse("[?(@.a>1)]")
                .find(&json!([{"a": 2}]))
                .is_empty()
        );
    }
}
