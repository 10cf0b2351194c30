//! The calls of one run: those that wait for the store, those that wait for a place, those that are out.

use std::collections::BTreeMap;

use crate::driver::dispatch::{Dispatch, Ticket};
use crate::driver::live::Names;
use crate::driver::output::Output;
use crate::effect::Call;
use crate::graph::StepSet;

/// Calls by their execution id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: BTreeMap<String, Held>,
    /// A call has left, ever.
    any_left: bool,
}

#[derive(Debug)]
struct Held {
    /// `None` once it has left.
    call: Option<Box<Call>>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Waits until these steps are stored.
    Gated(StepSet),
    /// Waits for a place.
    Queued(Ticket),
    /// With the adapter.
    InFlight,
}

impl Calls {
    /// Takes a call in. It waits for a place once the steps it needs are `stored`.
    pub(super) fn add(
        &mut self,
        call: Box<Call>,
        needs: StepSet,
        stored: StepSet,
        names: Names<'_>,
        dispatch: &mut Dispatch,
    ) {
        let execution_id = call.execution_id.clone();
        let mut held = Held {
            call: Some(call),
            place: Place::Gated(needs),
        };
        held.open(&execution_id, stored, names, dispatch);
        self.calls.insert(execution_id, held);
    }

    /// Lets calls wait for a place whose needs are stored by now.
    pub(super) fn open_gates(
        &mut self,
        stored: StepSet,
        names: Names<'_>,
        dispatch: &mut Dispatch,
    ) {
        for (execution_id, held) in &mut self.calls {
            held.open(execution_id, stored, names, dispatch);
        }
    }

    /// A call leaves; `None` when it does not wait for a place.
    pub(super) fn leave(&mut self, execution_id: &str) -> Option<Box<Call>> {
        let held = self.calls.get_mut(execution_id)?;
        let Place::Queued(_) = held.place else {
            return None;
        };
        held.place = Place::InFlight;
        self.any_left = true;
        held.call.take()
    }

    /// A call has ended and frees its place; false when it is not in flight, because it was aborted.
    pub(super) fn end(
        &mut self,
        execution_id: &str,
        names: Names<'_>,
        dispatch: &mut Dispatch,
    ) -> bool {
        let in_flight = self
            .calls
            .get(execution_id)
            .is_some_and(|held| matches!(held.place, Place::InFlight));
        if in_flight {
            self.calls.remove(execution_id);
            dispatch.release(&names.key.namespace);
        }
        in_flight
    }

    /// Takes a call out. When it is in flight its socket has to be closed.
    pub(super) fn abort(
        &mut self,
        execution_id: &str,
        names: Names<'_>,
        dispatch: &mut Dispatch,
    ) -> Option<Output> {
        let namespace = &names.key.namespace;
        match self.calls.remove(execution_id)?.place {
            Place::Gated(_) => None,
            Place::Queued(ticket) => {
                dispatch.cancel(namespace, ticket);
                None
            }
            Place::InFlight => {
                dispatch.release(namespace);
                Some(Output::Abort {
                    key: names.key.clone(),
                    execution_id: execution_id.to_owned(),
                })
            }
        }
    }

    /// The execution ids, in order.
    pub(super) fn ids(&self) -> Vec<String> {
        self.calls.keys().cloned().collect()
    }

    /// Whether a call waits for the store.
    pub(super) fn any_gated(&self) -> bool {
        let gated = |held: &Held| matches!(held.place, Place::Gated(_));
        self.calls.values().any(gated)
    }

    /// Whether a call waits for a place.
    pub(super) fn is_queued(&self, execution_id: &str) -> bool {
        self.calls
            .get(execution_id)
            .is_some_and(|held| matches!(held.place, Place::Queued(_)))
    }

    /// Whether a call has left, ever.
    pub(super) fn any_left(&self) -> bool {
        self.any_left
    }
}

impl Held {
    fn open(
        &mut self,
        execution_id: &str,
        stored: StepSet,
        names: Names<'_>,
        dispatch: &mut Dispatch,
    ) {
        if let Place::Gated(needs) = self.place
            && needs & !stored == 0
        {
            let namespace = &names.key.namespace;
            let ticket = dispatch.enqueue(namespace, names.id, execution_id.to_owned());
            self.place = Place::Queued(ticket);
        }
    }
}
