//! Slots, labels, and taking runs up after a restart.

use std::collections::BTreeSet;

use kubezap_engine::driver::{Slot, slot_of};
use kubezap_engine::run::{RunPhase, StepPhase};

use crate::flows::{chain, flow, http, wait};
use crate::nature::{Fault, Nature, config, ms, ok};
use crate::world::{World, all_slots, start};

#[test]
fn slots_are_spread_and_never_change() {
    assert_eq!(slot_of("shop", "orders"), slot_of("shop", "orders"));
    let slots: BTreeSet<_> = (0..2000)
        .map(|n| slot_of("shop", &format!("t{n}")))
        .collect();
    assert_eq!(slots, all_slots());
    // printf 'shop/orders' | sha256sum: its first two bytes, modulo 64.
    assert_eq!(slot_of("shop", "orders"), SHOP_ORDERS);
}

const SHOP_ORDERS: Slot = 15;

#[test]
fn run_of_another_slot_is_left_to_its_owner() {
    let mut world = World::with(flow(chain(1)));
    let others: BTreeSet<_> = all_slots()
        .into_iter()
        .filter(|slot| *slot != slot_of("shop", "flow"))
        .collect();
    world.give(0, others);
    world.owners[0].slots = all_slots();
    world.create("run", "flow");
    world.run();
    assert!(world.loads.is_empty() && world.held(0) == 0);
}

#[test]
fn lost_slot_drops_its_runs_and_aborts_their_calls() {
    let mut world = World::with(flow(chain(2)));
    world.serve("other", flow(chain(2)));
    world.nature.call = Box::new(|_, _| (ms(1000), ok()));
    world.create("run", "flow");
    world.create("kept", "other");
    world.run_for(ms(100));
    assert_ne!(slot_of("shop", "flow"), slot_of("shop", "other"));
    let mut slots = all_slots();
    slots.remove(&slot_of("shop", "flow"));
    world.give(0, slots);
    world.run();
    assert_eq!(world.aborted.len(), 1);
    assert_eq!(
        world.dropped,
        [("run".to_owned(), "its slot is no longer held")]
    );
    assert_eq!(world.reasons("run"), []);
    assert_eq!(world.stored("kept").phase, RunPhase::Succeeded);
}

#[test]
fn same_slots_again_change_nothing() {
    let mut world = World::with(flow(chain(2)));
    world.nature.call = Box::new(|_, _| (ms(100), ok()));
    world.create("run", "flow");
    world.run_for(ms(50));
    world.give(0, all_slots());
    world.run();
    assert!(world.aborted.is_empty());
    assert_eq!(world.called.len(), 2);
}

#[test]
fn slot_that_comes_back_during_a_write_is_taken_up_after_its_answer() {
    let mut world = World::with(flow(chain(3)));
    world.create("run", "flow");
    world.run_for(ms(15));
    // The first write is on its way.
    world.give(0, BTreeSet::new());
    world.give(0, all_slots());
    world.run();
    let run = world.stored("run");
    assert_eq!(run.phase, RunPhase::Succeeded);
    assert_eq!(world.calls("run"), ["s1", "s2", "s3"]);
}

#[test]
fn unlabelled_run_is_labelled_and_started() {
    let mut world = World::with(flow(chain(2)));
    world.create_in("shop", "run", "flow", None);
    world.run();
    assert_eq!(world.store["run"].slot, Some(slot_of("shop", "flow")));
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
    assert_eq!(world.written["run"].len(), 2);
    assert_eq!(world.reads, 0);
}

#[test]
fn unlabelled_run_of_another_slot_is_labelled_and_let_go() {
    let flow_slot = slot_of("shop", "flow");
    assert_ne!(flow_slot, 0);
    let mut world = World::empty(config(), Nature::default());
    world.serve("flow", flow(chain(1)));
    let first = world.add_owner();
    let second = world.add_owner();
    world.give(first, [0].into());
    world.give(second, [flow_slot].into());
    world.create_in("shop", "run", "flow", None);
    world.run();
    assert_eq!(world.store["run"].slot, Some(flow_slot));
    assert_eq!(
        world
            .called
            .iter()
            .map(|call| call.owner)
            .collect::<Vec<_>>(),
        [second]
    );
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
    assert_eq!(world.held(first), 0);
}

#[test]
fn label_meets_the_same_faults_as_a_write() {
    for fault in [Fault::AnswerLost, Fault::Lost, Fault::Late(ms(50))] {
        let mut world = World::with(flow(chain(1)));
        let mut first = true;
        world.nature.write = Box::new(move |_, _| {
            if std::mem::take(&mut first) {
                fault
            } else {
                Fault::None
            }
        });
        world.create_in("shop", "run", "flow", None);
        world.run();
        assert_eq!(world.stored("run").phase, RunPhase::Succeeded, "{fault:?}");
        assert_eq!(world.called.len(), 1);
    }
}

#[test]
fn refused_label_gives_the_run_up() {
    let mut world = World::with(flow(chain(1)));
    world.nature.write = Box::new(|_, _| Fault::Refused);
    world.create_in("shop", "run", "flow", None);
    world.run();
    assert_eq!((world.held(0), world.called.len()), (0, 0));
}

#[test]
fn resumed_oldest_first_at_the_rate() {
    let mut settings = config();
    settings.resume_per_second = 10;
    let mut world = World::empty(settings, Nature::default());
    world.serve("flow", flow(chain(2)));
    let owner = world.add_owner();
    world.give(owner, all_slots());
    world.nature.call = Box::new(|_, _| (ms(5000), ok()));
    for n in 0..20 {
        // Their names are not in the order of their age.
        world.create(&format!("run-{:02}", n * 7 % 20), "flow");
        world.run_for(ms(1));
    }
    world.run_for(ms(1000));
    assert_eq!(world.written.len(), 20);
    world.crash(owner);
    world.restart(owner);
    world.loads.clear();
    let restart = world.now;
    world.give(owner, all_slots());
    world.create("young", "flow");
    world.run();
    let (new, resumed) = world.loads.split_first().unwrap();
    assert_eq!(new.1, "young", "a new run does not wait");
    let names: Vec<_> = resumed.iter().map(|(_, name)| name.clone()).collect();
    let expected: Vec<_> = (0..20).map(|n| format!("run-{:02}", n * 7 % 20)).collect();
    assert_eq!(names, expected);
    for (turn, (at, _)) in resumed.iter().enumerate() {
        assert_eq!(*at, restart + ms(100) * (turn as u32 + 1));
    }
    assert!(
        world
            .store
            .values()
            .all(|run| run.status.as_ref().unwrap().phase == RunPhase::Succeeded)
    );
}

#[test]
fn restart_repeats_only_what_was_not_stored() {
    let steps = vec![
        http("done", &[]),
        http("leaf", &[]),
        http("flight", &["done"]),
        http("after", &["flight"]),
    ];
    let mut world = World::with(flow(steps));
    world.nature.call = Box::new(|_, call| (ms(if call.step == 2 { 1000 } else { 10 }), ok()));
    world.create("run", "flow");
    world.run_for(ms(600));
    world.crash(0);
    world.restart(0);
    world.give(0, all_slots());
    world.run();
    assert_eq!(
        world.calls("run"),
        ["done", "leaf", "flight", "flight", "after"]
    );
    let flight: Vec<_> = world
        .called
        .iter()
        .filter(|call| call.step == "flight")
        .collect();
    assert_eq!((flight[0].attempt, flight[1].attempt), (1, 2));
    assert_ne!(flight[0].execution_id, flight[1].execution_id);
}

#[test]
fn restart_does_not_lengthen_a_wait() {
    let mut world = World::with(flow(vec![
        wait("pause", &[], ms(60_000)),
        http("s", &["pause"]),
    ]));
    world.create("run", "flow");
    world.run_for(ms(30_000));
    world.crash(0);
    world.run_for(ms(10_000));
    world.restart(0);
    world.give(0, all_slots());
    world.run();
    assert_eq!(world.called[0].at, start() + ms(60_004));
    assert_eq!(world.stored("run").steps[0].phase, StepPhase::Succeeded);
}

#[test]
fn restart_before_the_first_write_starts_afresh() {
    let mut world = World::with(flow(chain(1)));
    world.create("run", "flow");
    world.run_for(ms(8));
    world.crash(0);
    world.serve("flow", flow(chain(2)));
    world.restart(0);
    world.give(0, all_slots());
    world.run();
    assert_eq!(world.calls("run"), ["s1", "s1", "s2"]);
}

#[test]
fn ten_thousand_runs_cost_no_more_each_than_a_few() {
    let mut settings = config();
    settings.calls_per_namespace = 10_000;
    settings.calls_total = 10_000;
    let mut world = World::empty(settings, Nature::default());
    world.serve(
        "flow",
        flow(vec![wait("pause", &[], ms(60_000)), http("s", &["pause"])]),
    );
    let owner = world.add_owner();
    world.give(owner, all_slots());
    for n in 0..10_000 {
        world.create(&format!("run-{n}"), "flow");
    }
    let begin = std::time::Instant::now();
    world.run();
    assert_eq!(world.finished.len(), 10_000);
    // A cost that grows with the number of runs would take many minutes.
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}

#[test]
fn run_that_waits_for_its_turn_is_resumed_from_its_newest_status() {
    let mut settings = config();
    settings.resume_per_second = 1;
    let mut world = World::empty(settings, Nature::default());
    world.serve("flow", flow(chain(3)));
    let (first, second) = (world.add_owner(), world.add_owner());
    world.give(first, all_slots());
    world.nature.call = Box::new(|_, _| (ms(300), ok()));
    world.create("run", "flow");
    world.run_for(ms(500));
    // The first owner's last write arrives after the second one has listed.
    world.give(second, all_slots());
    world.run_for(ms(300));
    world.crash(first);
    world.run();
    let calls: Vec<_> = world
        .called
        .iter()
        .map(|call| (call.owner, call.step.as_str()))
        .collect();
    assert_eq!(calls, [(0, "s1"), (0, "s2"), (0, "s3"), (1, "s3")]);
    assert!(world.dropped.is_empty());
}

#[test]
fn resumed_run_is_not_written_without_news() {
    let mut world = World::with(flow(chain(1)));
    world.nature.call = Box::new(|_, _| (ms(10_000), ok()));
    world.create("run", "flow");
    world.run_for(ms(1000));
    world.crash(0);
    world.restart(0);
    world.give(0, all_slots());
    world.run();
    assert_eq!(world.written["run"].len(), 2);
}
