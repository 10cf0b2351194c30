//! What a world is like: how long things take and what goes wrong.

use std::time::Duration;

use kubezap_engine::driver::{Config, RunKey};
use kubezap_engine::effect::Call;
use kubezap_engine::observation::{CallOutcome, Response};
use kubezap_engine::run::Run;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What becomes of a write or a label.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Fault {
    /// It arrives and its answer comes back.
    #[default]
    None,
    /// It arrives; its answer does not.
    AnswerLost,
    /// It does not arrive.
    Lost,
    /// It arrives this long after its sender has given it up.
    Late(Duration),
    /// Refused for good.
    Refused,
}

type Calling = dyn FnMut(&RunKey, &Call) -> (Duration, CallOutcome);
type Writing = dyn FnMut(&RunKey, Option<&Run>) -> Fault;

/// What the world is like. Every hook is asked once for each thing that happens.
pub(crate) struct Nature {
    /// How a call ends, and after how long.
    pub(crate) call: Box<Calling>,
    /// What becomes of a write of this status, or of a label (`None`).
    pub(crate) write: Box<Writing>,
    /// Whether a read is answered.
    pub(crate) read: Box<dyn FnMut(&RunKey) -> bool>,
    /// How long a message takes to the store and back, and an event to a watch.
    pub(crate) latency: Box<dyn FnMut() -> Duration>,
    /// A watch shows runs as they are, those that are over included; otherwise these leave it.
    pub(crate) watch_shows_all: bool,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            call: Box::new(|_, _| (ms(10), ok())),
            write: Box::new(|_, _| Fault::None),
            read: Box::new(|_| true),
            latency: Box::new(|| ms(2)),
            watch_shows_all: false,
        }
    }
}

pub(crate) fn ok() -> CallOutcome {
    status(200)
}

pub(crate) fn status(status: u16) -> CallOutcome {
    CallOutcome::Response(Response {
        status,
        headers: Vec::new(),
        body: br#"{"id":"7"}"#.to_vec(),
    })
}
pub(crate) fn config() -> Config {
    Config {
        incarnation: String::new(),
        calls_per_namespace: 64,
        calls_total: 1000,
        resume_per_second: 100,
        coalesce: ms(250),
    }
}
