//! Label and field selectors.

use serde_json::Value;

use crate::errors::Refusal;
use crate::kinds::{Kind, at};

/// Which objects are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelTest>,
    fields: Vec<FieldTest>,
}

#[derive(Clone, Debug)]
enum LabelTest {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

#[derive(Clone, Debug)]
struct FieldTest {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    pub(crate) fn read(labels: &str, fields: &str, kind: &Kind) -> Result<Self, Refusal> {
        Ok(Self {
            labels: split(labels)
                .into_iter()
                .map(|test| label_test(&test))
                .collect::<Result<_, _>>()?,
            fields: split(fields)
                .into_iter()
                .map(|test| field_test(&test, kind))
                .collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn takes(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        let labels = self.labels.iter().all(|test| match test {
            LabelTest::Exists(key) => label(key).is_some(),
            LabelTest::Absent(key) => label(key).is_none(),
            LabelTest::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value))
            }
            LabelTest::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|wanted| wanted != value))
            }
        });
        labels
            && self.fields.iter().all(|test| {
                let actual = match at(object, &test.path) {
                    Some(Value::String(text)) => text.clone(),
                    None | Some(Value::Null) => String::new(),
                    Some(other) => other.to_string(),
                };
                (actual == test.value) == test.equal
            })
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match (character, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts
                .last_mut()
                .expect("there is always a part")
                .push(character),
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn label_test(text: &str) -> Result<LabelTest, Refusal> {
    let text = text.trim();
    let values = |list: &str| {
        let inner = list
            .trim()
            .strip_prefix('(')
            .and_then(|list| list.strip_suffix(')'));
        inner.map(|list| {
            list.split(',')
                .map(|value| value.trim().to_owned())
                .collect::<Vec<_>>()
        })
    };
    let wrong = || Refusal::bad_request(format!("unable to parse requirement: {text}"));
    if let Some((key, list)) = text.split_once(" notin ") {
        return Ok(LabelTest::NotIn(
            key.trim().to_owned(),
            values(list).ok_or_else(wrong)?,
        ));
    }
    if let Some((key, list)) = text.split_once(" in ") {
        return Ok(LabelTest::In(
            key.trim().to_owned(),
            values(list).ok_or_else(wrong)?,
        ));
    }
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = text.split_once(operator) {
            let (key, value) = (key.trim().to_owned(), vec![value.trim().to_owned()]);
            return Ok(if equal {
                LabelTest::In(key, value)
            } else {
                LabelTest::NotIn(key, value)
            });
        }
    }
    match text.strip_prefix('!') {
        Some(key) => Ok(LabelTest::Absent(key.trim().to_owned())),
        None if text.contains([' ', '(']) => Err(wrong()),
        None => Ok(LabelTest::Exists(text.to_owned())),
    }
}

fn field_test(text: &str, kind: &Kind) -> Result<FieldTest, Refusal> {
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((path, value)) = text.split_once(operator) {
            let path = path.trim();
            let known = path == "metadata.name"
                || (path == "metadata.namespace" && kind.namespaced)
                || kind.selectable.iter().any(|known| known == path);
            return if known {
                Ok(FieldTest {
                    path: path.to_owned(),
                    value: value.trim().to_owned(),
                    equal,
                })
            } else {
                Err(Refusal::bad_request(format!(
                    "field label not supported: {path}"
                )))
            };
        }
    }
    Err(Refusal::bad_request(format!(
        "invalid selector: '{text}'; can't understand '{text}'"
    )))
}
