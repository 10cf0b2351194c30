//! The conflict rule, answers that do not come, cancel and deletion.

use std::cell::Cell;
use std::rc::Rc;

use kubezap_engine::driver::{Input, WriteReason};
use kubezap_engine::run::{RunPhase, StepPhase, reason};

use crate::flows::{chain, flow, http};
use crate::nature::{Fault, ms, ok};
use crate::world::World;

use WriteReason::{Gate, Terminal};

/// Lets the n-th write (from 1) meet a fault.
fn nth(world: &mut World, n: u32, fault: Fault) {
    let mut count = 0;
    world.nature.write = Box::new(move |_, _| {
        count += 1;
        if count == n { fault } else { Fault::None }
    });
}

#[test]
fn metadata_that_moved_is_taken_in_and_the_write_repeated() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    world.run_for(ms(10));
    world.touch("run", |_| {});
    world.run();
    assert_eq!(world.reads, 1);
    assert_eq!(world.reasons("run"), [Gate, Terminal]);
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
    assert_eq!(world.calls("run"), ["s1", "s2"]);
}

#[test]
fn cancel_is_found_by_the_read_after_a_conflict() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    world.run_for(ms(10));
    // No watch event: the store alone knows of it.
    let object = world.store.get_mut("run").unwrap();
    object.cancel = true;
    object.resource_version = "77".into();
    world.run();
    let run = world.stored("run");
    assert_eq!(run.phase, RunPhase::Cancelled);
    assert_eq!(run.steps[0].phase, StepPhase::Succeeded);
    assert_eq!(world.calls("run"), ["s1"]);
    assert_eq!(world.reads, 1);
}

#[test]
fn lost_answer_is_resolved_by_one_read() {
    for (n, steps) in [(1, 3), (2, 3), (3, 3), (1, 1)] {
        let mut world = World::with(flow(chain(steps)));
        nth(&mut world, n, Fault::AnswerLost);
        world.create("run", "flow");
        world.run();
        assert_eq!(world.written["run"].len(), steps, "nothing is stored twice");
        assert_eq!(world.called.len(), steps);
        assert_eq!(world.reads, 1);
        assert_eq!(world.finished.len(), 1);
        assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
    }
}

#[test]
fn lost_write_is_sent_again_without_a_read() {
    let mut world = World::with(flow(chain(3)));
    nth(&mut world, 2, Fault::Lost);
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Gate, Gate, Terminal]);
    assert_eq!(world.reads, 0);
}

#[test]
fn late_write_of_ours_is_recognised() {
    let mut world = World::with(flow(chain(2)));
    nth(&mut world, 1, Fault::Late(ms(3)));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.written["run"].len(), 2);
    assert_eq!(world.called.len(), 2);
}

#[test]
fn answer_lost_and_metadata_moved_is_still_ours() {
    let mut world = World::with(flow(chain(2)));
    nth(&mut world, 1, Fault::AnswerLost);
    world.create("run", "flow");
    world.later(ms(30), |world| world.touch("run", |_| {}));
    world.run();
    assert_eq!(world.written["run"].len(), 2);
    assert_eq!(world.called.len(), 2);
}

#[test]
fn observations_are_taken_in_while_a_write_is_tried_again() {
    let steps = vec![http("a", &[]), http("b", &[]), http("after-a", &["a"])];
    let mut world = World::with(flow(steps));
    let down = Rc::new(Cell::new(true));
    let is_down = down.clone();
    world.nature.write = Box::new(move |_, _| {
        if is_down.get() {
            Fault::Lost
        } else {
            Fault::None
        }
    });
    world.nature.call = Box::new(|_, call| (ms(if call.step == 1 { 500 } else { 10 }), ok()));
    world.create("run", "flow");
    world.run_for(ms(2000));
    assert_eq!(world.calls("run"), ["a", "b"]);
    down.set(false);
    world.run();
    let writes = &world.written["run"];
    assert_eq!(
        writes[0].run.steps[1].phase,
        StepPhase::Running,
        "the same write again"
    );
    assert_eq!(writes[1].run.steps[1].phase, StepPhase::Succeeded);
    assert_eq!(world.calls("run"), ["a", "b", "after-a"]);
}

#[test]
fn retries_back_off_to_five_seconds() {
    let mut world = World::with(flow(chain(1)));
    let tries = Rc::new(Cell::new(0));
    let count = tries.clone();
    world.nature.write = Box::new(move |_, _| {
        count.set(count.get() + 1);
        Fault::Lost
    });
    world.create("run", "flow");
    world.run_for(ms(60_000));
    assert!(
        (15..=32).contains(&tries.get()),
        "{} tries in a minute",
        tries.get()
    );
}

#[test]
fn unanswered_read_is_read_again() {
    let mut world = World::with(flow(chain(2)));
    let mut count = 0;
    world.nature.read = Box::new(move |_| {
        count += 1;
        count > 3
    });
    nth(&mut world, 1, Fault::AnswerLost);
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reads, 4);
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
}

#[test]
fn foreign_status_drops_the_run_and_aborts_its_calls() {
    let steps = vec![http("a", &[]), http("after-a", &["a"]), http("slow", &[])];
    let mut world = World::with(flow(steps));
    world.nature.call = Box::new(|_, call| (ms(if call.step == 2 { 5000 } else { 10 }), ok()));
    world.create("run", "flow");
    world.run_for(ms(10));
    foreign(&mut world, |run| run.phase = RunPhase::Running);
    world.run_for(ms(1000));
    assert_eq!(world.dropped, [("run".to_owned(), "another owner")]);
    assert_eq!(world.aborted.len(), 1);
    assert_eq!(world.reasons("run"), []);
    assert_eq!(world.calls("run"), ["a", "slow"]);
}

/// Writes a status as another owner would, unseen by watches.
fn foreign(world: &mut World, change: impl FnOnce(&mut kubezap_engine::run::Run)) {
    let object = world.store.get_mut("run").unwrap();
    let mut run = object.status.clone().unwrap_or_default();
    run.revision = Some("flow-1".into());
    change(&mut run);
    object.status = Some(run);
    object.resource_version = (object.resource_version.parse::<u64>().unwrap() + 1000).to_string();
}

#[test]
fn run_that_someone_else_left_unfinished_is_taken_up_again() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    world.run_for(ms(10));
    foreign(&mut world, |run| run.phase = RunPhase::Running);
    world.later(ms(20_000), |world| {
        foreign(world, |run| run.message = "still here".into())
    });
    world.run_for(ms(40_000));
    // Looked at after 15 s, when it was as before and was taken up; the other one came back and was found out.
    assert_eq!(world.dropped.len(), 1);
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
}

#[test]
fn run_that_someone_else_is_at_is_left_alone() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    world.run_for(ms(10));
    foreign(&mut world, |run| run.phase = RunPhase::Running);
    for n in 1..10 {
        world.later(ms(10_000 * n), move |world| {
            foreign(world, |run| run.message = n.to_string())
        });
    }
    world.later(ms(100_000), |world| {
        foreign(world, |run| run.phase = RunPhase::Failed)
    });
    world.run();
    assert_eq!(world.calls("run"), ["s1"]);
    assert_eq!(world.held(0), 0);
}

#[test]
fn cancel_seen_aborts_calls_and_ends_the_run() {
    let mut world = World::with(flow(chain(2)));
    world.nature.call = Box::new(|_, _| (ms(60_000), ok()));
    world.create("run", "flow");
    world.run_for(ms(1000));
    world.touch("run", |run| run.cancel = true);
    world.run_for(ms(100));
    let run = world.stored("run");
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Cancelled, reason::CANCELLED)
    );
    assert_eq!(run.steps[0].reason, reason::CANCELED);
    assert_eq!(world.aborted.len(), 1);
    assert_eq!(world.held(0), 0);
}

#[test]
fn run_cancelled_before_it_starts_makes_no_call() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    world.touch("run", |run| run.cancel = true);
    world.run();
    assert_eq!(world.stored("run").phase, RunPhase::Cancelled);
    assert!(world.called.is_empty());
}

#[test]
fn deletion_aborts_calls_and_writes_nothing() {
    let mut world = World::with(flow(chain(2)));
    world.nature.call = Box::new(|_, _| (ms(100), ok()));
    world.create("run", "flow");
    world.run_for(ms(50));
    world.touch("run", |run| run.deleting = true);
    world.run();
    assert_eq!(world.aborted.len(), 1);
    assert_eq!(world.reasons("run"), []);
    assert_eq!(world.held(0), 0);
}

#[test]
fn run_that_is_gone_is_forgotten() {
    let mut world = World::with(flow(chain(2)));
    world.nature.call = Box::new(|_, _| (ms(100), ok()));
    world.create("run", "flow");
    world.run_for(ms(50));
    world.delete("run");
    world.run();
    assert_eq!((world.aborted.len(), world.held(0)), (1, 0));
}

#[test]
fn gone_in_the_answer_of_a_write_stops_the_run_for_good() {
    let steps = vec![http("a", &[]), http("after-a", &["a"]), http("slow", &[])];
    let mut world = World::with(flow(steps));
    world.nature.call = Box::new(|_, call| (ms(if call.step == 2 { 5000 } else { 10 }), ok()));
    let key = world.create("run", "flow");
    let object = world.store["run"].clone();
    world.run_for(ms(10));
    world.store.remove("run");
    world.run_for(ms(100));
    assert_eq!((world.aborted.len(), world.held(0)), (1, 0));
    world.reach(0, Input::Seen(object.clone()));
    assert_eq!(
        world.held(0),
        0,
        "an old watch event does not bring it back"
    );
    world.reach(0, Input::Gone(key));
    world.reach(0, Input::Seen(object));
    assert_eq!(world.held(0), 1, "nothing is remembered for ever");
}

#[test]
fn old_watch_event_does_not_start_a_finished_run_again() {
    for shows_all in [false, true] {
        let mut world = World::with(flow(chain(2)));
        world.nature.watch_shows_all = shows_all;
        world.create("run", "flow");
        world.run_for(ms(20));
        let old = world.store["run"].clone();
        // The watch stands still from here on.
        world.owners[0].slots.clear();
        world.run();
        assert_eq!(world.finished.len(), 1);
        world.reach(0, Input::Seen(old.clone()));
        assert_eq!(world.held(0), 0);
        let mut over = old.clone();
        over.status = Some(world.stored("run").clone());
        world.reach(0, Input::Seen(over));
        world.run();
        assert_eq!((world.called.len(), world.held(0)), (2, 0));
    }
}

#[test]
fn end_is_reported_though_the_watch_is_faster_than_the_answer() {
    let mut world = World::with(flow(chain(1)));
    let key = world.create("run", "flow");
    world.run_for(ms(17));
    // The last write is stored; its answer is on its way.
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
    world.reach(0, Input::Gone(key));
    world.run();
    assert_eq!(world.finished.len(), 1);
    assert!(world.dropped.is_empty());
}

#[test]
fn terminal_run_that_is_seen_is_not_started() {
    let mut world = World::with(flow(chain(1)));
    world.create("run", "flow");
    world.run();
    let over = world.store["run"].clone();
    world.reach(0, Input::Seen(over));
    assert_eq!(world.held(0), 0);
    assert_eq!(world.loads.len(), 1);
}

#[test]
fn deletion_is_found_by_the_read_after_a_conflict() {
    let mut world = World::with(flow(vec![http("a", &[]), http("after-a", &["a"])]));
    world.create("run", "flow");
    world.run_for(ms(10));
    let object = world.store.get_mut("run").unwrap();
    object.deleting = true;
    object.resource_version = "77".into();
    world.run();
    assert_eq!(world.reasons("run"), []);
    assert_eq!((world.calls("run").len(), world.held(0)), (1, 0));
}

#[test]
fn run_that_someone_else_ended_is_forgotten() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    let old = world.store["run"].clone();
    world.run_for(ms(10));
    foreign(&mut world, |run| run.phase = RunPhase::Failed);
    world.run();
    assert_eq!(world.held(0), 0);
    assert_eq!(world.reads, 1);
    world.reach(0, Input::Seen(old));
    assert_eq!(world.held(0), 0);
}

#[test]
fn run_that_has_left_the_watch_is_not_looked_at_again() {
    let mut world = World::with(flow(chain(1)));
    let key = world.create("run", "flow");
    world.run_for(ms(14));
    // The last write is on its way when someone else's comes first.
    foreign(&mut world, |run| run.phase = RunPhase::Running);
    world.reach(0, Input::Gone(key));
    world.run();
    assert_eq!((world.reads, world.held(0)), (1, 0));
}

#[test]
fn empty_status_is_no_status() {
    let mut world = World::with(flow(chain(2)));
    world.nature.latency = Box::new(|| ms(1));
    world.owners[0].slots.clear();
    world.create("run", "flow");
    world.owners[0].slots = crate::world::all_slots();
    world.touch("run", |run| run.status = Some(Default::default()));
    world.run_for(ms(3));
    assert_eq!(
        world.calls("run"),
        ["s1"],
        "it is started without waiting for a turn"
    );
    world.touch("run", |_| {});
    world.run();
    assert_eq!(world.reads, 1);
    assert_eq!(world.written["run"].len(), 2);
}
