//! Which call leaves next: a bounded number in flight, per namespace and in all, round-robin between namespaces.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::RunId;

/// A place in the queue.
pub(super) type Ticket = u64;

/// A call that has its place.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) namespace: Arc<str>,
    pub(super) run: RunId,
    pub(super) execution_id: String,
}

/// The calls that wait and the places that are taken. Everything costs the logarithm of how many there are.
#[derive(Debug)]
pub(super) struct Dispatch {
    per_namespace: usize,
    total: usize,
    in_flight: usize,
    lanes: BTreeMap<Arc<str>, Lane>,
    /// Namespaces whose turn comes, each at most once. One that lost its reason to be here is skipped.
    ring: VecDeque<Arc<str>>,
    next_ticket: Ticket,
}

#[derive(Debug, Default)]
struct Lane {
    in_flight: usize,
    waiting: BTreeMap<Ticket, (RunId, String)>,
    in_ring: bool,
}

impl Dispatch {
    pub(super) fn new(per_namespace: usize, total: usize) -> Self {
        Self {
            per_namespace: per_namespace.max(1),
            total: total.max(1),
            in_flight: 0,
            lanes: BTreeMap::new(),
            ring: VecDeque::new(),
            next_ticket: 0,
        }
    }

    /// Lets a call wait for a place.
    pub(super) fn enqueue(&mut self, namespace: &str, run: RunId, execution_id: String) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let name: Arc<str> = match self.lanes.get_key_value(namespace) {
            Some((name, _)) => name.clone(),
            None => namespace.into(),
        };
        let lane = self.lanes.entry(name.clone()).or_default();
        lane.waiting.insert(ticket, (run, execution_id));
        Self::line_up(&mut self.ring, self.per_namespace, &name, lane);
        ticket
    }

    /// Takes a call out of the queue.
    pub(super) fn cancel(&mut self, namespace: &str, ticket: Ticket) {
        if let Some(lane) = self.lanes.get_mut(namespace) {
            lane.waiting.remove(&ticket);
        }
        self.forget_idle(namespace);
    }

    /// Gives the next call that may leave; its place is taken until [`Dispatch::release`].
    pub(super) fn next(&mut self) -> Option<Leaving> {
        while self.in_flight < self.total {
            let name = self.ring.pop_front()?;
            let Some(lane) = self.lanes.get_mut(&name) else {
                continue;
            };
            lane.in_ring = false;
            if lane.in_flight >= self.per_namespace {
                continue;
            }
            let Some((_, (run, execution_id))) = lane.waiting.pop_first() else {
                self.forget_idle(&name);
                continue;
            };
            lane.in_flight += 1;
            self.in_flight += 1;
            Self::line_up(&mut self.ring, self.per_namespace, &name, lane);
            return Some(Leaving {
                namespace: name,
                run,
                execution_id,
            });
        }
        None
    }

    /// Frees the place of a call that has ended.
    pub(super) fn release(&mut self, namespace: &str) {
        let Some((name, _)) = self.lanes.get_key_value(namespace) else {
            return;
        };
        let name = name.clone();
        if let Some(lane) = self.lanes.get_mut(&name) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
            self.in_flight = self.in_flight.saturating_sub(1);
            Self::line_up(&mut self.ring, self.per_namespace, &name, lane);
        }
        self.forget_idle(namespace);
    }

    fn line_up(ring: &mut VecDeque<Arc<str>>, cap: usize, name: &Arc<str>, lane: &mut Lane) {
        if !lane.in_ring && !lane.waiting.is_empty() && lane.in_flight < cap {
            lane.in_ring = true;
            ring.push_back(name.clone());
        }
    }

    fn forget_idle(&mut self, namespace: &str) {
        let idle = |lane: &Lane| lane.in_flight == 0 && lane.waiting.is_empty() && !lane.in_ring;
        if self.lanes.get(namespace).is_some_and(idle) {
            self.lanes.remove(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(dispatch: &mut Dispatch) -> Vec<String> {
        std::iter::from_fn(|| dispatch.next().map(|call| call.execution_id)).collect()
    }

    #[test]
    fn namespaces_take_turns_under_both_caps() {
        let mut dispatch = Dispatch::new(2, 5);
        for call in ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2"] {
            dispatch.enqueue(&call[..1], 0, call.into());
        }
        assert_eq!(drain(&mut dispatch), ["a1", "b1", "c1", "a2", "b2"]);
        dispatch.release("a");
        assert_eq!(drain(&mut dispatch), ["c2"]);
        dispatch.release("c");
        assert_eq!(drain(&mut dispatch), ["a3"]);
        dispatch.release("b");
        assert_eq!(drain(&mut dispatch), ["b3"]);
    }

    #[test]
    fn a_busy_namespace_does_not_hold_up_another() {
        let mut dispatch = Dispatch::new(64, 64);
        for n in 0..1000 {
            dispatch.enqueue("noisy", 0, format!("n{n}"));
        }
        assert_eq!(drain(&mut dispatch).len(), 64);
        dispatch.enqueue("quiet", 1, "q".into());
        dispatch.release("noisy");
        dispatch.release("noisy");
        assert!(drain(&mut dispatch).contains(&"q".to_owned()));
    }

    #[test]
    fn cancelled_calls_do_not_leave_and_lanes_are_forgotten() {
        let mut dispatch = Dispatch::new(1, 1);
        let first = dispatch.enqueue("a", 0, "a1".into());
        dispatch.enqueue("b", 0, "b1".into());
        dispatch.cancel("a", first);
        assert_eq!(drain(&mut dispatch), ["b1"]);
        dispatch.release("b");
        assert_eq!(drain(&mut dispatch), [""; 0]);
        assert!(dispatch.lanes.is_empty() && dispatch.ring.is_empty());
        assert_eq!(dispatch.in_flight, 0);
    }
}
