//! Who may call when there are more calls than places.

use std::collections::BTreeMap;

use kubezap_engine::driver::WriteReason;
use kubezap_engine::run::{RunPhase, StepPhase, reason};

use crate::flows::{chain, flow, http};
use crate::nature::{Nature, config, ms, ok};
use crate::world::{World, all_slots};

fn narrow(per_namespace: usize, total: usize) -> World {
    let mut settings = config();
    settings.calls_per_namespace = per_namespace;
    settings.calls_total = total;
    let mut world = World::empty(settings, Nature::default());
    world.serve("flow", flow(chain(1)));
    let owner = world.add_owner();
    world.give(owner, all_slots());
    world
}

#[test]
fn namespaces_take_turns() {
    let mut world = narrow(2, 3);
    world.nature.call = Box::new(|_, _| (ms(100), ok()));
    for n in 0..6 {
        world.create_in("noisy", &format!("noisy-{n}"), "flow", Some(1));
    }
    for n in 0..3 {
        world.create_in("quiet", &format!("quiet-{n}"), "flow", Some(1));
    }
    world.run();
    let order: Vec<_> = world.called.iter().map(|call| &call.run[..5]).collect();
    assert_eq!(
        order,
        // Each place that becomes free goes to the namespace that has waited longest for its turn.
        [
            "noisy", "noisy", "quiet", "quiet", "noisy", "noisy", "quiet", "noisy", "noisy"
        ]
    );
    assert!(world.finished.len() == 9);
}

#[test]
fn no_more_calls_are_out_than_there_are_places() {
    let mut world = narrow(3, 5);
    world.serve(
        "wide",
        flow((0..10).map(|n| http(&format!("s{n}"), &[])).collect()),
    );
    world.nature.call = Box::new(|_, call| (ms(50 + 7 * call.step as u64), ok()));
    for namespace in ["a", "b", "c"] {
        world.create_in(namespace, &format!("run-{namespace}"), "wide", Some(1));
    }
    world.run();
    // From when each call left and how long it took, how many were out at each moment.
    let mut changes = Vec::new();
    for call in &world.called {
        let index: u64 = call.step[1..].parse().unwrap();
        changes.push((call.at, 1, call.run.clone()));
        changes.push((call.at + ms(50 + 7 * index), -1, call.run.clone()));
    }
    changes.sort();
    let mut out: BTreeMap<String, i32> = BTreeMap::new();
    for (_, change, run) in changes {
        *out.entry(run).or_default() += change;
        assert!(
            out.values().all(|n| *n <= 3) && out.values().sum::<i32>() <= 5,
            "{out:?}"
        );
    }
    assert_eq!(world.called.len(), 30);
    assert_eq!(world.finished.len(), 3);
}

#[test]
fn run_that_waits_ten_seconds_for_its_first_turn_is_shown_as_queued() {
    let mut world = narrow(1, 1);
    world.nature.call = Box::new(|_, _| (ms(20_000), ok()));
    world.create("first", "flow");
    world.create("second", "flow");
    world.run_for(ms(10_500));
    let queued = world.stored("second").clone();
    assert_eq!(
        (queued.phase, queued.reason.as_str()),
        (RunPhase::Pending, reason::QUEUED)
    );
    assert_eq!(queued.start_time, None);
    assert_eq!(queued.revision.as_deref(), Some("flow-1"));
    assert_eq!(queued.steps[0].phase, StepPhase::Pending);
    world.run_for(ms(10_000));
    let running = world.stored("second");
    assert_eq!(
        (running.phase, running.reason.as_str()),
        (RunPhase::Running, "")
    );
    world.run();
    assert_eq!(
        world.reasons("second"),
        [
            WriteReason::Running,
            WriteReason::Running,
            WriteReason::Terminal
        ]
    );
}

#[test]
fn short_queue_costs_no_write() {
    let mut world = narrow(1, 1);
    world.nature.call = Box::new(|_, _| (ms(100), ok()));
    world.create("first", "flow");
    world.create("second", "flow");
    world.run();
    assert_eq!(world.reasons("second"), [WriteReason::Terminal]);
}

#[test]
fn time_of_a_call_runs_from_when_it_leaves() {
    let mut world = narrow(1, 1);
    let mut step = http("s1", &[]);
    step.timeout = Some(ms(1500));
    world.serve("flow", flow(vec![step]));
    world.nature.call = Box::new(|_, _| (ms(1000), ok()));
    for n in 0..5 {
        world.create(&format!("run-{n}"), "flow");
    }
    world.run();
    assert!(
        world
            .finished
            .iter()
            .all(|(_, run)| run.phase == RunPhase::Succeeded)
    );
}

#[test]
fn cancelled_run_leaves_the_queue() {
    let mut world = narrow(1, 1);
    world.nature.call = Box::new(|_, _| (ms(1000), ok()));
    for name in ["first", "second", "third"] {
        world.create(name, "flow");
    }
    world.run_for(ms(100));
    world.touch("second", |run| run.cancel = true);
    world.run();
    let called: Vec<_> = world.called.iter().map(|call| call.run.as_str()).collect();
    assert_eq!(called, ["first", "third"]);
    assert_eq!(world.stored("second").phase, RunPhase::Cancelled);
}

#[test]
fn aborted_call_frees_its_place() {
    let mut world = narrow(1, 1);
    world.nature.call =
        Box::new(|key, _| (ms(if key.name == "stuck" { 600_000 } else { 10 }), ok()));
    world.create("stuck", "flow");
    world.create("next", "flow");
    world.run_for(ms(29_000));
    assert_eq!(world.calls("next").len(), 0);
    world.run_for(ms(2_000));
    assert_eq!(world.stored("next").phase, RunPhase::Succeeded);
    assert_eq!(world.stored("stuck").phase, RunPhase::Failed);
    assert_eq!(world.aborted.len(), 1);
}

#[test]
fn queued_run_is_resumed_after_a_restart() {
    let mut world = narrow(1, 1);
    world.nature.call = Box::new(|_, _| (ms(1000), ok()));
    world.create("first", "flow");
    world.create("second", "flow");
    world.run_for(ms(500));
    world.crash(0);
    world.restart(0);
    world.give(0, all_slots());
    world.run();
    assert_eq!(world.calls("second"), ["s1"]);
    assert_eq!(world.stored("second").phase, RunPhase::Succeeded);
}
