//! What the answers of an adapter mean for a run.

use jiff::Timestamp;

use super::backoff::backoff;
use super::held::{Question, Stage};
use super::input::{FlowAnswer, ReadAnswer, RunKey, RunObject, WriteAnswer};
use super::intake::is_terminal;
use super::live::{Live, Outcome};
use super::output::Output;
use super::slot::slot_of_run;
use super::{Driver, LEFT_ALONE, RunId};

impl Driver {
    /// The run that an answer is for. A run that was given up may come back now.
    fn answered(&mut self, key: &RunKey, now: Timestamp) -> Option<RunId> {
        let id = *self.ids.get(key)?;
        let held = self.runs.get_mut(&id)?;
        match held.stage {
            Stage::Draining { again: true } => {
                held.stage = Stage::Looking {
                    unless_moved: None,
                    question: Question::at(now),
                };
                self.touched.push(id);
                None
            }
            Stage::Draining { again: false } => {
                self.forget(id);
                None
            }
            _ => Some(id),
        }
    }

    pub(super) fn flow_loaded(&mut self, key: &RunKey, answer: FlowAnswer, now: Timestamp) {
        let Some(id) = self.answered(key, now) else {
            return;
        };
        let incarnation = self.incarnation();
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        let Stage::Loading { found, question } = &mut held.stage else {
            return;
        };
        let mut version = || std::mem::take(&mut found.resource_version);
        let live = match answer {
            FlowAnswer::Found { revision, flow } => Live::new(
                flow,
                revision,
                &held.spec,
                version(),
                found.status.take(),
                &incarnation,
            ),
            FlowAnswer::Refused { reason, message } => {
                Live::refused(reason, &message, version(), found.status.take(), now)
            }
            FlowAnswer::Unavailable => {
                question.failed(now, |n| backoff(&self.config.incarnation, &key.uid, n));
                self.touched.push(id);
                return;
            }
        };
        let cancel = held.cancel;
        held.stage = Stage::Live(Box::new(live));
        self.with_id(id, now, |live, names, context| {
            live.begin(cancel, names, context);
        });
    }

    pub(super) fn written(&mut self, key: &RunKey, answer: WriteAnswer, now: Timestamp) {
        let Some(id) = self.answered(key, now) else {
            return;
        };
        match self.runs.get(&id).map(|held| &held.stage) {
            Some(Stage::Live(_)) => {
                let outcome = self.with_id(id, now, |live, names, context| {
                    live.written(answer, names, context)
                });
                self.conclude(id, outcome, now);
            }
            Some(Stage::Labelling { .. }) => self.labelled(id, answer, now),
            _ => {}
        }
    }

    fn labelled(&mut self, id: RunId, answer: WriteAnswer, now: Timestamp) {
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        let Stage::Labelling { found, question } = &mut held.stage else {
            return;
        };
        self.touched.push(id);
        match answer {
            WriteAnswer::Stored { resource_version } => {
                let object = RunObject {
                    spec: held.spec.clone(),
                    resource_version,
                    slot: Some(slot_of_run(&held.spec)),
                    cancel: held.cancel,
                    deleting: false,
                    status: found.status.take(),
                };
                question.answered(now);
                self.adopt(id, object, now);
            }
            WriteAnswer::Conflict => {
                held.stage = Stage::Looking {
                    unless_moved: None,
                    question: Question::at(now),
                };
            }
            WriteAnswer::Gone => {
                question.answered(now);
                self.deleted(id, now);
            }
            WriteAnswer::Refused { message: _ } => {
                question.answered(now);
                self.mark_over(id);
                self.give_up(id, "the label of its slot was refused", now);
            }
            WriteAnswer::Unavailable => {
                let uid = &held.key.uid;
                question.failed(now, |n| backoff(&self.config.incarnation, uid, n));
            }
        }
    }

    pub(super) fn read(&mut self, key: &RunKey, answer: ReadAnswer, now: Timestamp) {
        let Some(id) = self.answered(key, now) else {
            return;
        };
        match self.runs.get(&id).map(|held| &held.stage) {
            Some(Stage::Live(_)) => {
                if let ReadAnswer::Found(object) = &answer
                    && object.cancel
                    && let Some(held) = self.runs.get_mut(&id)
                {
                    held.cancel = true;
                }
                let outcome = self.with_id(id, now, |live, names, context| {
                    live.read(answer, names, context)
                });
                self.conclude(id, outcome, now);
            }
            Some(Stage::Looking { .. }) => self.looked(id, answer, now),
            _ => {}
        }
    }

    fn looked(&mut self, id: RunId, answer: ReadAnswer, now: Timestamp) {
        let Some(held) = self.runs.get_mut(&id) else {
            return;
        };
        let Stage::Looking {
            unless_moved,
            question,
        } = &mut held.stage
        else {
            return;
        };
        self.touched.push(id);
        let object = match answer {
            ReadAnswer::Found(object) if object.spec.uid == held.key.uid => object,
            ReadAnswer::Found(_) | ReadAnswer::Gone => {
                question.answered(now);
                return self.deleted(id, now);
            }
            ReadAnswer::Unavailable => {
                let uid = &held.key.uid;
                question.failed(now, |n| backoff(&self.config.incarnation, uid, n));
                return;
            }
        };
        match unless_moved {
            Some(before) if *before != object.status && !is_terminal(&object) => {
                *before = object.status;
                *question = Question::at(now + LEFT_ALONE);
            }
            _ => {
                question.answered(now);
                self.adopt(id, object, now);
            }
        }
    }

    /// Takes up a run that was read or labelled, unless it is not ours or nothing is left to do.
    fn adopt(&mut self, id: RunId, object: RunObject, now: Timestamp) {
        if object.deleting || is_terminal(&object) {
            self.mark_over(id);
            self.give_up(id, "it is over", now);
        } else if self.is_ours(&object) {
            self.take_up(id, object, false, now);
        } else {
            self.give_up(id, "another owner", now);
        }
    }

    fn conclude(&mut self, id: RunId, outcome: Option<Outcome>, now: Timestamp) {
        match outcome {
            None | Some(Outcome::Held) => {}
            Some(Outcome::Finished(run)) => {
                self.mark_over(id);
                self.with_id(id, now, |live, names, context| {
                    live.abort_all(names, context);
                    let key = names.key.clone();
                    context.out.push(Output::Finished { key, run });
                });
                self.forget(id);
            }
            Some(Outcome::Gone) => self.deleted(id, now),
            Some(Outcome::Unwritable) => {
                self.mark_over(id);
                self.give_up(id, "the store refuses even its shortest status", now);
            }
            Some(Outcome::Lost(status)) => {
                let over = status
                    .as_ref()
                    .as_ref()
                    .is_some_and(|run| run.phase.is_terminal());
                if over {
                    self.mark_over(id);
                    return self.give_up(id, "another owner", now);
                }
                self.stop_calls(id, "another owner", now);
                let Some(held) = self.runs.get_mut(&id) else {
                    return;
                };
                if held.left {
                    return self.forget(id);
                }
                held.stage = Stage::Looking {
                    unless_moved: Some(*status),
                    question: Question::at(now + LEFT_ALONE),
                };
            }
        }
    }
}
