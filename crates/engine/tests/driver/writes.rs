//! How often a status is written, when, and what has to be stored before a call leaves.

use kubezap_engine::driver::{FlowAnswer, WriteReason};
use kubezap_engine::flow::OnFailure;
use kubezap_engine::observation::{CallOutcome, Failure};
use kubezap_engine::run::{RunPhase, StepPhase, reason};

use crate::flows::{chain, flow, http, retried, transform, wait};
use crate::nature::{Fault, ms, ok, status};
use crate::world::{World, start};

use WriteReason::{Coalesced, Gate, Resume, Running, Terminal};

#[test]
fn chain_of_n_steps_takes_n_writes() {
    for n in 1..=5 {
        let mut world = World::with(flow(chain(n)));
        world.create("run", "flow");
        world.run();
        let mut expected = vec![Gate; n - 1];
        expected.push(Terminal);
        assert_eq!(world.reasons("run"), expected, "{n} steps");
        assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
        assert_eq!(world.called.len(), n);
        assert_eq!(world.reads, 0);
        assert_eq!(world.finished.len(), 1);
        assert_eq!(world.held(0), 0);
    }
}

#[test]
fn each_outcome_shares_its_write_with_the_next_call() {
    let mut world = World::with(flow(chain(3)));
    world.create("run", "flow");
    world.run();
    let first = &world.written["run"][0];
    assert_eq!(first.run.revision.as_deref(), Some("flow-1"));
    assert_eq!(first.run.phase, RunPhase::Running);
    let phases: Vec<_> = first.run.steps.iter().map(|step| step.phase).collect();
    assert_eq!(
        phases,
        [StepPhase::Succeeded, StepPhase::Running, StepPhase::Pending]
    );
    assert_eq!(
        first.run.steps[1].execution_id.as_ref(),
        Some(&world.called[1].execution_id)
    );
}

#[test]
fn call_leaves_after_the_outcome_before_it_is_stored() {
    let mut world = World::with(flow(chain(2)));
    world.create("run", "flow");
    world.run();
    // Seen 2 ms, Flow 2 ms, call 10 ms, write 2 ms there and 2 ms back.
    assert_eq!(world.called[0].at, start() + ms(4));
    assert_eq!(world.written["run"][0].at, start() + ms(16));
    assert_eq!(world.called[1].at, start() + ms(18));
}

#[test]
fn first_call_needs_no_write() {
    let mut world = World::with(flow(chain(1)));
    world.nature.call = Box::new(|_, _| (ms(200), ok()));
    world.create("run", "flow");
    world.run_for(ms(100));
    assert_eq!(world.calls("run"), ["s1"]);
    assert_eq!(world.reasons("run"), []);
}

#[test]
fn late_first_outcome_shows_running_once() {
    for n in 1..=5 {
        let mut world = World::with(flow(chain(n)));
        world.nature.call = Box::new(|_, _| (ms(400), ok()));
        world.create("run", "flow");
        world.run();
        let mut expected = vec![Running];
        expected.extend(vec![Gate; n - 1]);
        expected.push(Terminal);
        assert_eq!(world.reasons("run"), expected, "{n} steps");
        assert_eq!(world.written["run"][0].at, start() + ms(256));
        assert_eq!(world.written["run"][0].run.phase, RunPhase::Running);
    }
}

#[test]
fn wait_at_the_start_takes_one_write_more() {
    let mut steps = chain(2);
    steps[0].run_after = vec!["pause".into()];
    steps.insert(0, wait("pause", &[], ms(60_000)));
    let mut world = World::with(flow(steps));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Resume, Gate, Terminal]);
    let first = &world.written["run"][0];
    assert_eq!(first.run.steps[0].phase, StepPhase::Waiting);
    assert!(first.run.steps[0].resume_after.is_some());
}

#[test]
fn wait_after_a_step_rides_on_its_outcome() {
    let steps = vec![
        http("s1", &[]),
        wait("pause", &["s1"], ms(60_000)),
        http("s2", &["pause"]),
    ];
    let mut world = World::with(flow(steps));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Resume, Terminal]);
    assert_eq!(world.calls("run"), ["s1", "s2"]);
}

#[test]
fn backoff_of_a_second_takes_one_write_more_and_a_shorter_one_none() {
    for (delay, expected) in [
        (ms(1000), vec![Resume, Gate, Terminal]),
        (ms(100), vec![Gate, Terminal]),
    ] {
        let mut steps = chain(2);
        steps[0] = retried(steps[0].clone(), 1, delay);
        let mut world = World::with(flow(steps));
        world.nature.call = Box::new(|_, call| {
            let first = call.step == 0 && call.attempt == 1;
            (ms(10), status(if first { 503 } else { 200 }))
        });
        world.create("run", "flow");
        world.run();
        assert_eq!(world.reasons("run"), expected);
        assert_eq!(world.calls("run"), ["s1", "s1", "s2"]);
        assert_eq!(world.stored("run").steps[0].attempts, 2);
    }
}

#[test]
fn transform_takes_no_write() {
    let mut steps = vec![transform("t", &[])];
    steps.extend(chain(2));
    steps[1].run_after = vec!["t".into()];
    let mut world = World::with(flow(steps));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Gate, Terminal]);
}

#[test]
fn parallel_outcomes_during_a_write_go_in_the_next_one() {
    // Four roots with a dependent each: the first outcome is written at once, the three that come meanwhile together.
    let mut steps = Vec::new();
    for n in 0..4 {
        steps.push(http(&format!("root{n}"), &[]));
        steps.push(http(&format!("leaf{n}"), &[&format!("root{n}")]));
    }
    let mut world = World::with(flow(steps));
    world.nature.latency = Box::new(|| ms(20));
    world.nature.call = Box::new(|_, call| {
        let after = if call.step == 0 { 10 } else { 15 };
        (ms(if call.step % 2 == 0 { after } else { 100 }), ok())
    });
    world.create("run", "flow");
    world.run();
    let finished: Vec<_> = world.written["run"]
        .iter()
        .map(|write| {
            write
                .run
                .steps
                .iter()
                .filter(|step| step.phase.is_final())
                .count()
        })
        .collect();
    assert_eq!(finished[..2], [1, 4]);
    assert_eq!(*finished.last().unwrap(), 8);
    assert_eq!(world.called.len(), 8);
}

#[test]
fn outcome_nobody_waits_for_is_written_within_the_quarter_second() {
    let steps = vec![http("slow", &[]), http("quick", &[])];
    let mut world = World::with(flow(steps));
    world.nature.call = Box::new(|_, call| (ms(if call.step == 0 { 2000 } else { 300 }), ok()));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Running, Coalesced, Terminal]);
    // The outcome came at 304 ms.
    assert_eq!(world.written["run"][1].at, start() + ms(304 + 250 + 2));
}

#[test]
fn no_write_without_news() {
    let mut world = World::with(flow(chain(1)));
    world.nature.call = Box::new(|_, _| (ms(20_000), ok()));
    world.create("run", "flow");
    world.run_for(ms(19_000));
    assert_eq!(world.reasons("run"), [Running]);
}

#[test]
fn failure_ends_the_run_in_one_write() {
    let mut world = World::with(flow(chain(3)));
    world.nature.call = Box::new(|_, _| (ms(10), status(500)));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Terminal]);
    let run = world.stored("run");
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, reason::STEP_FAILED)
    );
    assert_eq!(run.steps[2].reason, reason::NOT_REACHED);
}

#[test]
fn undelivered_call_is_handed_out_again() {
    let mut world = World::with(flow(chain(1)));
    let mut left = 3;
    world.nature.call = Box::new(move |_, _| {
        left -= 1;
        let message = "no executor".to_owned();
        (
            ms(1),
            if left > 0 {
                CallOutcome::NotDelivered { message }
            } else {
                ok()
            },
        )
    });
    world.create("run", "flow");
    world.run();
    assert_eq!(world.stored("run").steps[0].attempts, 1);
    assert_eq!(world.called.len(), 3);
}

#[test]
fn stop_with_a_call_in_flight_and_a_step_between_attempts_does_not_spin() {
    let mut steps = vec![
        retried(http("again", &[]), 3, ms(200)),
        http("fails", &[]),
        http("slow", &[]),
    ];
    steps[0].on_failure = Some(OnFailure::Continue);
    let mut world = World::with(flow(steps));
    world.nature.call = Box::new(|_, call| match call.step {
        0 => (ms(10), status(503)),
        1 => (ms(50), status(500)),
        _ => (ms(10_000), ok()),
    });
    world.create("run", "flow");
    // The world asserts that no tick leaves something due.
    world.run();
    assert_eq!(world.stored("run").phase, RunPhase::Failed);
    assert_eq!(world.calls("run"), ["again", "fails", "slow"]);
}

#[test]
fn missing_flow_fails_the_run_at_once_in_one_write() {
    let mut world = World::with(flow(chain(1)));
    world.create("run", "another");
    world.run();
    assert_eq!(world.reasons("run"), [Terminal]);
    let run = world.stored("run");
    assert_eq!(run.reason, reason::FLOW_NOT_FOUND);
    assert_eq!(run.message, "there is no Flow another");
    assert_eq!(world.finished.len(), 1);
}

#[test]
fn flow_that_cannot_be_asked_for_is_asked_for_again() {
    let mut world = World::with(flow(chain(1)));
    let found = world
        .flows
        .insert("flow".into(), FlowAnswer::Unavailable)
        .unwrap();
    world.create("run", "flow");
    world.run_for(ms(3000));
    assert!((4..=8).contains(&world.loads.len()), "{:?}", world.loads);
    world.flows.insert("flow".into(), found);
    world.run();
    assert_eq!(world.stored("run").phase, RunPhase::Succeeded);
}

#[test]
fn refused_status_becomes_the_minimal_one() {
    let mut world = World::with(flow(vec![
        http("s1", &[]),
        http("s2", &["s1"]),
        http("slow", &[]),
    ]));
    world.nature.write = Box::new(|_, run| match run {
        Some(run) if run.reason != reason::STATUS_REFUSED => Fault::Refused,
        _ => Fault::None,
    });
    world.nature.call = Box::new(|_, call| (ms(if call.step == 2 { 900 } else { 10 }), ok()));
    world.create("run", "flow");
    world.run();
    assert_eq!(world.reasons("run"), [Terminal]);
    let run = world.stored("run");
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, reason::STATUS_REFUSED)
    );
    let steps: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.name.as_str(), step.phase))
        .collect();
    assert_eq!(
        steps,
        [
            ("s1", StepPhase::Succeeded),
            ("s2", StepPhase::Failed),
            ("slow", StepPhase::Failed)
        ]
    );
    assert!(
        run.steps
            .iter()
            .all(|step| step.results.is_empty() && step.message.is_empty())
    );
    assert_eq!(
        world.calls("run"),
        ["s1", "slow"],
        "the gated call never leaves"
    );
    assert_eq!(world.aborted.len(), 1);
}

#[test]
fn status_refused_twice_gives_the_run_up() {
    let mut world = World::with(flow(chain(1)));
    world.nature.write = Box::new(|_, _| Fault::Refused);
    world.create("run", "flow");
    world.run();
    assert_eq!(world.dropped.len(), 1);
    assert_eq!(world.held(0), 0);
    world.show("run");
    world.run();
    assert_eq!(world.called.len(), 1, "it is not begun again");
}

#[test]
fn failed_call_keeps_its_reason() {
    let mut world = World::with(flow(chain(1)));
    world.nature.call = Box::new(|_, _| {
        let failure = Failure {
            reason: reason::EGRESS_DENIED,
            message: "egress_denied: 10.0.0.1 is private".into(),
        };
        (ms(1), CallOutcome::Failed(failure))
    });
    world.create("run", "flow");
    world.run();
    assert_eq!(world.stored("run").steps[0].reason, reason::EGRESS_DENIED);
}
