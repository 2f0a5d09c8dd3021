//! What is held: confirmed, or given back when it was held for too long.

use std::collections::BTreeMap;

use super::*;
use crate::machine::{IdVerdict, Notice};

/// The first response's messages wait for the second's confirmation, since one of them came again
/// there. None of the second's leases is confirmed.
#[test]
fn what_waits_for_a_response_whose_leases_are_all_worthless_comes_out() {
    let mut bench = Bench::new(settings());
    bench.exactly_once = true;
    bench.deliver("", &[(1, "a1")]);
    bench.answer_all();
    assert_eq!(bench.read(), [1]);
    bench.deliver("", &[(2, "a2"), (3, "a3")]);
    let first = bench.sent.remove(0);
    bench.deliver("", &[(1, "b1"), (2, "b2")]);
    let second = bench.sent.remove(0);
    assert_eq!(second.ack_ids, ["b1", "b2"]);
    bench.answer(&first, Answer::Done);
    assert_eq!(bench.read(), [0; 0], "2 may be somebody else's by now");
    let verdicts = second.ack_ids.iter().cloned();
    let verdicts = verdicts.map(|ack_id| (ack_id, IdVerdict::Worthless));
    let verdicts: BTreeMap<String, IdVerdict> = verdicts.collect();
    bench.answer(
        &second,
        Answer::Mixed {
            verdicts,
            others_done: true,
        },
    );
    assert_eq!(bench.read(), [3]);
}

fn held_for_two_minutes(ordered: bool) -> Settings {
    Settings {
        max_hold: SECOND * 120,
        message_ordering: ordered,
        streams: 1,
        ..settings()
    }
}

/// What a cut has to tell about commits.
fn told_at_cut(bench: &mut Bench, epoch: u64) -> Option<(u64, Duration, usize)> {
    bench.seal(epoch);
    let mut told = None;
    while let Some(effect) = bench.machine.poll_effect(bench.now) {
        if let Effect::Tell(Notice::NothingCommitted {
            checkpoints,
            waited,
            unacknowledged,
        }) = effect
        {
            assert_eq!(told, None, "once");
            told = Some((checkpoints, waited, unacknowledged));
        } else if let Effect::Call { call, method, body } = effect {
            bench.sent.push(sent(call, method, &body));
        }
    }
    told
}

/// Long before `max_hold` gives anything back, and also where each checkpoint is aborted.
#[test]
fn a_host_that_never_commits_is_told_at_the_third_checkpoint_after_a_minute() {
    for aborts in [false, true] {
        let mut bench = Bench::new(settings());
        bench.deliver("", &[(1, "a1"), (2, "a2")]);
        assert_eq!(told_at_cut(&mut bench, 1), None, "nothing is handed out");
        assert_eq!(bench.read(), [1, 2]);
        for epoch in 2..4 {
            bench.wait(SECOND * 40);
            bench.answer_all();
            assert_eq!(told_at_cut(&mut bench, epoch), None, "epoch {epoch}");
            if aborts {
                bench.machine.abort(Epoch::new(epoch));
            }
        }
        bench.deliver("", &[(3, "a3")]);
        assert_eq!(bench.read(), [3]);
        bench.wait(SECOND * 40);
        bench.answer_all();
        let waited = SECOND * 80;
        assert_eq!(told_at_cut(&mut bench, 4), Some((3, waited, 3)));
        bench.wait(SECOND * 40);
        bench.answer_all();
        assert_eq!(told_at_cut(&mut bench, 5), None, "once is enough");
        bench.machine.commit(bench.now, Epoch::new(5)).unwrap();
        bench.work();
        assert_eq!(bench.acknowledging(), ["a1", "a2", "a3"]);
        assert_eq!(bench.machine.stats(bench.now).held_too_long, 0);
    }
}

/// A host that stands still, with one response in its hands and one in the buffer.
#[test]
fn what_was_not_handed_out_for_too_long_goes_to_others_too() {
    for key in ["", "k"] {
        let mut bench = Bench::new(held_for_two_minutes(!key.is_empty()));
        bench.deliver(key, &[(1, "a1"), (2, "a2")]);
        bench.deliver(key, &[(3, "a3")]);
        assert!(bench.take());
        for _ in 0..11 {
            bench.wait(SECOND * 10);
            bench.answer_all();
        }
        assert_eq!(bench.machine.stats(bench.now).held_too_long, 0);
        bench.wait(SECOND * 10);
        let released = bench.answer_all();
        let released = released.iter().filter(|sent| sent.seconds == 0);
        let released: Vec<&String> = released.flat_map(|sent| &sent.ack_ids).collect();
        assert_eq!(released, ["a3"], "what the handle has may be handed out");
        let stats = bench.machine.stats(bench.now);
        assert_eq!((stats.held_too_long, stats.released), (3, 1));
        assert_eq!(stats.leased, 0);
        // When the host goes on, it gets what comes again and nothing that somebody else may have.
        assert_eq!(bench.read(), [0; 0], "key {key:?}");
        bench.deliver(key, &[(1, "b1"), (2, "b2"), (3, "b3")]);
        assert_eq!(bench.read(), [1, 2, 3], "key {key:?}");
    }
}

/// The host has it, and the machine hears of that with the next cut only.
#[test]
fn what_was_handed_out_and_not_told_stays_in_its_epoch_when_it_is_held_too_long() {
    let mut bench = Bench::new(held_for_two_minutes(false));
    bench.deliver("", &[(1, "a1"), (2, "a2")]);
    assert!(bench.take());
    let revoked = bench.machine.revoked();
    assert!(bench.out.pop(bench.now, revoked).is_ok());
    for _ in 0..13 {
        bench.wait(SECOND * 10);
        bench.answer_all();
    }
    assert_eq!(bench.seal(1).named(), 1);
    bench.machine.commit(bench.now, Epoch::new(1)).unwrap();
    let mut verdicts = Vec::new();
    while let Some(effect) = bench.machine.poll_effect(bench.now) {
        if let Effect::Call { call, .. } = effect {
            // Late, and perhaps in time all the same.
            let machine = &mut bench.machine;
            machine.handle_answer(bench.now, 0.0, call, Answer::Done);
        } else if let Effect::Committed { committed, .. } = effect {
            verdicts.push((committed.settled, committed.lapsed));
        }
    }
    assert_eq!(verdicts, [(0, 1)]);
}

/// The answer to the release comes before the handle has looked, so nothing is left of the delivery.
#[test]
fn a_key_goes_on_after_a_parked_handle_has_lost_what_it_had_taken() {
    let mut bench = Bench::new(held_for_two_minutes(true));
    bench.deliver("k", &[(1, "a1"), (2, "a2")]);
    assert!(bench.take());
    bench.machine.pause(bench.now);
    bench.machine.park(bench.now);
    bench.work();
    bench.answer_all();
    assert_eq!(bench.machine.stats(bench.now).released, 2);
    bench.machine.resume(bench.now);
    bench.wait(SECOND);
    assert_eq!(bench.read(), [0; 0]);
    bench.deliver("k", &[(1, "b1"), (2, "b2")]);
    assert_eq!(bench.read(), [1, 2]);
}

/// A server that was started again counts from "1" again.
#[test]
fn a_key_goes_on_after_another_message_came_under_the_id_of_one_that_the_handle_has() {
    let mut bench = Bench::new(held_for_two_minutes(true));
    bench.deliver("k", &[(1, "a1")]);
    assert!(bench.take());
    bench.published = 7;
    bench.deliver("k", &[(1, "b1")]);
    assert_eq!(
        bench.read(),
        [0; 0],
        "the handle looks, and drops the one that is gone"
    );
    bench.deliver("k", &[(1, "c1"), (2, "c2")]);
    assert_eq!(bench.read(), [1, 2]);
}
