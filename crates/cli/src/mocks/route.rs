//! Which route a request takes, and what to say when it takes none.

use std::sync::atomic::{AtomicUsize, Ordering};

use kubezap_step_protocol::ExecuteRequest;
use serde_json::Value;
use url::Url;

use super::answer::Answer;

/// A route of a mocked host.
#[derive(Debug)]
pub(super) struct Route {
    /// Where it stands, `FILE:LINE`.
    pub(super) place: String,
    method: Option<Pattern>,
    path: Option<Pattern>,
    headers: Vec<(String, Pattern)>,
    json: Option<Value>,
    /// At least one; the last repeats.
    answers: Vec<Answer>,
    answered: AtomicUsize,
}

/// A text in which each `*` stands for any text, none included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(String);

/// A request, read once for all routes.
pub(super) struct Request<'a> {
    method: &'a str,
    path: &'a str,
    path_and_query: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    json: Option<Value>,
}

impl<'a> Request<'a> {
    pub(super) fn new(request: &'a ExecuteRequest, url: &'a Url) -> Self {
        Self {
            method: &request.method,
            path: url.path(),
            path_and_query: &url[url::Position::BeforePath..url::Position::AfterQuery],
            headers: request
                .headers
                .iter()
                .map(|header| (header.name.as_str(), header.value.as_str()))
                .collect(),
            json: request
                .body
                .as_deref()
                .and_then(|body| serde_json::from_slice(body).ok()),
        }
    }
}

impl Route {
    pub(super) fn new(
        place: String,
        method: Option<Pattern>,
        path: Option<Pattern>,
        headers: Vec<(String, Pattern)>,
        json: Option<Value>,
        answers: Vec<Answer>,
    ) -> Self {
        Self {
            place,
            method,
            path,
            headers,
            json,
            answers,
            answered: AtomicUsize::new(0),
        }
    }

    pub(super) fn matches(&self, request: &Request<'_>) -> bool {
        self.differences(request).is_empty()
    }

    /// The next answer in turn.
    pub(super) fn next(&self) -> &Answer {
        let turn = self.answered.fetch_add(1, Ordering::Relaxed);
        &self.answers[turn.min(self.answers.len() - 1)]
    }

    /// What keeps `request` from this route, with how far off each is. A header's or body's own value is not told: it
    /// may be a credential, and the text ends up in a FlowRun's status.
    fn differences(&self, request: &Request<'_>) -> Vec<(u32, String)> {
        let mut differences = Vec::new();
        if let Some(path) = &self.path
            && !path.matches(self.path_of(path, request))
        {
            differences.push((8, format!("path is {}, not {}", request.path, path.0)));
        }
        if let Some(method) = &self.method
            && !method.matches(request.method)
        {
            differences.push((4, format!("method is {}, not {}", request.method, method.0)));
        }
        for (name, pattern) in &self.headers {
            let mut given = request
                .headers
                .iter()
                .filter(|(given, _)| given.eq_ignore_ascii_case(name))
                .peekable();
            if given.peek().is_none() {
                differences.push((2, format!("header {name} is missing")));
            } else if !given.any(|(_, value)| pattern.matches(value)) {
                differences.push((1, format!("header {name} is not {:?}", pattern.0)));
            }
        }
        if let Some(expected) = &self.json {
            let found = match &request.json {
                Some(json) => difference(expected, json, "json"),
                None => Some("the body is not JSON".to_owned()),
            };
            differences.extend(found.map(|text| (1, text)));
        }
        differences
    }

    /// A pattern that speaks of the query is compared with it, any other without.
    fn path_of<'a>(&self, pattern: &Pattern, request: &Request<'a>) -> &'a str {
        if pattern.0.contains('?') {
            request.path_and_query
        } else {
            request.path
        }
    }

    fn name(&self) -> String {
        let part = |pattern: &Option<Pattern>| match pattern {
            Some(pattern) => pattern.0.clone(),
            None => "*".to_owned(),
        };
        format!("{} {}", part(&self.method), part(&self.path))
    }
}

/// Says that no route of `host` matches, which is the closest, and what differs.
pub(super) fn unmatched(host: &str, routes: &[Route], request: &Request<'_>) -> String {
    let asked = format!(
        "{host} is mocked without a route for {} {}",
        request.method, request.path
    );
    let closest = routes
        .iter()
        .map(|route| (route, route.differences(request)))
        .min_by_key(|(_, differences)| differences.iter().map(|(weight, _)| weight).sum::<u32>());
    match closest {
        None => format!("{asked}; it has no routes at all"),
        Some((route, differences)) => {
            let texts: Vec<String> = differences.into_iter().map(|(_, text)| text).collect();
            format!(
                "{asked}; the closest is {} ({}): {}",
                route.name(),
                route.place,
                texts.join(", ")
            )
        }
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        // Splitting gives at least one part.
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else {
            return false;
        };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else {
            return rest.is_empty();
        };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// Where `given` lacks what `expected` asks for, or `None` where it has it all: every key of an object, every element of
/// a list in its place, and equal values; 1200 equals 1200.0.
fn difference(expected: &Value, given: &Value, place: &str) -> Option<String> {
    match (expected, given) {
        (Value::Object(expected), Value::Object(given)) => {
            expected.iter().find_map(|(key, expected)| {
                let place = format!("{place}.{key}");
                match given.get(key) {
                    Some(given) => difference(expected, given, &place),
                    None => Some(format!("{place} is missing")),
                }
            })
        }
        (Value::Array(expected), Value::Array(given)) => {
            if expected.len() != given.len() {
                return Some(format!(
                    "{place} has {} elements, not {}",
                    given.len(),
                    expected.len()
                ));
            }
            expected
                .iter()
                .zip(given)
                .enumerate()
                .find_map(|(index, (expected, given))| {
                    difference(expected, given, &format!("{place}[{index}]"))
                })
        }
        (Value::Number(expected), Value::Number(given)) if same_number(expected, given) => None,
        _ if expected == given => None,
        _ => Some(format!("{place} is not {expected}")),
    }
}

fn same_number(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
}
