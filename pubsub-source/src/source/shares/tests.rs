//! What holds of shares, and in whose favour they decide.

use proptest::prelude::*;

use super::*;

const BOUND: Limits = Limits::new(10_000, 64 << 20);
const PAUSED: Limits = Limits::new(2000, 16 << 20);

fn shares(splits: usize) -> Shares {
    Shares::new(BOUND, PAUSED, splits)
}

fn running(items: usize, bytes: usize) -> Standing {
    Standing {
        held: Limits::new(items, bytes),
        wants: true,
        paused: false,
        parked: false,
    }
}

fn paused(items: usize, bytes: usize) -> Standing {
    Standing {
        paused: true,
        ..running(items, bytes)
    }
}

#[test]
fn a_paused_split_is_parked_beyond_its_limit_and_not_at_it() {
    for (standing, parked) in [
        (paused(2000, 0), false),
        (paused(2001, 0), true),
        (paused(1, 16 << 20), false),
        (paused(1, (16 << 20) + 1), true),
        (running(9000, 60 << 20), false),
    ] {
        let mut shares = shares(2);
        shares.report(1, standing);
        assert_eq!(shares.to_park(true), parked.then_some(1), "{standing:?}");
    }
}

#[test]
fn with_many_splits_a_paused_one_has_its_share_and_borrows_nothing() {
    let mut shares = shares(10);
    shares.report(3, paused(1000, 0));
    assert_eq!(shares.to_park(true), None);
    shares.report(3, paused(1001, 0));
    assert_eq!(shares.to_park(true), Some(3));
    assert!(!shares.may_read(3));
    shares.report(3, running(1001, 0));
    assert_eq!(
        shares.to_park(true),
        None,
        "running splits are never parked"
    );
    assert!(shares.may_read(3), "and may borrow");
}

#[test]
fn the_largest_paused_split_is_parked_first_when_a_running_one_finds_no_room() {
    let mut shares = shares(4);
    shares.report(0, paused(500, 0));
    shares.report(1, paused(900, 0));
    shares.report(2, paused(10, 12 << 20));
    shares.report(3, running(6000, 0));
    assert_eq!(shares.to_park(true), None, "there is room");
    shares.report(3, running(9000, 0));
    assert!(!shares.may_read(3));
    let mut order = Vec::new();
    while let Some(next) = shares.to_park(true) {
        order.push(next);
        let parked = Standing {
            parked: true,
            ..paused(0, 0)
        };
        shares.report(next, parked);
    }
    assert_eq!(order, [2, 1, 0], "by the part of the bound that they take");
    let idle = Standing {
        wants: false,
        ..running(9000, 0)
    };
    shares.report(0, paused(500, 0));
    shares.report(3, idle);
    assert_eq!(shares.to_park(true), None, "nobody starves");
    shares.report(3, running(1, 0));
    assert_eq!(shares.to_park(false), Some(0), "others have what it needs");
}

#[test]
fn a_split_that_comes_to_life_finds_its_reserve_although_others_borrowed() {
    let mut shares = shares(2);
    let mut held = 0;
    while shares.may_read(0) {
        held += 100;
        shares.report(0, running(held, 0));
    }
    assert_eq!(held, 7500, "all but the reserve of the other");
    shares.report(1, running(2499, 0));
    assert!(shares.may_read(1));
    shares.report(1, running(2500, 0));
    assert!(!shares.may_read(1));
}

#[derive(Debug, Clone)]
enum Step {
    /// A split reads a response on each of its streams, if it may.
    Read(usize, Vec<(usize, usize)>),
    /// A split hands out part of what it holds.
    HandOut(usize, usize),
    Pause(usize),
    Resume(usize),
}

const SPLITS: usize = 5;
const STREAMS: usize = 2;
const RESPONSE: (usize, usize) = (40, 4000);

fn step() -> impl Strategy<Value = Step> {
    let response = (1..=RESPONSE.0, 1..=RESPONSE.1);
    prop_oneof![
        4 => (0..SPLITS, prop::collection::vec(response, STREAMS))
            .prop_map(|(split, responses)| Step::Read(split, responses)),
        2 => (0..SPLITS, 0usize..=100).prop_map(|(split, part)| Step::HandOut(split, part)),
        1 => (0..SPLITS).prop_map(Step::Pause),
        1 => (0..SPLITS).prop_map(Step::Resume),
    ]
}

proptest! {
    #[test]
    fn the_laws_of_shares(
        items in 1usize..400,
        bytes in 1usize..40_000,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let bound = Limits::new(items, bytes);
        let limit = Limits::new((items / 4).max(1), (bytes / 4).max(1));
        let mut shares = Shares::new(bound, limit, SPLITS);
        let mut splits = [Standing::default(); SPLITS];
        for (at, split) in splits.iter_mut().enumerate() {
            split.wants = true;
            shares.report(at, *split);
        }
        for step in steps {
            match step {
                Step::Read(split, responses) => {
                    if shares.may_read(split) {
                        for (items, bytes) in responses {
                            splits[split].held = plus(splits[split].held, Limits::new(items, bytes));
                        }
                        shares.report(split, splits[split]);
                    }
                }
                Step::HandOut(split, part) => {
                    if !splits[split].paused {
                        let held = splits[split].held;
                        splits[split].held = Limits::new(held.items * part / 100, held.bytes * part / 100);
                        shares.report(split, splits[split]);
                    }
                }
                Step::Pause(split) => {
                    splits[split].paused = true;
                    shares.report(split, splits[split]);
                }
                Step::Resume(split) => {
                    splits[split].paused = false;
                    splits[split].parked = false;
                    shares.report(split, splits[split]);
                }
            }
            let mut rounds = 0;
            while let Some(split) = shares.to_park(true) {
                prop_assert!(splits[split].paused && !splits[split].parked);
                splits[split].parked = true;
                splits[split].held = Limits::default();
                shares.report(split, splits[split]);
                rounds += 1;
                prop_assert!(rounds <= SPLITS, "each is parked once");
            }
            let sum = |sum, split: &Standing| plus(sum, split.held);
            let held = splits.iter().fold(Limits::default(), sum);
            prop_assert_eq!(shares.held(), held);
            let over = SPLITS * STREAMS;
            prop_assert!(held.items <= bound.items + over * RESPONSE.0);
            prop_assert!(held.bytes <= bound.bytes + over * RESPONSE.1);
            for (at, split) in splits.iter().enumerate() {
                // Whatever the others hold, paused or not.
                if !split.paused && split.held == Limits::default() {
                    prop_assert!(shares.may_read(at), "a running split always gets room");
                }
                if split.paused {
                    prop_assert!(split.parked || !shares.passes_its_share(at));
                }
                if split.parked {
                    prop_assert!(!shares.may_read(at));
                }
                let starves = !split.paused && !shares.may_read(at);
                let idle = splits.iter().any(|other| other.may_be_parked() && other.held.items > 0);
                prop_assert!(!starves || !idle, "nobody starves while a paused split holds something");
            }
        }
    }
}
