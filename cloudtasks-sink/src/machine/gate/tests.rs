//! What waits for a look at its queue, and what waits for its turn.

use std::time::{Duration, Instant};

use gcp_wire::QueueName;
use gcp_wire::proto::tasks::{HttpTarget, Queue, UriOverride, queue::State};

use super::{Found, Gate, Look, Pacing, Passage, Ramp};
use crate::driver::clock;
use crate::machine::RecordId;
use crate::queue_state::QueueState;

fn queue(id: &str) -> QueueName {
    format!("projects/p/locations/l/queues/{id}")
        .parse()
        .unwrap()
}

fn record(number: u64) -> RecordId {
    RecordId::of(number)
}

const RUNNING: Found = Found {
    state: QueueState::Running,
    replaces_urls: false,
};

fn slow(rate: f64) -> Pacing {
    Pacing {
        ramp: None,
        rate: Some(rate),
    }
}

fn hold_back(gate: &mut Gate, now: Instant, queue: &QueueName, number: u64) {
    assert_eq!(gate.passes(now, queue), Passage::Later);
    gate.set_aside(now, queue, record(number), false);
    gate.check_invariants();
}

fn all(gate: &mut Gate, now: Instant) -> Vec<RecordId> {
    let mut ids = Vec::new();
    while let Some((id, _)) = gate.next(now) {
        ids.push(id);
        gate.check_invariants();
    }
    ids
}

#[test]
fn the_first_look_holds_back_its_own_queue_only() {
    let now = clock::now();
    let (one, other) = (queue("one"), queue("other"));
    let mut gate = Gate::new(true, Pacing::default());
    hold_back(&mut gate, now, &one, 1);
    hold_back(&mut gate, now, &one, 2);
    hold_back(&mut gate, now, &other, 3);
    assert_eq!(gate.next_look(), Some(one.clone()));
    assert_eq!(gate.next_look(), Some(other.clone()));
    assert_eq!(gate.next_look(), None, "each is asked for once");
    assert_eq!(gate.handle_look(now, &one, Some(RUNNING)), Look::First);
    assert_eq!(all(&mut gate, now), [record(1), record(2)]);
    assert_eq!(gate.passes(now, &one), Passage::Free);
    assert_eq!(gate.passes(now, &other), Passage::Later);
    assert_eq!(gate.handle_look(now, &other, None), Look::First);
    assert_eq!(all(&mut gate, now), [record(3)], "it is used as it is");
}

#[test]
fn a_queue_is_looked_at_again_every_five_minutes_and_nothing_waits_for_that() {
    let start = clock::now();
    let one = queue("one");
    let mut gate = Gate::new(true, Pacing::default());
    gate.expect(start, &one);
    assert_eq!(gate.next_look(), Some(one.clone()));
    gate.handle_look(start, &one, Some(RUNNING));
    let due = start + Duration::from_secs(300);
    assert_eq!(gate.next_look_due(), Some(due));
    gate.handle_timeout(due);
    assert_eq!(gate.next_look(), Some(one.clone()));
    assert_eq!(gate.passes(due, &one), Passage::Free);
    gate.handle_look(due, &one, None);
    let states: Vec<QueueState> = gate.states().map(|(_, state)| state).collect();
    assert_eq!(states, [QueueState::Running], "as last seen");
}

#[test]
fn a_hundred_queues_are_looked_at_and_no_more() {
    let now = clock::now();
    let mut gate = Gate::new(true, Pacing::default());
    for number in 0..100 {
        let queue = queue(&number.to_string());
        assert_eq!(gate.passes(now, &queue), Passage::Later);
    }
    assert_eq!(gate.passes(now, &queue("another")), Passage::Free);
    assert_eq!(gate.states().count(), 100);
}

#[test]
fn records_leave_in_turn_and_one_that_was_sent_before_goes_first() {
    let start = clock::now();
    let one = queue("one");
    let mut gate = Gate::new(false, slow(1.0));
    assert_eq!(gate.passes(start, &one), Passage::Free);
    hold_back(&mut gate, start, &one, 1);
    hold_back(&mut gate, start, &one, 2);
    gate.set_aside(start, &one, record(0), true);
    assert_eq!(all(&mut gate, start), []);
    for (second, number) in [(1, 0), (2, 1), (3, 2)] {
        let now = start + Duration::from_secs(second);
        assert!(gate.next_due().unwrap() <= now);
        assert_eq!(all(&mut gate, now), [record(number)]);
    }
    assert_eq!(gate.next_due(), None);
}

#[test]
fn a_record_does_not_overtake_those_set_aside_before_it() {
    let start = clock::now();
    let one = queue("one");
    let mut gate = Gate::new(false, slow(1.0));
    assert_eq!(gate.passes(start, &one), Passage::Free);
    hold_back(&mut gate, start, &one, 1);
    let later = start + Duration::from_secs(1);
    assert_eq!(gate.passes(later, &one), Passage::Later);
}

#[test]
fn a_record_that_is_withdrawn_takes_no_turn() {
    let start = clock::now();
    let one = queue("one");
    let mut gate = Gate::new(false, slow(1.0));
    assert_eq!(gate.passes(start, &one), Passage::Free);
    for number in 1..=4 {
        hold_back(&mut gate, start, &one, number);
    }
    gate.withdraw(start, &[1, 2, 4].map(record).into());
    gate.check_invariants();
    assert_eq!(gate.aside(), 1);
    let later = start + Duration::from_secs(1);
    assert_eq!(all(&mut gate, later), [record(3)]);
    assert_eq!(gate.next_due(), None);
}

#[test]
fn a_slow_queue_holds_up_no_other() {
    let start = clock::now();
    let mut gate = Gate::new(false, slow(1.0));
    for number in 0..50 {
        let queue = queue(&number.to_string());
        assert_eq!(gate.passes(start, &queue), Passage::Free);
        hold_back(&mut gate, start, &queue, number);
    }
    let later = start + Duration::from_secs(1);
    assert_eq!(all(&mut gate, later).len(), 50);
}

#[test]
fn idle_queues_with_a_pace_are_forgotten() {
    let start = clock::now();
    let pacing = Pacing {
        ramp: Some(Ramp::google()),
        rate: None,
    };
    let mut gate = Gate::new(false, pacing);
    for number in 0..5_000u64 {
        let queue = queue(&number.to_string());
        let now = start + Duration::from_secs(number);
        assert_eq!(gate.passes(now, &queue), Passage::Free);
    }
    assert!(gate.lanes.len() <= 1_000, "{}", gate.lanes.len());
}

fn with_override(mode: i32) -> Found {
    let uri = UriOverride {
        host: Some("proxy.example".to_owned()),
        uri_override_enforce_mode: mode,
        ..UriOverride::default()
    };
    Found::of(&Queue {
        state: State::Paused.into(),
        http_target: Some(HttpTarget {
            uri_override: Some(uri),
            ..HttpTarget::default()
        }),
        ..Queue::default()
    })
}

#[test]
fn an_override_counts_unless_it_waits_for_tasks_without_a_url() {
    let replaces = |mode| with_override(mode).replaces_urls;
    assert!(replaces(2), "always");
    assert!(replaces(0), "left unspecified, which means always");
    assert!(!replaces(1), "if there is none, and every task has one");
    assert_eq!(with_override(1).state, QueueState::Paused);
    let now = clock::now();
    let one = queue("one");
    let mut gate = Gate::new(true, Pacing::default());
    hold_back(&mut gate, now, &one, 1);
    gate.handle_look(now, &one, Some(with_override(2)));
    assert_eq!(gate.next(now), Some((record(1), Passage::Replaced)));
    assert_eq!(gate.passes(now, &one), Passage::Replaced);
}
