//! What answers say about deliveries, and which messages may come again all the same.

use std::collections::BTreeMap;

use super::*;
use crate::{
    delivery::{DeliveryId, Disposition},
    machine::{IdVerdict, RestoredGroup},
};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Longer than a message is remembered of which a delivery may have been under way, and shorter
/// than one that comes again for certain.
const A_LEASE: Duration = Duration::from_secs(61);

impl Bench {
    /// Commits everything that was handed out. Answers the request that acknowledges it.
    fn commit(&mut self) -> Sent {
        self.seal(1);
        self.machine.commit(self.now, Epoch::new(1)).unwrap();
        self.work();
        self.sent.pop().unwrap()
    }

    /// A source whose host committed these messages, and the request that acknowledges them.
    fn committed(messages: &[(u64, &str)]) -> (Self, Sent) {
        let mut bench = Self::new(settings());
        bench.deliver("", messages);
        assert_eq!(bench.read().len(), messages.len());
        let sent = bench.commit();
        (bench, sent)
    }

    /// A source whose host settled message 1, and the request that acknowledges it.
    fn settled() -> (Self, Sent) {
        let mut bench = Self::new(settings());
        bench.deliver("", &[(1, "a1")]);
        bench.read();
        let delivery = DeliveryId::new(0, 0);
        bench.machine.settle(delivery, Disposition::Ack).unwrap();
        bench.work();
        let sent = bench.sent.pop().unwrap();
        (bench, sent)
    }

    /// A source that got message 1, which the state it was restored from names, and the request
    /// that acknowledges it.
    fn recognised() -> (Self, Sent) {
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
        let mut bench = Self::restored(settings(), restoration);
        bench.deliver("", &[(1, "a1")]);
        let sent = bench.sent.pop().unwrap();
        (bench, sent)
    }

    /// Waits until the leases are over, whose extension nobody confirms.
    fn let_leases_end(&mut self) {
        let ends = self.machine.leases.next_end().unwrap();
        self.wait(ends - self.now);
    }

    /// Acknowledged, lapsed, and remembered as what may come again.
    fn verdicts(&self) -> (u64, u64, usize) {
        let stats = self.machine.stats(self.now);
        (stats.acknowledged, stats.lapsed, stats.seen)
    }

    fn verdicts_after(&mut self, span: Duration) -> (u64, u64, usize) {
        self.wait(span);
        self.verdicts()
    }
}

fn each(ack_ids: &[&str], verdict: IdVerdict) -> BTreeMap<String, IdVerdict> {
    let verdicts = ack_ids.iter().map(|ack_id| ((*ack_id).to_owned(), verdict));
    verdicts.collect()
}

#[test]
fn a_message_is_remembered_for_a_lease_after_an_acknowledgement_that_took_more_than_a_second() {
    let second = SECOND;
    for (took, remembered) in [
        (second - MILLISECOND, 0),
        (second, 0),
        (second + MILLISECOND, 1),
    ] {
        for (mut bench, sent) in [Bench::committed(&[(1, "a1")]), Bench::settled()] {
            bench.wait(took);
            bench.answer(&sent, Answer::Done);
            assert_eq!(bench.verdicts(), (1, 0, remembered), "after {took:?}");
            assert_eq!(bench.verdicts_after(A_LEASE), (1, 0, 0));
        }
    }
}

#[test]
fn a_message_is_remembered_for_a_lease_after_an_acknowledgement_that_was_tried_again() {
    let (mut bench, sent) = Bench::committed(&[(1, "a1")]);
    bench.answer(&sent, Answer::Again(None));
    bench.wait(SECOND);
    assert_eq!(bench.acknowledging(), ["a1"]);
    bench.answer_all();
    assert_eq!(bench.verdicts(), (1, 0, 1));
    assert_eq!(bench.verdicts_after(A_LEASE), (1, 0, 0));
}

#[test]
fn a_message_is_remembered_for_a_lease_after_it_came_twice_before_it_was_acknowledged() {
    let mut bench = Bench::new(settings());
    bench.deliver("", &[(1, "a1")]);
    bench.read();
    bench.deliver("", &[(1, "b1")]);
    let sent = bench.commit();
    assert_eq!(sent.ack_ids, ["b1"]);
    bench.answer(&sent, Answer::Done);
    assert_eq!(bench.verdicts(), (1, 0, 1));
    assert_eq!(bench.verdicts_after(A_LEASE), (1, 0, 0));
}

#[test]
fn an_acknowledgement_that_is_confirmed_after_the_leases_end_is_none() {
    let (mut bench, sent) = Bench::committed(&[(1, "a1")]);
    bench.let_leases_end();
    bench.answer(&sent, Answer::Done);
    assert_eq!(bench.verdicts(), (0, 1, 1));
    let much_later = A_LEASE * 5;
    assert_eq!(bench.verdicts_after(much_later), (0, 1, 1), "it will come");
    bench.deliver("", &[(1, "b1")]);
    assert_eq!(bench.read(), [0; 0], "the host has it");
}

#[test]
fn the_host_is_told_what_became_of_what_it_settled() {
    let (mut bench, sent) = Bench::settled();
    bench.answer(&sent, Answer::Done);
    assert_eq!(bench.settled, [(1, 0)]);

    let (mut bench, sent) = Bench::settled();
    bench.let_leases_end();
    bench.answer(&sent, Answer::Done);
    assert_eq!(bench.settled, [(0, 1)]);

    let (mut bench, sent) = Bench::settled();
    let verdicts = each(&["a1"], IdVerdict::Worthless);
    let answer = Answer::Mixed {
        verdicts,
        others_done: true,
    };
    bench.answer(&sent, answer);
    assert_eq!(bench.settled, [(0, 1)]);
}

/// Nobody was promised anything: it may come out again.
#[test]
fn what_the_host_settled_after_the_leases_end_is_remembered_for_a_lease_only() {
    let (mut bench, sent) = Bench::settled();
    bench.let_leases_end();
    bench.answer(&sent, Answer::Done);
    assert_eq!(bench.verdicts(), (0, 1, 1));
    assert_eq!(bench.verdicts_after(A_LEASE), (0, 1, 0));
}

#[test]
fn a_recognised_message_is_remembered_until_its_acknowledgement_is_confirmed_in_time() {
    let (mut bench, sent) = Bench::recognised();
    bench.answer(&sent, Answer::Done);
    assert_eq!(bench.verdicts(), (1, 0, 0), "in time");

    let (mut bench, sent) = Bench::recognised();
    bench.wait(SECOND * 2);
    bench.answer(&sent, Answer::Done);
    assert_eq!(
        bench.verdicts(),
        (1, 0, 1),
        "it may have crossed a delivery"
    );
    assert_eq!(bench.verdicts_after(A_LEASE), (1, 0, 0));

    let (mut bench, sent) = Bench::recognised();
    bench.let_leases_end();
    bench.answer(&sent, Answer::Done);
    let much_later = A_LEASE * 5;
    assert_eq!(bench.verdicts_after(much_later), (1, 0, 1), "it will come");
}

#[test]
fn an_ack_id_that_is_worth_nothing_lapses_what_was_promised() {
    let worthless = || Answer::Mixed {
        verdicts: each(&["a1"], IdVerdict::Worthless),
        others_done: true,
    };
    for ((mut bench, sent), lapsed, remembered) in [
        (Bench::committed(&[(1, "a1")]), 1, 1),
        (Bench::settled(), 1, 0),
        (Bench::recognised(), 0, 1),
    ] {
        bench.answer(&sent, worthless());
        assert_eq!(bench.verdicts(), (0, lapsed, remembered));
        let much_later = A_LEASE * 5;
        assert_eq!(bench.verdicts_after(much_later), (0, lapsed, remembered));
    }
}

#[test]
fn what_an_answer_does_not_name_is_done_or_sent_again_as_the_answer_says() {
    for others_done in [true, false] {
        let (mut bench, sent) = Bench::committed(&[(1, "a1"), (2, "a2"), (3, "a3")]);
        let mut verdicts = each(&["a1"], IdVerdict::Worthless);
        verdicts.extend(each(&["a2"], IdVerdict::Again));
        let answer = Answer::Mixed {
            verdicts,
            others_done,
        };
        bench.answer(&sent, answer);
        assert_eq!(bench.verdicts(), (u64::from(others_done), 1, 1));
        bench.wait(SECOND);
        let again: &[&str] = if others_done { &["a2"] } else { &["a2", "a3"] };
        assert_eq!(bench.acknowledging(), again);
        bench.answer_all();
        assert_eq!(bench.verdicts().0, 2);
    }
}

#[test]
fn a_request_that_is_refused_is_halved_down_to_what_is_refused_alone() {
    let messages = [(1, "a1"), (2, "a2"), (3, "a3"), (4, "a4"), (5, "a5")];
    let (mut bench, sent) = Bench::committed(&messages);
    bench.sent.push(sent);
    let mut asked = Vec::new();
    for _ in 0..messages.len() {
        for sent in std::mem::take(&mut bench.sent) {
            let is_refused = sent.ack_ids.iter().any(|ack_id| ack_id == "a3");
            let answer = if is_refused {
                Answer::Refused
            } else {
                Answer::Done
            };
            asked.push(sent.ack_ids.len());
            bench.answer(&sent, answer);
        }
        bench.wait(SECOND);
    }
    assert_eq!(asked, [5, 2, 3, 1, 2]);
    assert_eq!(bench.verdicts(), (4, 1, 1));
}

#[test]
fn a_request_that_fails_is_told_at_the_fourth_time_and_once_per_doubling() {
    let (mut bench, mut sent) = Bench::committed(&[(1, "a1")]);
    for _ in 0..9 {
        bench.answer(&sent, Answer::Again(None));
        while bench.acknowledging().is_empty() {
            bench.wait(SECOND);
        }
        let is_ack = |sent: &Sent| sent.method == CallMethod::Acknowledge;
        let at = bench.sent.iter().position(is_ack).unwrap();
        sent = bench.sent.remove(at);
        // Its lease is kept meanwhile.
        bench.answer_all();
    }
    let attempts = bench.told.iter().filter_map(|notice| {
        if let Notice::CallFails { method, attempts } = notice {
            Some((*method, *attempts))
        } else {
            None
        }
    });
    let acknowledge = CallMethod::Acknowledge;
    assert_eq!(
        attempts.collect::<Vec<_>>(),
        [(acknowledge, 4), (acknowledge, 8)]
    );
}

/// With exactly-once delivery nothing comes out before its lease is confirmed, and of a response
/// not before all leases are.
#[test]
fn a_response_comes_out_when_each_of_its_leases_is_confirmed() {
    let mut bench = Bench::new(settings());
    bench.exactly_once = true;
    bench.deliver("", &[(1, "a1"), (2, "a2")]);
    let sent = bench.sent.remove(0);
    let answer = Answer::Mixed {
        verdicts: each(&["a1"], IdVerdict::Again),
        others_done: true,
    };
    bench.answer(&sent, answer);
    assert_eq!(bench.machine.stats(bench.now).extended, 1);
    assert_eq!(bench.read(), [0; 0]);
    bench.wait(SECOND);
    assert_eq!(bench.sent.len(), 1);
    bench.answer_all();
    assert_eq!(bench.machine.stats(bench.now).extended, 2);
    assert_eq!(bench.read(), [1, 2]);
}
