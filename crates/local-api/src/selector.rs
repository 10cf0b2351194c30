//! Label and field selectors.

use serde_json::Value;

use crate::admission::metadata::{label_key_problems, label_value_problems};
use crate::failure::{Failure, Result};
use crate::json_path::text_of;
use crate::kinds::Kind;

/// Which objects a list or watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

#[derive(Clone, Debug)]
struct FieldRequirement {
    field: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Parses what a request gave.
    ///
    /// # Errors
    /// It does not parse, or selects by a field that the kind does not offer.
    pub(crate) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self> {
        let labels = parse_labels(labels)
            .map_err(|why| Failure::bad_request(format!("unable to parse requirement: {why}")))?;
        let fields = parse_fields(fields).map_err(Failure::bad_request)?;
        for requirement in &fields {
            let field = requirement.field.as_str();
            let known = field == "metadata.name"
                || (field == "metadata.namespace" && kind.namespaced)
                || kind.selectable.iter().any(|(name, _)| name == field);
            if !known {
                return Err(Failure::bad_request(format!(
                    "field label not supported: {field}"
                )));
            }
        }
        Ok(Self { labels, fields })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that can match, when there is only one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields
            .iter()
            .find(|requirement| requirement.equal && requirement.field == "metadata.name")
            .map(|requirement| requirement.value.as_str())
    }

    pub(crate) fn matches(&self, kind: &Kind, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let labels = metadata.get("labels");
        let label = |key: &str| {
            labels
                .and_then(|labels| labels.get(key))
                .and_then(Value::as_str)
        };
        let number = |key: &str| label(key).and_then(|text| text.parse::<i64>().ok());
        self.labels.iter().all(|requirement| {
            let key = requirement.key.as_str();
            match &requirement.test {
                Test::In(values) => {
                    label(key).is_some_and(|value| values.iter().any(|one| one == value))
                }
                Test::NotIn(values) => {
                    label(key).is_none_or(|value| values.iter().all(|one| one != value))
                }
                Test::Exists => label(key).is_some(),
                Test::Absent => label(key).is_none(),
                Test::Greater(bound) => number(key).is_some_and(|value| value > *bound),
                Test::Less(bound) => number(key).is_some_and(|value| value < *bound),
            }
        }) && self.fields.iter().all(|requirement| {
            let actual = match requirement.field.as_str() {
                "metadata.name" => text_of(&metadata["name"]),
                "metadata.namespace" => text_of(&metadata["namespace"]),
                other => kind
                    .selectable
                    .iter()
                    .find(|(name, _)| name == other)
                    .and_then(|(_, path)| path.first(object))
                    .map(text_of)
                    .unwrap_or_default(),
            };
            (actual == requirement.value) == requirement.equal
        })
    }
}

fn parse_fields(text: &str) -> Result<Vec<FieldRequirement>, String> {
    let mut requirements = Vec::new();
    for term in split_escaped(text) {
        if term.is_empty() {
            continue;
        }
        let (field, value, equal) = if let Some((field, value)) = term.split_once("!=") {
            (field, value, false)
        } else if let Some((field, value)) = term.split_once("==") {
            (field, value, true)
        } else if let Some((field, value)) = term.split_once('=') {
            (field, value, true)
        } else {
            return Err(format!(
                "invalid field selector: \"{text}\"; can't understand '{term}'"
            ));
        };
        requirements.push(FieldRequirement {
            field: field.to_owned(),
            value: unescape(value),
            equal,
        });
    }
    Ok(requirements)
}

fn split_escaped(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for char in text.chars() {
        if char == ',' && !escaped {
            terms.push(String::new());
        } else if let Some(last) = terms.last_mut() {
            last.push(char);
        }
        escaped = char == '\\' && !escaped;
    }
    terms
}

fn unescape(value: &str) -> String {
    let mut plain = String::new();
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\\' => chars.next().unwrap_or('\\'),
            other => other,
        });
    }
    plain
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let mut requirements = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (term, after) = next_term(rest);
        requirements.push(parse_requirement(term.trim())?);
        rest = after.trim_start();
    }
    for requirement in &requirements {
        if let Some(problem) = label_key_problems(&requirement.key).into_iter().next() {
            return Err(format!(
                "key: Invalid value: {}: {problem}",
                crate::field::quote(&requirement.key)
            ));
        }
        if let Test::In(values) | Test::NotIn(values) = &requirement.test {
            for value in values {
                if let Some(problem) = label_value_problems(value).into_iter().next() {
                    return Err(format!(
                        "values[0][{}]: Invalid value: {}: {problem}",
                        requirement.key,
                        crate::field::quote(value)
                    ));
                }
            }
        }
    }
    Ok(requirements)
}

/// Cuts at the next comma outside of parentheses.
fn next_term(text: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

fn parse_requirement(term: &str) -> Result<Requirement, String> {
    let new = |key: &str, test| {
        Ok(Requirement {
            key: key.trim().to_owned(),
            test,
        })
    };
    if let Some((key, value)) = term.split_once("!=") {
        return new(key, Test::NotIn(vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return new(key, Test::In(vec![value.trim().to_owned()]));
    }
    for (sign, greater) in [('>', true), ('<', false)] {
        if let Some((key, value)) = term.split_once(sign) {
            let bound = value.trim().parse().map_err(|_| {
                format!("values[0][{}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer", key.trim())
            })?;
            let test = if greater {
                Test::Greater(bound)
            } else {
                Test::Less(bound)
            };
            return new(key, test);
        }
    }
    if let Some(key) = term.strip_prefix('!') {
        return new(key, Test::Absent);
    }
    let mut words = term.splitn(2, char::is_whitespace);
    let key = words.next().unwrap_or_default();
    let Some(set) = words.next().map(str::trim) else {
        return new(key, Test::Exists);
    };
    let (test, list) = if let Some(list) = set.strip_prefix("notin") {
        (Test::NotIn as fn(Vec<String>) -> Test, list)
    } else if let Some(list) = set.strip_prefix("in") {
        (Test::In as fn(Vec<String>) -> Test, list)
    } else {
        return Err(format!(
            "found '{set}', expected: in, notin, =, ==, !=, gt, lt"
        ));
    };
    let values = list
        .trim()
        .strip_prefix('(')
        .and_then(|list| list.strip_suffix(')'))
        .ok_or_else(|| format!("found '{}', expected: '('", list.trim()))?;
    new(
        key,
        test(
            values
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect(),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_of_labels_parses() {
        let parsed = parse_labels("a=1, b==2,c!=3,d,!e,f in (x, y),g notin (z),h>4,i<5").unwrap();
        let tests: Vec<Test> = parsed.into_iter().map(|one| one.test).collect();
        assert_eq!(
            tests,
            [
                Test::In(vec!["1".into()]),
                Test::In(vec!["2".into()]),
                Test::NotIn(vec!["3".into()]),
                Test::Exists,
                Test::Absent,
                Test::In(vec!["x".into(), "y".into()]),
                Test::NotIn(vec!["z".into()]),
                Test::Greater(4),
                Test::Less(5),
            ]
        );
    }

    #[test]
    fn broken_selectors_are_refused() {
        for bad in ["a in x", "a b c", "-a=1", "a>x"] {
            assert!(parse_labels(bad).is_err(), "{bad}");
        }
        assert!(parse_fields("metadata.name").is_err());
    }
}
