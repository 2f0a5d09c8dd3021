//! What arrives where the order of keys is kept.

use super::*;
use crate::{
    delivery::{DeliveryId, Disposition},
    error::SourceError,
    machine::{IdVerdict, RestoredGroup},
};

fn keeps_order() -> Settings {
    Settings {
        message_ordering: true,
        streams: 1,
        ..settings()
    }
}

fn ordered() -> Bench {
    Bench::new(keeps_order())
}

impl Bench {
    /// A source whose host has messages 1 to 5, of which some are acknowledged and forgotten.
    fn after_five(forgotten: std::ops::RangeInclusive<u16>) -> Self {
        let mut bench = ordered();
        let messages = [(1, "a1"), (2, "a2"), (3, "a3"), (4, "a4"), (5, "a5")];
        bench.deliver("k", &messages);
        assert_eq!(bench.read(), [1, 2, 3, 4, 5]);
        for number in forgotten {
            let delivery = DeliveryId::new(0, number - 1);
            bench.machine.settle(delivery, Disposition::Ack).unwrap();
        }
        bench.work();
        bench.answer_all();
        bench
    }

    /// Leases are to be extended, and the service says that this one is over.
    fn lose_lease(&mut self, ack_id: &str) {
        let due = self.machine.leases.next_due().unwrap();
        self.wait(due - self.now);
        for sent in std::mem::take(&mut self.sent) {
            let verdicts = [(ack_id.to_owned(), IdVerdict::Worthless)].into();
            let others_done = true;
            let answer = Answer::Mixed {
                verdicts,
                others_done,
            };
            self.answer(&sent, answer);
        }
    }

    /// Whether what the handle has taken comes out.
    fn pops(&mut self) -> bool {
        self.out.pop(self.now, self.machine.revoked()).is_ok()
    }
}

#[test]
fn a_source_that_keeps_the_order_ends_when_the_subscription_does_not() {
    for (kept, says) in [
        (true, Some(false)),
        (true, Some(true)),
        (true, None),
        (false, Some(false)),
    ] {
        let mut bench = if kept {
            ordered()
        } else {
            Bench::new(settings())
        };
        bench.ordered = says;
        bench.deliver("k", &[(1, "a1")]);
        let error = bench.machine.take_error();
        let ends = matches!(error, Some(SourceError::Unordered { .. }));
        assert_eq!(ends, kept && says == Some(false), "{kept} {says:?}");
    }
}

#[test]
fn what_the_host_has_does_not_come_out_again_when_it_comes_again() {
    let mut bench = ordered();
    bench.deliver("k", &[(1, "a1"), (2, "a2")]);
    assert_eq!(bench.read(), [1, 2]);
    bench.deliver("k", &[(1, "b1"), (2, "b2"), (3, "b3")]);
    assert_eq!(bench.read(), [3]);
    let stats = bench.machine.stats(bench.now);
    assert_eq!((stats.redelivered, stats.repeated, stats.leased), (2, 0, 3));
}

/// What comes after it in its key need not come again, so it must be acknowledged.
#[test]
fn what_comes_again_while_the_source_closes_takes_over_and_what_is_new_is_given_back() {
    let mut bench = ordered();
    bench.deliver("k", &[(1, "a1")]);
    assert_eq!(bench.read(), [1]);
    bench.seal(1);
    bench.machine.commit(bench.now, Epoch::new(1)).unwrap();
    bench.work();
    assert_eq!(bench.acknowledging(), ["a1"]);
    bench.machine.close(bench.now);
    // The stream has not ended yet.
    bench.deliver("k", &[(1, "b1"), (2, "b2")]);
    let first = bench.sent.remove(0);
    bench.answer(&first, Answer::Done);
    let sent = bench.answer_all();
    let sent: Vec<_> = sent
        .iter()
        .map(|sent| (sent.method, sent.ack_ids.join(" ")))
        .collect();
    let expected = [
        (CallMethod::Acknowledge, "b1".to_owned()),
        (CallMethod::ModifyAckDeadline, "b2".to_owned()),
    ];
    assert_eq!(sent, expected);
    assert_eq!(bench.machine.stats(bench.now).acknowledged, 1);
}

#[test]
fn a_message_keeps_the_key_that_it_came_with_first() {
    let mut bench = ordered();
    bench.deliver("k", &[(1, "a1")]);
    bench.deliver("other", &[(1, "b1"), (2, "b2")]);
    bench.deliver("", &[(1, "c1")]);
    assert_eq!(bench.read(), [1, 2]);
    bench.deliver("", &[(1, "d1"), (2, "d2")]);
    bench.deliver("k", &[(3, "a3")]);
    bench.deliver("other", &[(4, "b4")]);
    assert_eq!(bench.read(), [3, 4], "neither key waits for the other's");
    bench.machine.check_invariants();
}

#[test]
fn what_a_durable_epoch_names_is_acknowledged_and_does_not_come_out() {
    let restoration = Restoration {
        epoch: Some(Epoch::new(1)),
        groups: vec![RestoredGroup {
            ids: vec![MessageKey::Number(1)],
            published_by: 5,
            remaining: None,
            held: None,
        }],
        ..Restoration::default()
    };
    let mut bench = Bench::restored(keeps_order(), restoration);
    bench.deliver("k", &[(1, "a1"), (2, "a2")]);
    assert_eq!(bench.acknowledging(), ["a1"]);
    assert_eq!(bench.read(), [2]);
}

#[test]
fn what_waits_keeps_its_place_before_what_was_dropped() {
    let mut bench = Bench::after_five(1..=5);
    bench.deliver("k", &[(2, "b2")]);
    bench.deliver("k", &[(3, "b3")]);
    bench.lose_lease("b3");
    bench.deliver("k", &[(2, "c2")]);
    assert_eq!(bench.machine.stats(bench.now).dropped_behind, 1, "3");
    bench.deliver("k", &[(3, "c3")]);
    assert_eq!(bench.read(), [2, 3]);
}

/// The host is behind, at 2.
#[test]
fn what_the_host_has_is_dropped_behind_what_it_is_to_get_again() {
    let mut bench = Bench::after_five(2..=2);
    bench.deliver("k", &[(2, "b2")]);
    assert_eq!(bench.read(), [2]);
    bench.deliver("k", &[(3, "b3")]);
    assert_eq!(bench.machine.stats(bench.now).repeated, 1);
    bench.lose_lease("b3");
    assert_eq!(bench.machine.stats(bench.now).dropped_behind, 1, "3");
    bench.deliver("k", &[(4, "b4")]);
    assert_eq!(bench.machine.stats(bench.now).dropped_behind, 2, "and 4");
    bench.deliver("k", &[(3, "c3"), (4, "c4"), (5, "c5")]);
    assert_eq!(bench.read(), [3, 4, 5]);
}

#[test]
fn what_the_handle_has_taken_does_not_come_out_behind_what_lapsed() {
    let mut bench = ordered();
    bench.deliver("k", &[(1, "a1")]);
    assert_eq!(bench.read(), [1]);
    bench.deliver("k", &[(2, "a2")]);
    assert!(bench.take());
    bench.lose_lease("a1");
    assert!(!bench.pops());
}

/// The handle has not said yet what became of it.
#[test]
fn what_comes_again_of_what_is_revoked_does_not_come_out_either() {
    let mut bench = ordered();
    bench.deliver("k", &[(1, "a1"), (2, "a2")]);
    assert!(bench.take());
    bench.lose_lease("a1");
    bench.deliver("k", &[(2, "b2")]);
    assert_eq!(bench.read(), [0; 0]);
    bench.deliver("k", &[(1, "c1"), (2, "c2")]);
    assert_eq!(bench.read(), [1, 2]);
}

#[test]
fn what_waits_behind_what_is_given_back_for_want_of_a_host_is_given_back_too() {
    let mut bench = Bench::new(Settings {
        max_hold: SECOND * 30,
        ..keeps_order()
    });
    bench.deliver("k", &[(1, "a1")]);
    bench.wait(SECOND);
    bench.deliver("k", &[(2, "a2")]);
    bench.wait(SECOND * 29);
    let sent: Vec<Sent> = bench.answer_all();
    let released = sent.iter().filter(|sent| sent.seconds == 0);
    let released: Vec<&String> = released.flat_map(|sent| &sent.ack_ids).collect();
    assert_eq!(released, ["a1", "a2"]);
}

#[test]
fn what_the_host_gives_back_comes_again_before_what_waited_behind_it() {
    let mut bench = ordered();
    bench.deliver("k", &[(1, "a1"), (2, "a2")]);
    assert_eq!(bench.read(), [1, 2]);
    bench.deliver("k", &[(3, "a3")]);
    let one = DeliveryId::new(0, 0);
    bench.machine.settle(one, Disposition::Nack).unwrap();
    bench.work();
    bench.deliver("k", &[(1, "b1"), (2, "b2"), (3, "b3")]);
    assert_eq!(bench.read(), [1, 2, 3]);
}

/// Not even what only keeps its place in the order, since it came again behind an earlier message.
#[test]
fn nothing_that_the_handle_has_taken_comes_out_of_a_parked_source() {
    let mut bench = Bench::after_five(1..=5);
    bench.deliver("k", &[(2, "b2")]);
    assert!(bench.take());
    bench.deliver("k", &[(1, "b1")]);
    bench.deliver("k", &[(2, "c2")]);
    bench.machine.pause(bench.now);
    bench.machine.park(bench.now);
    bench.work();
    assert!(!bench.pops());
}

#[test]
fn keys_that_nothing_depends_on_are_forgotten_when_there_are_many() {
    let mut bench = ordered();
    let runs = bench.machine.runs.as_mut().unwrap();
    for number in 0..10_001 {
        runs.key(&number.to_string());
    }
    assert!(runs.is_crowded());
    bench.deliver("", &[(1, "a1")]);
    assert!(!bench.machine.runs.as_ref().unwrap().is_crowded());
}

impl Bench {
    /// 2 came again, then another one, and then 2 behind it: the first 2 only keeps its place.
    fn stepped_back_twice(between: u64) -> Self {
        let mut bench = Self::after_five(1..=5);
        for (number, ack_id) in [(2, "b2"), (between, "b"), (2, "c2")] {
            bench.deliver("k", &[(number, ack_id)]);
        }
        bench
    }
}

#[test]
fn what_comes_again_behind_another_message_comes_out_at_both_places() {
    for between in [1, 3] {
        let mut bench = Bench::stepped_back_twice(between);
        assert_eq!(bench.read(), [2, between, 2]);
    }
}

#[test]
fn a_key_goes_on_after_its_source_was_parked_with_what_waited() {
    let mut bench = Bench::stepped_back_twice(3);
    bench.machine.pause(bench.now);
    bench.machine.park(bench.now);
    bench.work();
    bench.answer_all();
    assert_eq!(bench.machine.deliveries.batches().count(), 0);
    bench.machine.resume(bench.now);
    bench.wait(SECOND);
    bench.deliver("k", &[(2, "d2"), (3, "d3")]);
    assert_eq!(bench.read(), [2, 3], "where 2 waited first");
}
