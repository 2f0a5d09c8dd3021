//! What is remembered of keys, and of messages that are not held.

use super::*;

fn message(number: u64) -> MessageKey {
    MessageKey::Number(number)
}

#[test]
fn only_what_certainly_lies_before_another_passage_does() {
    let at = |turn, rank| Passage { turn, rank };
    for (one, other, is_before) in [
        (at(1, 0), at(1, 0), true),
        (at(1, 2), at(2, 3), true),
        (at(1, 3), at(2, 3), false),
        (at(1, 4), at(2, 3), false),
        (at(1, 0), at(2, 3), false),
    ] {
        assert_eq!(one.is_before(other), is_before, "{one:?} {other:?}");
    }
}

/// So many were given back; then something was dropped, and what was given back first comes again.
fn given_back(count: u64) -> Fate {
    let mut key = Key::new();
    key.hand_out_new(0..20);
    key.arrive(20, Known::Nothing);
    let last = key.id(20);
    for number in 1..=count {
        key.runs.release(key.key, &message(number), in_turn(0));
    }
    key.runs.cut(key.key, last);
    key.runs.handle_withdrawn(key.key, last);
    key.arrive(1, Known::Nothing)
}

#[test]
fn sixteen_that_were_given_back_are_remembered() {
    assert_ne!(turn(given_back(16)), 0);
    assert!(is_dropped(given_back(17)));
}

#[test]
fn one_that_was_given_back_may_come_next_though_another_one_came_before() {
    let mut key = Key::new();
    key.hand_out_new(0..4);
    for number in [1, 2] {
        key.runs.release(key.key, &message(number), in_turn(0));
    }
    assert_ne!(turn(key.arrive(1, Known::Nothing)), 0);
    let one = key.id(1);
    key.runs.cut(key.key, one);
    key.runs.handle_withdrawn(key.key, one);
    assert_ne!(turn(key.arrive(2, Known::Nothing)), 0);
}

#[test]
fn one_that_was_given_back_may_come_next_while_its_turn_goes_on() {
    let mut key = Key::new();
    key.hand_out_new(0..4);
    let back = turn(key.arrive(1, Known::Nothing));
    assert_eq!(turn(key.arrive_too(2, Known::Held(in_turn(0)))), back);
    key.runs.handle_out(key.key, key.id(1));
    key.runs.release(key.key, &message(1), in_turn(back));
    key.runs.handle_out(key.key, key.id(2));
    assert_ne!(turn(key.arrive(3, Known::Held(in_turn(0)))), 0);
    let three = key.id(3);
    key.runs.cut(key.key, three);
    key.runs.handle_withdrawn(key.key, three);
    assert_ne!(turn(key.arrive(1, Known::Nothing)), 0);
}

#[test]
fn the_ranks_of_sixty_four_messages_are_remembered_until_they_come_again() {
    let mut key = Key::new();
    let run = key.runs.runs.get_mut(&key.key).unwrap();
    for number in 1..=64 {
        run.remember(&message(number), number);
        // Nothing is known of it that was not before.
        run.remember(&message(number), 0);
    }
    assert_eq!(run.recall(&message(1)), 1);
    assert_eq!(run.recall(&message(1)), 0, "it came");
    assert_eq!(run.recall(&message(64)), 64);
    for number in 65..=67 {
        run.remember(&message(number), number);
    }
    assert_eq!(run.recall(&message(2)), 0, "one too many");
    assert_eq!(run.recall(&message(3)), 3);
}

#[test]
fn keys_are_to_be_forgotten_when_there_are_twice_as_many_as_are_needed_or_more_than_ten_thousand() {
    let mut runs = Runs::new(PATIENCE, i64::MIN, Vec::new());
    let grow_to = |runs: &mut Runs, count: usize| {
        let names = (runs.runs.len()..count).map(|number| number.to_string());
        names.map(|name| runs.key(&name)).collect::<BTreeSet<_>>()
    };
    let held = grow_to(&mut runs, 6_000);
    grow_to(&mut runs, 10_000);
    assert!(!runs.is_crowded());
    grow_to(&mut runs, 10_001);
    assert!(runs.is_crowded());
    let now = crate::driver::now();
    runs.sweep(now, &held);
    runs.check_invariants();
    assert_eq!(runs.runs.len(), 6_000);
    for (count, is_crowded) in [(12_000, false), (12_001, true)] {
        for number in runs.runs.len()..count {
            runs.key(&format!("new {number}"));
        }
        assert_eq!(runs.is_crowded(), is_crowded, "{count}");
    }
    runs.sweep(now, &BTreeSet::new());
    assert!(runs.runs.is_empty());
    grow_to(&mut runs, 10_000);
    assert!(!runs.is_crowded());
}

#[test]
fn a_key_is_needed_while_something_of_it_waits_and_while_the_host_is_behind_in_it() {
    let mut key = Key::new();
    key.arrive(0, Known::Nothing);
    let zero = key.id(0);
    key.runs.sweep(key.now, &BTreeSet::new());
    assert_eq!(key.runs.runs.len(), 1, "it waits");
    key.runs.handle_out(key.key, zero);
    assert_ne!(turn(key.arrive(0, Known::Nothing)), 0);
    key.runs.handle_out(key.key, key.id(0));
    key.runs.sweep(key.now, &BTreeSet::new());
    assert_eq!(key.runs.behind(), ["k".into()]);
}
