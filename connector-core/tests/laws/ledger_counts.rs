//! What the ledger says about amounts, segments and numbers.

use connector_core::{
    Epoch,
    ledger::{Ledger, Outcome, View},
};

/// Three sealed epochs, of one item, two and three.
fn three_epochs() -> Ledger<u64> {
    let mut ledger = Ledger::new();
    for epoch in 1..=3 {
        (0..epoch).for_each(|number| {
            ledger.add(number);
        });
        ledger.seal(Epoch::new(epoch)).unwrap();
    }
    ledger
}

#[test]
fn a_commit_waits_for_released_items_up_to_its_epoch_and_for_no_others() {
    let mut ledger = three_epochs();
    let unsettled = |ledger: &Ledger<u64>| {
        let of = |epoch| ledger.unsettled(Epoch::new(epoch));
        [of(0), of(1), of(2), of(3)]
    };
    assert_eq!(unsettled(&ledger), [0; 4], "nothing is released");
    let commit = ledger.commit(Epoch::new(2)).unwrap();
    assert_eq!(unsettled(&ledger), [0, 1, 3, 3]);
    let (first, _) = commit.released[0].iter().next().unwrap();
    ledger.settle(first, Outcome::Settled);
    assert_eq!(unsettled(&ledger), [0, 0, 2, 2]);
}

#[test]
fn sealed_epochs_are_those_that_are_neither_committed_nor_aborted() {
    let mut ledger = three_epochs();
    assert_eq!(ledger.sealed_epochs(), 3);
    assert!(ledger.abort(Epoch::new(3)));
    assert_eq!(ledger.sealed_epochs(), 2);
    ledger.commit(Epoch::new(1)).unwrap();
    assert_eq!(ledger.sealed_epochs(), 1);
    ledger.commit(Epoch::new(2)).unwrap();
    assert_eq!(ledger.sealed_epochs(), 0);
}

#[test]
fn a_segment_is_held_while_it_grows_and_until_its_last_item_has_a_verdict() {
    let mut ledger = Ledger::new();
    let places = [ledger.add(1), ledger.add(2)];
    let segment = places[0].segment();
    assert!(ledger.holds_segment(segment), "it is added to");
    assert!(!ledger.holds_segment(segment + 1), "it does not exist yet");
    ledger.seal(Epoch::new(1)).unwrap();
    assert!(ledger.holds_segment(segment), "sealed");
    assert!(ledger.holds_segment(segment + 1), "the next is added to");
    ledger.settle(places[0], Outcome::Settled);
    assert!(ledger.holds_segment(segment), "one item is left");
    ledger.settle(places[1], Outcome::Settled);
    assert!(!ledger.holds_segment(segment));
    assert!(ledger.holds_segment(segment + 1), "added to although empty");
}

#[test]
fn a_copy_of_a_view_names_the_same() {
    let ledger = three_epochs();
    let view = ledger.view();
    // A part of the program that saves a state takes it with it.
    let named = |view: View<u64>| -> Vec<u64> { view.iter().copied().collect() };
    assert_eq!(named(view.clone()), [0, 0, 1, 0, 1, 2]);
    assert_eq!(named(view), [0, 0, 1, 0, 1, 2]);
}

#[test]
fn an_epoch_is_its_number() {
    let epoch = Epoch::from(41);
    assert_eq!((epoch, epoch.get()), (Epoch::new(41), 41));
    assert_eq!(epoch.next(), Epoch::new(42));
    assert_eq!(epoch.to_string(), "41");
    assert_eq!(Epoch::new(u64::MAX).next(), Epoch::new(u64::MAX));
}

#[test]
fn only_empty_epochs_fold_together_when_a_host_never_commits() {
    let mut ledger = three_epochs();
    let numbers = 4..=5_000;
    numbers.for_each(|epoch| ledger.seal(Epoch::new(epoch)).unwrap());
    for epoch in 1..=3 {
        assert!(ledger.is_sealed(Epoch::new(epoch)), "{epoch} holds items");
    }
    assert_eq!(ledger.sealed_epochs(), 1_024, "as many as are kept apart");
    let of_one = ledger.commit(Epoch::new(1)).unwrap();
    assert_eq!(of_one.released.len(), 1);
}

#[test]
fn the_newest_epoch_does_not_fold_although_it_is_the_only_empty_one() {
    let mut ledger = Ledger::new();
    for epoch in 1..=1_024 {
        ledger.add(epoch);
        ledger.seal(Epoch::new(epoch)).unwrap();
    }
    ledger.seal(Epoch::new(1_025)).unwrap();
    ledger.check_invariants();
    assert!(ledger.is_sealed(Epoch::new(1_025)));
    assert_eq!(ledger.sealed_epochs(), 1_025);
}

#[test]
fn items_are_counted_in_the_stage_they_are_in() {
    let mut ledger = three_epochs();
    ledger.add(0);
    let counts = |ledger: &Ledger<u64>| {
        let stages = [
            ledger.open_len(),
            ledger.sealed_len(),
            ledger.settling_len(),
        ];
        (stages, ledger.len(), ledger.is_empty())
    };
    assert_eq!(counts(&ledger), ([1, 6, 0], 7, false));
    ledger.commit(Epoch::new(2)).unwrap();
    assert_eq!(counts(&ledger), ([1, 3, 3], 7, false));
}
