//! What arrives where the order of keys is kept.

use super::*;
use crate::error::SourceError;

fn ordered() -> Bench {
    Bench::new(Settings {
        message_ordering: true,
        streams: 1,
        ..settings()
    })
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
