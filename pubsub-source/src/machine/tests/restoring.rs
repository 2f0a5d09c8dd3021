//! Ack ids that states save, and what they are worth.

use std::time::SystemTime;

use super::*;
use crate::{
    delivery::DeliveryId,
    machine::{RestoredGroup, RestoredHeld},
    state::SavedDeliveries,
};

fn saves_ack_ids() -> Settings {
    Settings {
        saved_deliveries: SavedDeliveries::AckIds,
        ..settings()
    }
}

/// The messages whose ack ids a state names.
fn named(state: &SourceState) -> Vec<MessageKey> {
    let name = "projects/demo-project/subscriptions/s11".parse().unwrap();
    let groups = state.groups_of(&name, SystemTime::UNIX_EPOCH);
    let held = groups.into_iter().filter_map(|group| group.held);
    held.flat_map(|held| held.keys).collect()
}

fn numbers(numbers: &[u64]) -> Vec<MessageKey> {
    numbers.iter().copied().map(MessageKey::Number).collect()
}

#[test]
fn an_ack_id_whose_lease_is_over_is_not_saved_until_its_message_comes_again() {
    let mut bench = Bench::new(saves_ack_ids());
    bench.deliver("", &[(1, "a1")]);
    assert_eq!(bench.read(), [1]);
    assert_eq!(named(&bench.seal(1)), numbers(&[1]));
    // No extension is confirmed.
    bench.wait(SECOND * 70);
    bench.deliver("", &[(2, "a2")]);
    assert_eq!(bench.read(), [2]);
    let state = bench.seal(2);
    assert_eq!((state.named(), named(&state)), (2, numbers(&[2])));
    bench.deliver("", &[(1, "b1")]);
    assert_eq!(named(&bench.seal(3)), numbers(&[1, 2]));
}

#[test]
fn an_ack_id_that_was_given_back_is_not_saved() {
    let mut bench = Bench::new(Settings {
        max_hold: SECOND * 50,
        ..saves_ack_ids()
    });
    bench.deliver("", &[(1, "a1")]);
    assert_eq!(bench.read(), [1]);
    bench.wait(SECOND * 49);
    bench.answer_all();
    bench.deliver("", &[(2, "a2")]);
    assert_eq!(bench.read(), [2]);
    assert_eq!(named(&bench.seal(1)), numbers(&[1, 2]));
    bench.wait(SECOND * 2);
    assert_eq!(bench.machine.stats(bench.now).held_too_long, 1);
    let state = bench.seal(2);
    assert_eq!((state.named(), named(&state)), (2, numbers(&[2])));
}

/// What a state says of message 1.
fn group(published_by: i64, ack_id: &str) -> RestoredGroup {
    group_of(published_by, &[(1, ack_id)])
}

/// What a state says of these messages; of one without an ack id that it was not leased.
fn group_of(published_by: i64, messages: &[(u64, &str)]) -> RestoredGroup {
    let mut ack_ids = AckIds::default();
    for (_, ack_id) in messages {
        assert!(ack_ids.push(ack_id.as_bytes()));
    }
    let keys: Vec<u64> = messages.iter().map(|(number, _)| *number).collect();
    RestoredGroup {
        ids: numbers(&keys),
        published_by,
        remaining: None,
        held: Some(RestoredHeld {
            keys: numbers(&keys),
            ack_ids,
            lease_left: SECOND * 30,
        }),
    }
}

fn restored(groups: Vec<RestoredGroup>) -> Bench {
    let restoration = Restoration {
        epoch: Some(Epoch::new(1)),
        groups,
        ..Restoration::default()
    };
    Bench::restored(saves_ack_ids(), restoration)
}

#[test]
fn of_two_states_that_name_a_message_the_newer_ones_ack_id_is_sent() {
    for groups in [
        vec![group(5, "older"), group(6, "newer")],
        vec![group(6, "newer"), group(5, "older")],
    ] {
        let mut bench = restored(groups);
        assert_eq!(bench.acknowledging(), ["newer"]);
        bench.answer_all();
        let committed = bench.machine.restored().expect("it has its verdict");
        assert_eq!((committed.settled, committed.lapsed), (1, 0));
    }
}

/// Its source may have given it back at its end, and the service answers OK all the same.
#[test]
fn an_ok_for_a_restored_ack_id_does_not_use_up_the_seen_window() {
    let mut bench = restored(vec![group(5, "saved")]);
    bench.answer_all();
    // Much later than a lease ends.
    bench.wait(SECOND * 600);
    bench.deliver("", &[(1, "b1")]);
    assert_eq!(bench.read(), [0; 0]);
    assert_eq!(bench.acknowledging(), ["b1"]);
    bench.answer_all();
    // That one was ours: what comes after it is a replay that somebody asked for.
    bench.wait(SECOND * 120);
    bench.deliver("", &[(1, "c1")]);
    assert_eq!(bench.read(), [1]);
}

/// The service then says what an acknowledgement did.
#[test]
fn an_ok_for_a_restored_ack_id_with_exactly_once_delivery_uses_up_the_seen_window() {
    let mut bench = restored(vec![group(5, "saved")]);
    let before = bench.sent.remove(0);
    bench.answer(&before, Answer::Again(None));
    bench.exactly_once = true;
    bench.deliver("", &[(9, "a9")]);
    bench.wait(SECOND * 10);
    assert_eq!(bench.acknowledging(), ["saved"]);
    bench.answer_all();
    bench.wait(SECOND * 300);
    bench.answer_all();
    bench.deliver("", &[(1, "b1")]);
    bench.answer_all();
    assert!(bench.read().contains(&1));
}

fn verdicts(bench: &Bench) -> Option<(usize, usize)> {
    let committed = bench.machine.restored()?;
    Some((committed.settled, committed.lapsed))
}

#[test]
fn what_states_name_is_committed_when_each_ack_id_has_its_verdict_and_what_has_none_lapses() {
    let mut bench = restored(vec![group_of(5, &[(1, "one"), (2, ""), (3, "three")])]);
    assert_eq!(verdicts(&bench), None);
    // Of another delivery, which is no part of it.
    bench.deliver("", &[(9, "a9")]);
    assert_eq!(bench.read(), [9]);
    bench.seal(2);
    bench.machine.commit(bench.now, Epoch::new(2)).unwrap();
    bench.work();
    let sent = bench.sent.remove(0);
    assert_eq!(sent.ack_ids, ["one", "three"]);
    bench.answer_all();
    assert_eq!(bench.machine.stats(bench.now).acknowledged, 1);
    assert_eq!(verdicts(&bench), None);
    let verdict = |ack_id: &str| (ack_id.to_owned(), crate::machine::IdVerdict::Worthless);
    let answer = Answer::Mixed {
        verdicts: [verdict("one")].into(),
        others_done: true,
    };
    bench.answer(&sent, answer);
    assert_eq!(verdicts(&bench), Some((1, 2)));
}

#[test]
fn an_acknowledgement_that_is_no_part_of_what_states_name_is_not_counted_in_it() {
    let mut bench = restored(vec![group(5, "saved")]);
    let saved = bench.sent.remove(0);
    bench.deliver("", &[(9, "a9")]);
    assert_eq!(bench.read(), [9]);
    bench.seal(2);
    bench.machine.commit(bench.now, Epoch::new(2)).unwrap();
    bench.work();
    // So slow that it is looked at one by one.
    bench.wait(SECOND * 2);
    bench.answer_all();
    assert_eq!(bench.machine.stats(bench.now).acknowledged, 1);
    assert_eq!(verdicts(&bench), None);
    bench.answer(&saved, Answer::Done);
    assert_eq!(verdicts(&bench), Some((1, 0)));
}

#[test]
fn many_ack_ids_of_one_state_are_held_as_full_responses_are() {
    let most = DeliveryId::MAX_BATCH;
    let messages: Vec<(u64, &str)> = (0..most as u64 + 3)
        .map(|number| (number, "saved"))
        .collect();
    let mut bench = restored(vec![group_of(5, &messages)]);
    let lens = |bench: &Bench| {
        let deliveries = &bench.machine.deliveries;
        let batches = deliveries.batches();
        batches
            .map(|batch| deliveries.ids_of(batch).count())
            .collect::<Vec<_>>()
    };
    assert_eq!(lens(&bench), [most, 3]);
    bench.answer_all();
    assert_eq!(verdicts(&bench), Some((most + 3, 0)));
}

#[test]
fn nothing_is_committed_before_the_first_poll_and_nothing_that_was_forgotten_by_then() {
    let restoration = Restoration {
        epoch: Some(Epoch::new(1)),
        groups: vec![group(5, "saved")],
        ..Restoration::default()
    };
    let now = crate::driver::now();
    let subscription = "projects/demo-project/subscriptions/s11".parse().unwrap();
    let settings = saves_ack_ids();
    let mut machine = Machine::new(now, subscription, "a-source".into(), settings, restoration);
    assert!(machine.restored().is_none());
    machine.forget_seen();
    machine.start(now);
    while let Some(effect) = machine.poll_effect(now) {
        assert!(!matches!(effect, Effect::Call { .. }));
    }
}
