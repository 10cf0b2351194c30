//! What holds for every Flow and whatever comes back.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kubezap_engine::flow::{FlowDraft, OnFailure, StepDraft};
use kubezap_engine::observation::{CallOutcome, Observation};
use kubezap_engine::run::{Run, RunPhase, StepPhase, reason};
use proptest::prelude::*;

use crate::draft::{Words, fixed, flow, http, transform, wait};
use crate::world::{World, failure, response};

/// One step of a plan. What comes before it are steps of smaller numbers.
#[derive(Clone, Debug)]
struct Plan {
    kind: u8,
    run_after: u16,
    refers_to: u16,
    condition: u8,
    on_failure: u8,
    retries: u32,
    /// What becomes of its calls, one after the other.
    outcomes: Vec<u8>,
}

/// What happens to the run from outside, each at a tenth of a second or never.
#[derive(Clone, Debug)]
struct Fate {
    cancel: Option<u16>,
    crash: Option<u16>,
    /// How many advances before the crash the last write was.
    unwritten: usize,
    reversed: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        0..6u8,
        any::<u16>(),
        any::<u16>(),
        0..8u8,
        0..4u8,
        0..3u32,
        prop::collection::vec(any::<u8>(), 1..5),
    )
        .prop_map(
            |(kind, run_after, refers_to, condition, on_failure, retries, outcomes)| Plan {
                kind,
                // Fewer arrows than bits, so that there is something parallel.
                run_after: run_after & (run_after >> 5) & (run_after << 3),
                refers_to: refers_to & (refers_to >> 7) & (refers_to << 2),
                condition,
                on_failure,
                retries,
                outcomes,
            },
        )
}

fn fate() -> impl Strategy<Value = Fate> {
    (
        prop::option::weighted(0.2, 0..100u16),
        prop::option::weighted(0.3, 0..100u16),
        0..5usize,
        any::<bool>(),
    )
        .prop_map(|(cancel, crash, unwritten, reversed)| Fate {
            cancel,
            crash,
            unwritten,
            reversed,
        })
}

fn name(index: usize) -> String {
    format!("s{index}")
}

fn step(index: usize, plan: &Plan) -> StepDraft {
    let before = |set: u16| (0..index).filter(move |before| set >> before & 1 == 1);
    let references: String = before(plan.refers_to)
        .map(|before| format!("$(steps.{}.results.status) ", name(before)))
        .collect();
    let mut step = match plan.kind {
        0..=3 => http(&name(index)).body(&references),
        4 => transform(&name(index), &[("x", &references)]),
        _ => wait(&name(index), u64::from(plan.outcomes[0] % 20)),
    };
    step = match plan.condition {
        0 => step.when("false"),
        1 if index > 0 => step.when(&format!("steps.{}.status == 'Succeeded'", name(index - 1))),
        2 => step.when("trigger.bodyFields.none == 1"),
        _ => step,
    };
    let run_after: Vec<_> = before(plan.run_after).map(name).collect();
    let run_after: Vec<_> = run_after.iter().map(String::as_str).collect();
    step = step.after(&run_after).retry(fixed(plan.retries));
    match plan.on_failure {
        0 => step,
        1 => step.on_failure(OnFailure::Fail),
        2 => step.on_failure(OnFailure::Continue),
        _ => step.on_failure(OnFailure::Skip),
    }
}

fn draft(plans: &[Plan], fate: &Fate) -> FlowDraft {
    let mut steps: Vec<_> = plans
        .iter()
        .enumerate()
        .map(|(index, plan)| step(index, plan))
        .collect();
    if fate.reversed {
        steps.reverse();
    }
    FlowDraft {
        failure_policy: OnFailure::Continue,
        ..flow(steps)
    }
}

/// Plays a run to its end. Observations of one instant come in one advance, or in one each.
struct Play {
    world: World,
    together: bool,
    /// What will be seen.
    agenda: BTreeMap<(Timestamp, usize), Observation>,
    /// Calls that the agenda knows.
    planned: usize,
    /// The run before each instant.
    history: Vec<Run>,
    outcomes: BTreeMap<usize, Vec<u8>>,
}

impl Play {
    fn new(plans: &[Plan], fate: &Fate, together: bool) -> Self {
        let mut world = World::new(draft(plans, fate));
        world.calls_leave = false;
        let outcomes = plans
            .iter()
            .enumerate()
            .map(|(index, plan)| (world.index(&name(index)), plan.outcomes.clone()))
            .collect();
        Self {
            world,
            together,
            agenda: BTreeMap::new(),
            planned: 0,
            history: Vec::new(),
            outcomes,
        }
    }

    fn finish(&mut self, fate: &Fate) {
        let at = |tenths: u16| {
            self.world.spec.created + std::time::Duration::from_millis(u64::from(tenths) * 100)
        };
        let (cancel, mut crash) = (fate.cancel.map(at), fate.crash.map(at));
        if let Some(cancel) = cancel {
            let key = (cancel, usize::MAX);
            self.agenda.insert(key, Observation::CancelRequested);
        }
        self.turn(&[]);
        for _ in 0..10_000 {
            if self.world.is_over() {
                return;
            }
            let seen = self.agenda.keys().next().map(|(at, _)| *at);
            let next = [seen, self.world.wake, crash].into_iter().flatten().min();
            let next = next.expect("a run that is not over waits for something");
            assert!(next >= self.world.now);
            self.world.now = next;
            if crash == Some(next) {
                crash = None;
                self.agenda
                    .retain(|_, seen| *seen == Observation::CancelRequested);
                let stored = self.history.iter().rev().nth(fate.unwritten);
                let stored = stored.cloned().unwrap_or_default();
                self.world.restart_from(stored);
                self.plan_calls();
                continue;
            }
            let mut observations = Vec::new();
            while let Some(entry) = self.agenda.first_entry() {
                if entry.key().0 > next {
                    break;
                }
                observations.push(entry.remove());
            }
            self.history.push(self.world.run().clone());
            if self.together || observations.is_empty() {
                self.turn(&observations);
            } else {
                for observation in observations {
                    self.turn(&[observation]);
                }
            }
        }
        panic!("the run does not end");
    }

    fn turn(&mut self, observations: &[Observation]) {
        self.world.turn(observations);
        self.plan_calls();
    }

    /// Puts what will become of new calls on the agenda.
    fn plan_calls(&mut self) {
        let ids = self.world.ids[self.planned..].to_vec();
        for id in ids {
            self.planned += 1;
            let Some(call) = self.world.calls.iter().find(|call| call.execution_id == id) else {
                continue;
            };
            let dependencies = self.world.flow.graph.dependencies[call.step];
            let finished = kubezap_engine::advance::finished(self.world.run());
            assert_eq!(dependencies & !finished, 0, "starts before what it needs");
            let outcomes = &self.outcomes[&call.step];
            let dice = outcomes[(call.attempt as usize + self.planned) % outcomes.len()];
            let outcome = match dice % 8 {
                0..=2 => Some(response(200, &[], "{}")),
                3 => Some(response(503, &[("retry-after", "1")], "")),
                4 => Some(failure(reason::EXECUTOR_LOST, "executor_lost: gone")),
                5 => Some(failure(reason::EGRESS_DENIED, "egress_denied: no")),
                6 => Some(CallOutcome::NotDelivered {
                    message: "refused".to_owned(),
                }),
                _ => None,
            };
            // Instants are shared on purpose.
            let start = self.world.now + std::time::Duration::from_millis(100);
            let end = start + std::time::Duration::from_millis(u64::from(dice / 64) * 500);
            let execution_id = id.clone();
            let order = self.planned * 2;
            self.agenda
                .insert((start, order), Observation::CallStarted { execution_id });
            if let Some(outcome) = outcome {
                let ended = Observation::CallFinished {
                    execution_id: id,
                    outcome,
                };
                self.agenda.insert((end, order + 1), ended);
            }
        }
    }

    fn judge(&self, plans: &[Plan], fate: &Fate) {
        let run = self.world.run();
        let flow = &self.world.flow;
        assert!(run.completion_time >= run.start_time);
        let mut stops = false;
        for (index, (state, step)) in run.steps.iter().zip(&flow.steps).enumerate() {
            assert!(state.phase.is_final(), "{state:?}");
            assert!(state.completion_time.is_some(), "{state:?}");
            assert!(state.resume_after.is_none(), "{state:?}");
            assert_ne!(state.reason, reason::RETRYING);
            stops |= state.phase == StepPhase::Failed && step.on_failure == OnFailure::Fail;
            if fate.crash.is_none() {
                let number: usize = step.name.as_str()[1..].parse().unwrap();
                assert!(state.attempts <= plans[number].retries + 1);
            }
            let run_after = flow.graph.run_after[index];
            let all_skipped = kubezap_engine::graph::members(run_after)
                .all(|before| run.steps[before].phase == StepPhase::Skipped);
            if run.phase == RunPhase::Succeeded && run_after != 0 && all_skipped {
                assert_eq!(state.reason, reason::DEPENDENCY_SKIPPED);
            }
        }
        match run.phase {
            RunPhase::Succeeded => assert!(!stops),
            RunPhase::Failed => assert!(stops || run.reason == reason::TIMED_OUT),
            RunPhase::Cancelled => assert!(fate.cancel.is_some()),
            RunPhase::Pending | RunPhase::Running => panic!("not over"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_and_it_makes_no_difference_how_observations_are_batched(
        plans in prop::collection::vec(plan(), 1..=12),
        fate in fate(),
    ) {
        let mut together = Play::new(&plans, &fate, true);
        together.finish(&fate);
        together.judge(&plans, &fate);
        let mut one_by_one = Play::new(&plans, &fate, false);
        one_by_one.finish(&fate);
        prop_assert_eq!(together.world.run(), one_by_one.world.run());
        prop_assert_eq!(&together.world.log, &one_by_one.world.log);
    }
}
