//! What a batch remembers of each of its deliveries, and for how long.

use std::time::Duration;

use super::*;
use crate::machine::runs::Runs;

fn batch(count: u64) -> Batch {
    let mut ack_ids = AckIds::default();
    for _ in 0..count {
        assert!(ack_ids.push(b"an ack id"));
    }
    let keys = (0..count).map(MessageKey::Number).collect();
    Batch::new(crate::driver::now(), 0, keys, ack_ids)
}

#[test]
fn a_mark_stays_whatever_else_is_marked() {
    let mut batch = batch(2);
    let marked = [Marks::LAPSED, Marks::RETRIED, Marks::LAPSED];
    for mark in marked {
        batch.mark(1, mark);
    }
    assert_eq!(batch.marks(0), Marks::default());
    let has = |mark| batch.marks(1).has(mark);
    assert!(marked.into_iter().all(has));
    assert!(!has(Marks::RENEWED) && !has(Marks::REVOKED));
}

#[test]
fn each_delivery_has_the_passage_that_it_was_given() {
    let mut batch = batch(2);
    assert_eq!(batch.passage(0), Passage::default());
    let key = Runs::new(Duration::ZERO, 0, Vec::new()).key("k");
    let passage = Passage { turn: 3, rank: 5 };
    batch.set_ordering(1, key, passage);
    assert_eq!(
        (batch.ordering_key(0), batch.passage(0)),
        (None, Passage::default())
    );
    assert_eq!(
        (batch.ordering_key(1), batch.passage(1)),
        (Some(key), passage)
    );
}

#[test]
fn the_memory_of_keys_is_given_back_with_the_last_and_taken_again_for_one_that_comes_back() {
    let mut batch = batch(2);
    for number in 0..2 {
        assert_eq!(batch.keys().len(), 2);
        let index = usize::try_from(number).unwrap();
        assert_eq!(batch.take_key(index), MessageKey::Number(number));
    }
    assert!(batch.keys().is_empty());
    batch.put_key(1, MessageKey::Number(1));
    assert_eq!(batch.key(1), Some(&MessageKey::Number(1)));
    assert_eq!(batch.take_key(1), MessageKey::Number(1));
    assert!(batch.keys().is_empty());
}

#[test]
fn a_batch_is_live_until_each_delivery_is_gone_one_by_one_or_together() {
    let mut batch = batch(5);
    batch.set_stage(4, Stage::Gone);
    assert_eq!(batch.live(), 4);
    batch.set_stages(0..4, Stage::Acking);
    assert_eq!(batch.live(), 4);
    assert_eq!(batch.count_in(Stage::Acking, 1, 2), 2, "at most so many");
    assert_eq!(
        batch.count_in(Stage::Acking, 1, 9),
        3,
        "up to the one that is gone"
    );
    batch.set_stages(1..3, Stage::Gone);
    assert_eq!(batch.live(), 2);
    assert!(batch.are_plainly(Stage::Acking, 3..4));
    assert!(!batch.are_plainly(Stage::Acking, 2..4));
    batch.mark(3, Marks::RENEWED);
    assert!(
        batch.are_plainly(Stage::Acking, 0..1),
        "of another nothing is said"
    );
    assert!(!batch.are_plainly(Stage::Acking, 3..4));
}
