use proptest::prelude::*;

use super::*;

const UNBOUNDED: Limits = Limits::new(usize::MAX, usize::MAX);
const WRITE_THROUGH: Limits = Limits::new(0, 0);

#[test]
fn the_bound_holds_back_the_verdict_and_each_confirmation_gives_one() {
    let mut backlog = Backlog::new(Limits::new(2, 1_000));
    let (first, at_once) = backlog.handle(10);
    assert!(at_once);
    assert!(backlog.handle(10).1);
    let (third, at_once) = backlog.handle(10);
    assert!(!at_once);
    assert_eq!(backlog.handle_confirmed(first).verdicts, [third]);
}

#[test]
fn bytes_are_a_bound_too_and_one_large_letter_passes_alone() {
    let mut backlog = Backlog::new(Limits::new(1_000, 100));
    let (large, at_once) = backlog.handle(5_000);
    assert!(at_once, "below the bound, never whether it fits");
    let (small, at_once) = backlog.handle(1);
    assert!(!at_once);
    assert_eq!(backlog.handle_confirmed(large).verdicts, [small]);
}

#[test]
fn written_through_a_letter_has_its_verdict_only_when_it_is_stored() {
    let mut backlog = Backlog::new(WRITE_THROUGH);
    let (first, at_once) = backlog.handle(1);
    assert!(!at_once);
    let (second, _) = backlog.handle(1);
    assert_eq!(backlog.handle_confirmed(second).verdicts, [second]);
    assert_eq!(backlog.handle_confirmed(first).verdicts, [first]);
}

#[test]
fn unbounded_every_letter_has_its_verdict_at_once() {
    let mut backlog = Backlog::new(UNBOUNDED);
    assert!((0..10_000).all(|_| backlog.handle(10_000_000).1));
}

#[test]
fn a_flush_covers_what_was_handled_before_it_and_a_later_one_what_an_earlier_gave_up() {
    let mut backlog = Backlog::new(UNBOUNDED);
    assert_eq!(backlog.flush(), None, "nothing is owed");
    let (first, _) = backlog.handle(1);
    let (second, _) = backlog.handle(1);
    let early = backlog.flush().unwrap();
    let (third, _) = backlog.handle(1);
    assert_eq!(backlog.handle_confirmed(second).flushes, []);
    assert_eq!(backlog.give_up(early), Some((1, 2)));
    let late = backlog.flush().unwrap();
    assert_eq!(backlog.handle_confirmed(third).flushes, []);
    assert_eq!(backlog.handle_confirmed(first).flushes, [late]);
    assert_eq!(backlog.flush(), None);
}

#[derive(Debug, Clone)]
enum Step {
    Handle(usize),
    Confirm(prop::sample::Index),
    Flush,
    GiveUp(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_usize..40).prop_map(Step::Handle),
        3 => any::<prop::sample::Index>().prop_map(Step::Confirm),
        1 => Just(Step::Flush),
        1 => any::<prop::sample::Index>().prop_map(Step::GiveUp),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        Just(UNBOUNDED),
        Just(WRITE_THROUGH),
        (1_usize..5, 1_usize..100).prop_map(|(items, bytes)| Limits::new(items, bytes)),
    ]
}

proptest! {
    /// Against the whole history: verdicts come once, in order unless stored before, and within
    /// the bound; a flush completes exactly when the last it covers is stored.
    #[test]
    fn verdicts_keep_the_bound_and_flushes_wait_for_all_that_was_handled(
        limits in limits(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut backlog = Backlog::new(limits);
        let mut owed: Vec<LetterId> = Vec::new();
        let mut decided: BTreeSet<LetterId> = BTreeSet::new();
        let mut flushes: Vec<(FlushId, Vec<LetterId>)> = Vec::new();
        for step in steps {
            match step {
                Step::Handle(bytes) => {
                    let below = limits.admits(backlog.admitted);
                    let someone_waits = owed.iter().any(|id| !decided.contains(id));
                    let (id, at_once) = backlog.handle(bytes);
                    prop_assert_eq!(at_once, below && !someone_waits);
                    owed.push(id);
                    if at_once {
                        decided.insert(id);
                    }
                }
                Step::Confirm(index) if !owed.is_empty() => {
                    let id = owed.remove(index.index(owed.len()));
                    let progress = backlog.handle_confirmed(id);
                    for id in progress.verdicts {
                        prop_assert!(decided.insert(id), "one verdict each");
                    }
                    prop_assert!(decided.contains(&id), "what is stored has its verdict");
                    let covered = |letters: &[LetterId]| {
                        letters.iter().all(|letter| !owed.contains(letter))
                    };
                    let complete: Vec<FlushId> = flushes
                        .extract_if(.., |(_, letters)| covered(letters))
                        .map(|(id, _)| id)
                        .collect();
                    prop_assert_eq!(progress.flushes, complete);
                }
                Step::Flush => match backlog.flush() {
                    Some(id) => flushes.push((id, owed.clone())),
                    None => prop_assert!(owed.is_empty()),
                },
                Step::GiveUp(index) if !flushes.is_empty() => {
                    let (id, letters) = flushes.remove(index.index(flushes.len()));
                    let missing = letters.iter().filter(|letter| owed.contains(letter)).count();
                    prop_assert_eq!(backlog.give_up(id), Some((missing, letters.len())));
                }
                Step::Confirm(_) | Step::GiveUp(_) => {}
            }
            let admitted = owed.iter().filter(|id| decided.contains(id)).count();
            prop_assert_eq!(backlog.admitted.items, admitted);
            prop_assert!(admitted <= limits.items);
            let someone_waits = admitted < owed.len();
            prop_assert!(!someone_waits || !limits.admits(backlog.admitted), "no idle room");
        }
    }
}
