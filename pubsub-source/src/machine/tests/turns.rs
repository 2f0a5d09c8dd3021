//! How much is done in one go, with everybody waiting.

use super::*;
use crate::machine::acks;

/// More than one turn's.
const MANY: u64 = 20_000;

/// A source whose sealed epoch has very many messages, all given back since they were held for too
/// long.
fn given_back(ordered: bool) -> Bench {
    let mut bench = Bench::new(Settings {
        max_hold: SECOND * 30,
        streams: 1,
        message_ordering: ordered,
        ..settings()
    });
    let messages: Vec<(u64, &str)> = (0..MANY).map(|number| (number, "an ack id")).collect();
    for response in messages.chunks(1000) {
        bench.deliver("", response);
        assert_eq!(bench.read().len(), response.len());
    }
    bench.seal(1);
    bench.wait(SECOND * 31);
    bench.answer_all();
    assert_eq!(bench.machine.stats(bench.now).released, MANY);
    bench
}

#[test]
fn an_epoch_of_which_nothing_is_left_is_taken_apart_in_turns() {
    for ordered in [false, true] {
        let mut bench = given_back(ordered);
        bench.machine.commit(bench.now, Epoch::new(1)).unwrap();
        let mut lapsed = 0;
        let mut turns = 0;
        let mut committed = None;
        while committed.is_none() {
            turns += 1;
            while let Some(effect) = bench.machine.poll_effect(bench.now) {
                if let Effect::Committed {
                    committed: verdict, ..
                } = effect
                {
                    committed = Some(verdict);
                }
            }
            let now = bench.machine.stats(bench.now).lapsed;
            assert!(now - lapsed <= acks::PER_TURN as u64, "turn {turns}");
            lapsed = now;
            let due = bench.machine.poll_timeout();
            if committed.is_none() {
                assert_eq!(due, Some(bench.now), "the next turn comes at once");
            }
            bench.machine.handle_timeout(bench.now);
        }
        assert_eq!(committed.unwrap().lapsed, usize::try_from(MANY).unwrap());
        assert!(turns > 2, "{turns}");
        bench.machine.check_invariants();
    }
}

#[test]
fn a_source_that_closes_then_waits_for_nothing() {
    for ordered in [false, true] {
        let mut bench = given_back(ordered);
        bench.machine.commit(bench.now, Epoch::new(1)).unwrap();
        bench.machine.close(bench.now);
        bench.work();
        bench.wait(Duration::ZERO);
        assert!(bench.machine.is_closed(), "no answer will come");
        assert!(bench.machine.take_error().is_none());
    }
}
