//! What becomes of deliveries, one by one and together.

use std::time::Duration;

use super::*;
use crate::machine::runs::{Passage, Runs};

const PUBLISHED: i64 = 11;

fn id(batch: u64, index: u16) -> DeliveryId {
    DeliveryId::new(batch, index)
}

fn number(number: u64) -> MessageKey {
    MessageKey::Number(number)
}

/// Deliveries, and what was asked of them last is checked.
struct Held(Deliveries);

impl Held {
    /// A batch for each of these responses.
    fn of(responses: &[&[u64]]) -> Self {
        Self::saving(responses, false)
    }

    fn saving(responses: &[&[u64]], saves_ack_ids: bool) -> Self {
        let mut held = Self(Deliveries::new(Ledger::new(), saves_ack_ids));
        for response in responses {
            held.open(response);
            assert!(held.0.arrive_together(held.0.next_batch - 1).is_empty());
            held.check();
        }
        held
    }

    fn open(&mut self, numbers: &[u64]) -> u64 {
        let mut ack_ids = AckIds::default();
        for _ in numbers {
            assert!(ack_ids.push(b"an ack id"));
        }
        let keys = numbers.iter().copied().map(number).collect();
        self.0.open(crate::driver::now(), PUBLISHED, keys, ack_ids)
    }

    fn check(&self) {
        self.0.check_invariants();
    }

    /// Hands all deliveries of a batch out.
    fn hand_out(&mut self, batch: u64) {
        for id in self.0.ids_of(batch) {
            assert!(self.0.hand_out(id));
        }
        self.check();
    }

    /// Commits everything as epoch 1. Answers the items and their places.
    fn commit(&mut self) -> Vec<(Place, MessageKey)> {
        let epoch = Epoch::new(1);
        self.0.seal(epoch).unwrap();
        let released = self.0.commit(epoch).unwrap().released;
        let items = released.iter().flat_map(|segment| segment.iter());
        items.map(|(place, key)| (place, key.clone())).collect()
    }
}

#[test]
fn what_lies_together_goes_together() {
    let mut held = Held::of(&[&[0, 1, 2, 3, 4, 5], &[6, 7]]);
    assert!(held.0.hand_out_run(id(0, 0), 4));
    assert!(!held.0.hand_out_run(id(0, 3), 2), "one of them is out");
    assert!(held.0.hand_out_run(id(0, 4), 2));
    assert!(held.0.hand_out_run(id(1, 0), 2));
    assert_eq!(held.0.expected_run(10).map(|(_, count)| count), Some(6));
    let items = held.commit();
    assert_eq!(held.0.expected_run(2), Some((items[0].0, 2)), "at most");
    let started = held.0.start_run(4);
    assert_eq!(
        started.map(|(first, ids)| (first, ids.count())),
        Some((id(0, 0), 4))
    );
    assert_eq!(held.0.expected_run(10), Some((items[4].0, 2)));
    assert!(held.0.start_run(2).is_some());
    assert_eq!(
        held.0.expected_run(10),
        Some((items[6].0, 2)),
        "of the next batch"
    );
    held.check();

    assert!(!held.0.settle_acked(id(1, 0), 2), "not being acknowledged");
    assert!(held.0.settle_acked(id(0, 0), 5));
    held.check();
    assert_eq!((held.0.leased(), held.0.ledger().len()), (3, 3));
    assert_eq!(held.0.find(&number(4)), None);
    assert!(held.0.settle_acked(id(0, 5), 1));
    held.check();
    assert_eq!(held.0.take_emptied(), [0]);
    assert_eq!(held.0.take_emptied(), [0; 0], "once");
    assert_eq!(held.0.batches().collect::<Vec<_>>(), [1]);
}

#[test]
fn what_more_is_to_be_said_of_goes_one_by_one() {
    let mut held = Held::of(&[&[0, 1, 2]]);
    held.hand_out(0);
    held.commit();
    assert!(held.0.start_run(3).is_some());
    held.0.mark_retried(id(0, 1));
    assert!(!held.0.settle_acked(id(0, 0), 3));
    assert!(held.0.settle_acked(id(0, 0), 1));
    let batch = held.open(&[2]);
    assert!(!held.0.has_forwards());
    assert_eq!(
        held.0.arrive(id(batch, 0), PUBLISHED),
        Arrival::Renewed(Stage::Acking)
    );
    held.check();
    assert!(held.0.has_forwards());
    assert!(
        !held.0.settle_acked(id(batch, 0), 1),
        "the host knows it by another id"
    );
    held.open(&[9]);
    assert!(!held.0.hand_out_run(id(2, 0), 1));
    let key = held.0.settle(id(batch, 0), Outcome::Settled);
    assert_eq!(key, Some(number(2)));
    assert!(!held.0.has_forwards());
    assert_eq!(held.0.origin(id(batch, 0)), id(batch, 0));
}

#[test]
fn a_list_of_deliveries_falls_into_runs_within_one_batch() {
    let last = u16::try_from(DeliveryId::MAX_BATCH - 1).unwrap();
    let ids = [
        id(0, 0),
        id(0, 1),
        id(0, 3),
        id(0, last),
        id(1, 0),
        id(1, 1),
        id(3, 2),
    ];
    let runs: Vec<usize> = runs_of(&ids).map(<[DeliveryId]>::len).collect();
    assert_eq!(runs, [2, 1, 1, 2, 1]);
}

#[test]
fn the_delivery_after_the_last_one_is_looked_at_first() {
    let mut held = Held::of(&[&[0, 1], &[2, 3]]);
    held.hand_out(0);
    held.hand_out(1);
    let items = held.commit();
    for (at, expected) in [(0, id(0, 1)), (1, id(1, 0)), (3, id(2, 0)), (2, id(1, 1))] {
        let (place, key) = &items[at];
        let started = held.0.start_released(*place, key);
        assert_eq!(started.and_then(|id| held.0.key(id)), Some(key));
        assert_eq!(held.0.expected, expected);
    }
    let (place, key) = &items[0];
    assert_eq!(held.0.start_released(*place, key), None, "once");
    held.check();
}

#[test]
fn a_delivery_is_acknowledged_for_its_own_place_while_it_is_out() {
    let mut held = Held::of(&[&[0, 1]]);
    held.hand_out(0);
    let items = held.commit();
    assert!(!held.0.start_ack(id(0, 0), items[1].0));
    assert!(held.0.start_ack(id(0, 0), items[0].0));
    assert!(!held.0.start_ack(id(0, 0), items[0].0), "once");
    assert!(!held.0.start_ack(id(7, 0), items[0].0), "never seen");
}

#[test]
fn a_lease_ends_once() {
    let mut held = Held::of(&[&[0, 1]]);
    assert!(held.0.hand_out(id(0, 0)));
    for (index, stage) in [(0, Stage::Out), (1, Stage::Buffered)] {
        assert_eq!(held.0.lapse(id(0, index)), stage);
        assert_eq!(held.0.lapse(id(0, index)), Stage::Gone);
        held.check();
    }
    assert_eq!(held.0.leased(), 0);
    assert_eq!(held.0.lapse(id(7, 0)), Stage::Gone, "never seen");
    let key = held.0.settle(id(0, 1), Outcome::Lapsed);
    assert_eq!(key, Some(number(1)));
    held.check();
}

#[test]
fn marks_are_for_deliveries_that_a_batch_has() {
    let mut held = Held::of(&[&[0, 1]]);
    for index in 1..4 {
        held.0.mark_retried(id(0, index));
        held.0.mark_revoked(id(0, index));
    }
    let marks = held.0.marks(id(0, 1));
    assert!(marks.has(Marks::RETRIED) && marks.has(Marks::REVOKED));
    assert_eq!(held.0.marks(id(0, 0)), Marks::default());
    assert_eq!(
        held.0.stage_and_marks(id(0, 2)),
        (Stage::Gone, Marks::default())
    );
}

#[test]
fn an_item_whose_delivery_is_gone_gets_one_verdict() {
    let mut held = Held::of(&[&[0]]);
    held.hand_out(0);
    assert!(held.0.start_expiry(id(0, 0)));
    assert!(!held.0.start_expiry(id(0, 0)), "on its way already");
    held.check();
    assert_eq!((held.0.leased(), held.0.releasing()), (0, 1));
    assert_eq!(held.0.settle(id(0, 0), Outcome::Settled), None);
    held.check();
    assert_eq!(held.0.releasing(), 0);
    let items = held.commit();
    assert!(held.0.settle_place(items[0].0, Outcome::Lapsed));
    assert!(!held.0.settle_place(items[0].0, Outcome::Lapsed));
    let (_, committed) = held.0.poll_committed().unwrap();
    assert_eq!((committed.settled, committed.lapsed), (0, 1));
}

#[test]
fn an_aborted_epoch_is_open_again() {
    let mut held = Held::of(&[&[0]]);
    held.hand_out(0);
    held.0.seal(Epoch::new(1)).unwrap();
    assert_eq!(held.0.standing(id(0, 0)), Standing::Sealed(Epoch::new(1)));
    held.0.abort(Epoch::new(1));
    assert_eq!(held.0.standing(id(0, 0)), Standing::Open);
}

#[test]
fn a_message_is_handed_out_once() {
    let mut held = Held::of(&[&[0], &[1, 2]]);
    assert_eq!(held.0.newest_out(), i64::MIN);
    assert_eq!(held.0.published_by(id(0, 0)), PUBLISHED);
    assert_eq!(held.0.published_by(id(7, 0)), i64::MIN, "never seen");
    assert!(held.0.hand_out(id(0, 0)));
    assert_eq!(held.0.newest_out(), PUBLISHED);
    assert!(!held.0.hand_out(id(0, 0)));
    assert!(!held.0.hand_out(id(7, 0)));
    assert!(held.0.start_release(id(1, 0)));
    assert!(!held.0.start_release(id(1, 0)));
    assert!(!held.0.hand_out(id(1, 0)), "given back");
    assert_eq!(held.0.ledger().len(), 1);
    held.check();
}

#[test]
fn a_state_names_no_ack_id_of_what_was_handed_out_after_its_lease() {
    let mut held = Held::saving(&[&[0, 1, 2]], true);
    held.0.lapse(id(0, 0));
    assert!(
        !held.0.hand_out_run(id(0, 1), 1),
        "ack ids are saved one by one"
    );
    held.0.supersede(id(0, 2));
    held.hand_out(0);
    let items = held.commit();
    let saved = held.0.saved_ack_ids().unwrap();
    let named: Vec<bool> = items
        .iter()
        .map(|(place, _)| saved.get(*place).is_some_and(|ack_id| !ack_id.is_empty()))
        .collect();
    assert_eq!(named, [false, true, false]);
}

#[test]
fn what_the_host_settles_leaves_its_epoch_and_keeps_its_key() {
    let mut held = Held::of(&[&[0]]);
    held.hand_out(0);
    held.0.start_host_ack(id(0, 0));
    held.check();
    assert_eq!(held.0.stage(id(0, 0)), Stage::HostAcking);
    assert_eq!((held.0.ledger().len(), held.0.leased()), (0, 1));
    assert_eq!(held.0.find(&number(0)), Some(id(0, 0)));
}

#[test]
fn what_gave_way_to_its_redelivery_keeps_its_place_in_the_order_or_in_its_epoch() {
    let mut held = Held::of(&[&[0, 1, 2]]);
    held.hand_out(0);
    let mut waiting = Held::of(&[&[0, 1, 2]]);
    for deliveries in [&mut held, &mut waiting] {
        deliveries.0.lapse(id(0, 1));
        for index in 0..2 {
            deliveries.0.supersede(id(0, index));
            deliveries.check();
            assert_eq!(deliveries.0.find(&number(u64::from(index))), None);
        }
        assert_eq!(deliveries.0.leased(), 1);
    }
    assert_eq!(held.0.stage(id(0, 0)), Stage::Gone);
    assert_eq!(held.0.ledger().len(), 3, "the epoch reports it lapsed");
    assert_eq!(waiting.0.stage(id(0, 0)), Stage::Superseded);
    assert!(waiting.0.hand_out(id(0, 0)), "in its turn");
    assert_eq!(waiting.0.stage(id(0, 0)), Stage::Gone);
    waiting.check();
    assert_eq!(waiting.0.settle(id(0, 1), Outcome::Lapsed), None);
    waiting.check();
}

#[test]
fn only_keys_of_what_is_held_are_needed() {
    let mut held = Held::of(&[&[0, 1], &[2]]);
    let mut runs = Runs::new(Duration::ZERO, 0, Vec::new());
    let (one, other) = (runs.key("one"), runs.key("other"));
    let passage = Passage { turn: 3, rank: 5 };
    held.0.set_ordering(id(0, 0), one, passage);
    held.0.set_ordering(id(1, 0), other, passage);
    assert_eq!(held.0.passage(id(0, 0)), passage);
    assert_eq!(held.0.passage(id(0, 1)), Passage::default());
    assert_eq!(held.0.ordering_keys(), [one, other].into());
    held.0.settle(id(0, 0), Outcome::Lapsed);
    assert_eq!(held.0.ordering_keys(), [other].into());
}

#[test]
fn another_message_of_the_same_id_was_published_after_everything_that_came_with_the_held_one() {
    let mut held = Held::of(&[&[0]]);
    let batch = held.open(&[0]);
    let arrival = held.0.arrive(id(batch, 0), PUBLISHED + 1);
    assert_eq!(arrival, Arrival::Namesake(id(0, 0)));
    assert_eq!(
        held.0.arrive(id(batch, 0), PUBLISHED),
        Arrival::Renewed(Stage::Buffered)
    );
    held.check();
    assert_eq!(held.0.current(id(0, 0)), id(batch, 0));
    assert_eq!(held.0.origin(id(batch, 0)), id(0, 0));
}

#[test]
fn a_run_that_goes_on_in_the_next_segment_of_the_ledger_has_its_places() {
    let many: Vec<u64> = (0..DeliveryId::MAX_BATCH as u64).collect();
    let mut held = Held::of(&[&many, &[5_000, 5_001, 5_002]]);
    // A segment has 65,536 places, and these leave ten of them.
    for other in 0..65_526 {
        held.0.ledger.add(number(1_000_000 + other));
    }
    assert!(held.0.hand_out(id(1, 0)));
    assert!(held.0.hand_out(id(0, 0)));
    assert!(held.0.hand_out_run(id(0, 1), many.len() - 1));
    held.check();
    assert!(held.0.batches.get(0).unwrap().keys().is_empty(), "memory");
    for (index, key) in (0..).zip(&many) {
        assert_eq!(held.0.key(id(0, index)), Some(&number(*key)));
    }
    assert_eq!(held.0.batches.get(1).unwrap().keys().len(), 3);
    held.0.seal(Epoch::new(1)).unwrap();
    let released = held.0.commit(Epoch::new(1)).unwrap().released;
    let lens: Vec<usize> = released.iter().map(|segment| segment.len()).collect();
    assert_eq!(lens, [65_536, many.len() - 9]);
}
