//! Faults on demand: what a test wants to go wrong, and how often.

use std::sync::Mutex;
use std::time::Duration;

use crate::request::Verb;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer comes later.
    Latency(Duration),
    /// The request is refused with this status and does nothing.
    Refuse(u16),
    /// The request is carried out and its answer is lost: the connection breaks.
    LoseAnswer,
    /// A watch ends without a word.
    DropWatch,
    /// A watch shows changes this much later.
    StaleWatch(Duration),
}

/// Which requests a fault strikes.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Only this verb.
    pub verb: Option<Verb>,
    /// Only this resource, by its plural.
    pub resource: Option<String>,
    /// Only with (`Some(true)`) or without the subresource `status`.
    pub status: Option<bool>,
    /// Only objects whose name contains this.
    pub name: Option<String>,
    /// How many requests it strikes before it is used up.
    pub times: usize,
    /// What happens.
    pub fault: Fault,
}

/// The faults of one API.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Rule>>);

impl Faults {
    /// Adds a rule; the first that fits a request strikes it.
    pub fn add(&self, rule: Rule) {
        self.lock().push(rule);
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The fault that strikes a request, if one does.
    pub(crate) fn strike(
        &self,
        verb: Verb,
        resource: &str,
        status: bool,
        name: &str,
    ) -> Option<Fault> {
        let mut rules = self.lock();
        let fits = |rule: &Rule| {
            rule.verb.is_none_or(|wanted| wanted == verb)
                && rule
                    .resource
                    .as_ref()
                    .is_none_or(|wanted| wanted == resource)
                && rule.status.is_none_or(|wanted| wanted == status)
                && rule
                    .name
                    .as_ref()
                    .is_none_or(|wanted| name.contains(wanted.as_str()))
        };
        let index = rules.iter().position(fits)?;
        let fault = rules[index].fault.clone();
        rules[index].times = rules[index].times.saturating_sub(1);
        if rules[index].times == 0 {
            rules.remove(index);
        }
        Some(fault)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Rule>> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
