//! What goes into requests, and when.

use super::*;
use crate::{
    delivery::{DeliveryId, Disposition},
    machine::request::{MAX_BYTES, MAX_IDS},
};

fn ordered() -> Settings {
    Settings {
        message_ordering: true,
        streams: 1,
        ..settings()
    }
}

impl Bench {
    fn commit_as(&mut self, epoch: u64) {
        self.seal(epoch);
        self.machine.commit(self.now, Epoch::new(epoch)).unwrap();
        self.work();
    }
}

#[test]
fn eight_requests_acknowledge_at_once() {
    let mut bench = Bench::new(settings());
    let messages: Vec<(u64, &str)> = (0..9 * MAX_IDS as u64)
        .map(|at| (at, "an ack id"))
        .collect();
    for response in messages.chunks(MAX_IDS) {
        bench.deliver("", response);
        assert_eq!(bench.read().len(), MAX_IDS);
    }
    bench.commit_as(1);
    assert_eq!(bench.sent.len(), 8);
    let first = bench.sent.remove(0);
    assert_eq!(first.ack_ids.len(), MAX_IDS);
    bench.answer(&first, Answer::Done);
    assert_eq!(bench.sent.len(), 8, "the ninth");
}

/// What is long is sent as it is, and in order.
#[test]
fn ids_that_do_not_fit_into_a_request_go_into_the_next_one() {
    let long = "x".repeat(MAX_BYTES / 9);
    let ack_ids: Vec<String> = (0..20).map(|number| format!("{number} {long}")).collect();
    let messages = (0..).zip(ack_ids.iter().map(String::as_str));
    let messages: Vec<(u64, &str)> = messages.collect();
    for key in ["", "k"] {
        for settled in [None, Some(Disposition::Ack), Some(Disposition::Nack)] {
            let mut bench = Bench::new(if key.is_empty() {
                settings()
            } else {
                ordered()
            });
            bench.deliver(key, &messages);
            assert_eq!(bench.read().len(), messages.len());
            match settled {
                None => bench.commit_as(1),
                Some(disposition) => {
                    for index in 0..20 {
                        let delivery = DeliveryId::new(0, index);
                        bench.machine.settle(delivery, disposition).unwrap();
                    }
                    bench.work();
                }
            }
            let sent = bench.answer_all();
            let sizes: Vec<usize> = sent.iter().map(|sent| sent.ack_ids.len()).collect();
            assert_eq!(sizes, [8, 8, 4]);
            let sent: Vec<String> = sent.into_iter().flat_map(|sent| sent.ack_ids).collect();
            assert!(sent == ack_ids, "key {key:?}, {settled:?}");
            let stats = bench.machine.stats(bench.now);
            assert_eq!(stats.acknowledged + stats.released, 20);
            assert!(!bench.machine.has_work());
        }
    }
}

#[test]
fn extensions_that_do_not_fit_into_a_request_go_into_the_next_one() {
    let long = "x".repeat(MAX_BYTES / 9);
    let ack_ids: Vec<String> = (0..10).map(|number| format!("{number} {long}")).collect();
    let messages = (0..).zip(ack_ids.iter().map(String::as_str));
    let messages: Vec<(u64, &str)> = messages.collect();
    let mut bench = Bench::new(settings());
    bench.deliver("", &messages);
    let due = bench.machine.leases.next_due().unwrap();
    bench.wait(due - bench.now);
    let sent = bench.answer_all();
    let sent: Vec<String> = sent.into_iter().flat_map(|sent| sent.ack_ids).collect();
    assert!(sent == ack_ids);
    assert_eq!(bench.machine.stats(bench.now).extended, 10);
}

#[test]
fn a_keys_next_request_waits_for_the_one_before_and_nobody_looks_meanwhile() {
    let mut bench = Bench::new(ordered());
    for (epoch, ack_id) in [(1, "a1"), (2, "a2")] {
        bench.deliver("k", &[(epoch, ack_id)]);
        assert_eq!(bench.read(), [epoch]);
        bench.commit_as(epoch);
        assert_eq!(bench.acknowledging(), ["a1"]);
        let due = bench.machine.poll_timeout();
        assert!(due.is_some_and(|due| due > bench.now));
    }
    let first = bench.sent.remove(0);
    bench.answer(&first, Answer::Done);
    assert_eq!(bench.acknowledging(), ["a2"]);
}

#[test]
fn what_the_host_gives_back_is_given_back_again_when_that_fails() {
    let mut bench = Bench::new(settings());
    bench.deliver("", &[(1, "a1"), (2, "a2")]);
    bench.read();
    for index in 0..2 {
        let delivery = DeliveryId::new(0, index);
        bench.machine.settle(delivery, Disposition::Nack).unwrap();
    }
    bench.work();
    let first = bench.sent.remove(0);
    bench.answer(&first, Answer::Again(None));
    bench.wait(SECOND);
    let again = bench.answer_all();
    let again: Vec<_> = again
        .iter()
        .map(|sent| (sent.ack_ids.as_slice(), sent.seconds))
        .collect();
    assert_eq!(again, [(&["a1".to_owned(), "a2".to_owned()][..], 0)]);
    let stats = bench.machine.stats(bench.now);
    assert_eq!((stats.retried, stats.released, stats.leased), (1, 2, 0));
}

#[test]
fn a_committed_message_that_was_given_back_lapses_and_is_remembered() {
    for key in ["", "k"] {
        let mut bench = Bench::new(Settings {
            max_hold: SECOND * 30,
            ..if key.is_empty() {
                settings()
            } else {
                ordered()
            }
        });
        bench.deliver(key, &[(1, "a1"), (2, "a2")]);
        assert_eq!(bench.read(), [1, 2]);
        bench.wait(SECOND * 31);
        bench.answer_all();
        bench.commit_as(1);
        let stats = bench.machine.stats(bench.now);
        assert_eq!((stats.released, stats.lapsed, stats.seen), (2, 2, 2));
        assert!(bench.acknowledging().is_empty());
    }
}

#[test]
fn a_commit_that_is_not_confirmed_in_time_is_counted_once() {
    let mut bench = Bench::new(Settings {
        confirm_acks: Some(SECOND * 5),
        ..settings()
    });
    bench.deliver("", &[(1, "a1")]);
    bench.read();
    bench.commit_as(1);
    for (waits, counted) in [(4, 0), (1, 1), (600, 1)] {
        bench.wait(SECOND * waits);
        let stats = bench.machine.stats(bench.now);
        assert_eq!(stats.unconfirmed_commits, counted, "{waits}");
    }
}
