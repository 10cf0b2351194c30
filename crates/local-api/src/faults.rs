//! Faults on demand: what a cluster does to its clients on a bad day.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// The rules in force. The first that matches a request and has a count left decides.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<Rule>>,
    changed: watch::Sender<()>,
}

/// Which requests fail, and how. A part that is not set matches everything.
#[derive(Clone, Debug)]
pub struct Rule {
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    left: Option<u32>,
    fault: Fault,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request waits before it is handled.
    Latency(Duration),
    /// The request is refused with this HTTP code: 409, 429, 500, 503 or another error. Nothing is stored.
    Status(u16),
    /// The request is handled, and the connection breaks before the answer.
    AnswerLost,
    /// A watch breaks off, also one that is open when the rule is added.
    WatchDropped,
    /// A watch stays open and reports nothing until the rule is cleared.
    WatchStalled,
    /// A watch from a resourceVersion is told that the version is too old.
    WatchExpired,
}

impl Rule {
    /// Makes a rule for every request, without a limit.
    pub fn new(fault: Fault) -> Self {
        Self {
            verb: None,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            left: None,
            fault,
        }
    }

    /// Matches only this verb: get, list, watch, create, update, patch, delete, deletecollection.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Matches only this resource, by its plural.
    #[must_use]
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Matches only this subresource; the empty text stands for none.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = Some(name.to_owned());
        self
    }

    /// Matches only namespaces of this pattern; `*` stands for any text.
    #[must_use]
    pub fn namespace(mut self, pattern: &str) -> Self {
        self.namespace = Some(pattern.to_owned());
        self
    }

    /// Matches only names of this pattern; `*` stands for any text. A create with `generateName` has no name yet.
    #[must_use]
    pub fn name(mut self, pattern: &str) -> Self {
        self.name = Some(pattern.to_owned());
        self
    }

    /// Stops after this many matches.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.left = Some(count);
        self
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        let equal = |wanted: &Option<String>, actual: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == actual)
        };
        let like = |pattern: &Option<String>, actual: &str| {
            pattern
                .as_ref()
                .is_none_or(|pattern| is_like(pattern, actual))
        };
        self.left != Some(0)
            && equal(&self.verb, subject.verb)
            && equal(&self.resource, subject.resource)
            && equal(&self.subresource, subject.subresource)
            && like(&self.namespace, subject.namespace)
            && like(&self.name, subject.name)
    }
}

/// What a rule is matched against.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'r> {
    pub(crate) verb: &'r str,
    pub(crate) resource: &'r str,
    pub(crate) subresource: &'r str,
    pub(crate) namespace: &'r str,
    pub(crate) name: &'r str,
}

impl Faults {
    /// Adds a rule behind those in force.
    pub fn add(&self, rule: Rule) {
        self.lock().push(rule);
        self.changed.send_replace(());
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.lock().clear();
        self.changed.send_replace(());
    }

    /// Signals each change of the rules.
    pub(crate) fn signal(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The fault that a request meets among those that `wanted` takes; counts it.
    pub(crate) fn take(
        &self,
        subject: &Subject<'_>,
        wanted: impl Fn(&Fault) -> bool,
    ) -> Option<Fault> {
        let mut rules = self.lock();
        let rule = rules
            .iter_mut()
            .find(|rule| wanted(&rule.fault) && rule.matches(subject))?;
        if let Some(left) = &mut rule.left {
            *left -= 1;
        }
        Some(rule.fault.clone())
    }

    /// Whether a fault is in force for a request, without counting it.
    pub(crate) fn applies(&self, subject: &Subject<'_>, fault: &Fault) -> bool {
        let rules = self.lock();
        rules
            .iter()
            .any(|rule| rule.fault == *fault && rule.matches(subject))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a text is like a pattern in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, like) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("*", "", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(is_like(pattern, text), like, "{pattern} {text}");
        }
    }

    #[test]
    fn a_counted_rule_runs_out() {
        let faults = Faults::default();
        faults.add(Rule::new(Fault::Status(503)).verb("create").times(2));
        let subject = |verb| Subject {
            verb,
            resource: "flowruns",
            subresource: "",
            namespace: "n",
            name: "x",
        };
        assert_eq!(faults.take(&subject("get"), |_| true), None);
        for _ in 0..2 {
            assert_eq!(
                faults.take(&subject("create"), |_| true),
                Some(Fault::Status(503))
            );
        }
        assert_eq!(faults.take(&subject("create"), |_| true), None);
    }
}
