//! The ledger does what its naive model does, crashes and restores included.

use std::collections::BTreeSet;

use connector_core::{
    CheckpointError, Committed, Epoch,
    ledger::{Commit, CommitId, Ledger, Outcome, Place, Standing},
};
use proptest::prelude::*;

use super::ledger_model::{Fate, Model};

#[derive(Debug, Clone)]
enum Op {
    Add(usize),
    /// By how much the number grows; zero is refused.
    Seal(u64),
    /// The host writes the newest state down.
    Save,
    Commit(usize),
    CommitUnknown,
    Abort(usize),
    Settle(usize, Outcome),
    /// So many from there on, in one go.
    SettleAll(usize, usize, Outcome),
    Withdraw(usize),
    /// Handed out again: out of whatever epoch, into the open one.
    Displace(usize),
    Crash,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Settled),
        1 => Just(Outcome::Lapsed),
        1 => Just(Outcome::Retained),
    ];
    let op = prop_oneof![
        6 => (1usize..4).prop_map(Op::Add),
        6 => (0u64..3).prop_map(Op::Seal),
        4 => Just(Op::Save),
        4 => any::<usize>().prop_map(Op::Commit),
        1 => Just(Op::CommitUnknown),
        3 => any::<usize>().prop_map(Op::Abort),
        9 => (any::<usize>(), outcome.clone()).prop_map(|(at, outcome)| Op::Settle(at, outcome)),
        3 => (any::<usize>(), 1usize..8, outcome)
            .prop_map(|(at, count, outcome)| Op::SettleAll(at, count, outcome)),
        1 => any::<usize>().prop_map(Op::Withdraw),
        1 => any::<usize>().prop_map(Op::Displace),
        1 => Just(Op::Crash),
    ];
    prop::collection::vec(op, 1..120)
}

/// A state given out, and what the ledger had seen added when it was cut.
#[derive(Debug, Clone)]
struct Saved {
    epoch: u64,
    named: Vec<u64>,
    /// Everything the lineage ever added before the cut.
    covered: BTreeSet<u64>,
}

#[derive(Default)]
struct Run {
    ledger: Ledger<u64>,
    model: Model,
    /// Beside each item of the model.
    places: Vec<Place>,
    commits: Vec<CommitId>,
    next_number: u64,
    states: Vec<Saved>,
    durable: Option<Saved>,
    /// Everything added in this lineage and not lost with an open epoch.
    added: BTreeSet<u64>,
    /// Items with a verdict, or taken out by the host, over all incarnations of the lineage.
    done: BTreeSet<u64>,
    released: Vec<u64>,
    crashes: usize,
}

impl Run {
    fn add(&mut self) {
        let number = self.next_number;
        self.next_number += 1;
        self.model.add(number);
        self.places.push(self.ledger.add(number));
        self.added.insert(number);
    }

    fn epochs(&self) -> Vec<u64> {
        // Everything up to the newest, gaps and aborted numbers included.
        (0..=self.model.newest.unwrap_or(0)).collect()
    }

    fn note(&mut self, commit: Commit<u64>) -> Vec<u64> {
        self.commits.push(commit.id);
        let released: Vec<u64> = commit
            .released
            .iter()
            .flat_map(|segment| segment.iter().map(|(_, number)| *number))
            .collect();
        self.released.extend(&released);
        released
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Add(count) => (0..*count).for_each(|_| self.add()),
            Op::Seal(by) => {
                let epoch = self.model.newest.unwrap_or(0) + by;
                let sealed = self.ledger.seal(Epoch::new(epoch));
                if self.model.seal(epoch) {
                    assert!(sealed.is_ok());
                    self.states.push(Saved {
                        epoch,
                        named: self.ledger.view().iter().copied().collect(),
                        covered: self.added.clone(),
                    });
                } else {
                    assert!(matches!(sealed, Err(CheckpointError::OutOfOrder { .. })));
                }
            }
            Op::Save => {
                if let Some(state) = self.states.pop() {
                    self.states.clear();
                    self.durable = Some(state);
                }
            }
            Op::Commit(at) => self.commit(*at),
            Op::CommitUnknown => {
                let beyond = self.model.newest.map_or(0, |newest| newest + 1);
                let refused = self.ledger.commit(Epoch::new(beyond));
                assert!(matches!(refused, Err(CheckpointError::Unknown { .. })));
                assert_eq!(self.model.commit(beyond), None);
            }
            Op::Abort(at) => {
                let epochs = self.epochs();
                let epoch = epochs[at % epochs.len()];
                let folded = self.ledger.abort(Epoch::new(epoch));
                assert_eq!(folded, self.model.abort(epoch), "abort {epoch}");
            }
            Op::Settle(at, outcome) => {
                let Some(at) = self.pick(*at) else { return };
                let before = self.ledger.standing(self.places[at]);
                assert_eq!(self.ledger.settle(self.places[at], *outcome), before);
                if self.model.end(at, Fate::Verdict(*outcome)) {
                    assert_ne!(before, Standing::Gone);
                    let fresh = self.done.insert(self.model.items[at].number);
                    assert!(fresh, "an item gets one verdict");
                } else {
                    assert_eq!(before, Standing::Gone);
                }
            }
            Op::SettleAll(at, count, outcome) => {
                let Some(from) = self.pick(*at) else { return };
                let run = from..self.places.len().min(from + count);
                let places = self.places[run.clone()].iter().copied();
                self.ledger.settle_all(places, *outcome);
                for at in run {
                    if self.model.end(at, Fate::Verdict(*outcome)) {
                        let fresh = self.done.insert(self.model.items[at].number);
                        assert!(fresh, "an item gets one verdict");
                    }
                }
            }
            Op::Withdraw(at) => {
                let Some(at) = self.pick(*at) else { return };
                let standing = self.ledger.withdraw(self.places[at]);
                let open = self.model.items[at].epoch.is_none();
                if open && self.model.end(at, Fate::Out) {
                    assert_eq!(standing, Standing::Open);
                    self.done.insert(self.model.items[at].number);
                } else {
                    assert_ne!(standing, Standing::Open);
                }
            }
            Op::Displace(at) => {
                let Some(at) = self.pick(*at) else { return };
                let standing = self.ledger.displace(self.places[at]);
                if self.model.end(at, Fate::Out) {
                    assert_ne!(standing, Standing::Gone);
                    self.done.insert(self.model.items[at].number);
                    self.add();
                } else {
                    assert_eq!(standing, Standing::Gone);
                }
            }
            Op::Crash => self.crash(),
        }
    }

    /// A host commits only what is durable.
    fn commit(&mut self, at: usize) {
        let durable = self.durable.as_ref().map(|state| state.epoch);
        let epochs: Vec<u64> = self
            .epochs()
            .into_iter()
            .filter(|epoch| durable >= Some(*epoch))
            .collect();
        let (Some(_), false) = (self.model.newest, epochs.is_empty()) else {
            return;
        };
        let epoch = epochs[at % epochs.len()];
        let committed = self.ledger.commit(Epoch::new(epoch)).unwrap();
        let released = self.note(committed);
        assert_eq!(self.model.commit(epoch), Some(released), "commit {epoch}");
    }

    fn pick(&self, at: usize) -> Option<usize> {
        (!self.places.is_empty()).then(|| at % self.places.len())
    }

    /// Everything in memory is gone; the newest durable state is not.
    fn crash(&mut self) {
        self.crashes += 1;
        self.states.clear();
        self.released.clear();
        let Some(saved) = self.durable.clone() else {
            // Nothing was ever durable, hence nothing ever committed: a first start.
            self.ledger = Ledger::new();
            self.model = Model::default();
            self.places.clear();
            self.commits.clear();
            self.added.clear();
            self.done.clear();
            return;
        };
        let (ledger, commit) = Ledger::restore(Epoch::new(saved.epoch), saved.named.clone());
        self.ledger = ledger;
        self.model = Model::restored(saved.epoch, &saved.named);
        self.places = commit
            .released
            .iter()
            .flat_map(|segment| segment.iter().map(|(place, _)| place))
            .collect();
        self.commits.clear();
        let released = self.note(commit);
        assert_eq!(
            released, saved.named,
            "a restore releases what the state names, in order"
        );

        // Restoring the state of e equals having committed e: all it covers is dealt with, or in
        // the ledger again and on its way. That an item is on its way although it was settled
        // after the cut is what a crash costs, and not a loss.
        let again: BTreeSet<u64> = released.iter().copied().collect();
        for number in &saved.covered {
            assert!(
                again.contains(number) || self.done.contains(number),
                "{number} is lost: covered by epoch {} and nowhere",
                saved.epoch
            );
        }
        // What was done for items after the cut is undone with them: they come again from outside.
        self.done
            .retain(|number| saved.covered.contains(number) && !again.contains(number));
        self.added = saved.covered;
    }

    fn check(&mut self) {
        self.ledger.check_invariants();
        for (item, place) in self.model.items.iter().zip(&self.places) {
            let expected = match (item.fate, item.epoch) {
                (Fate::Waiting, None) => Standing::Open,
                (Fate::Waiting, Some(epoch)) => Standing::Sealed(Epoch::new(epoch)),
                (Fate::Released(_), Some(epoch)) => Standing::Settling(Epoch::new(epoch)),
                (Fate::Released(_), None) => unreachable!("only sealed items are released"),
                (Fate::Verdict(_) | Fate::Out, _) => Standing::Gone,
            };
            assert_eq!(self.ledger.standing(*place), expected, "{item:?}");
            let there = expected != Standing::Gone;
            assert_eq!(self.ledger.get(*place), there.then_some(&item.number));
        }
        let view = self.ledger.view();
        let named: Vec<u64> = view.iter().copied().collect();
        assert_eq!(
            named,
            self.model.view(),
            "a state names sealed and settling, in order"
        );
        assert_eq!(view.len(), named.len());
        assert_eq!(view.is_empty(), named.is_empty());

        let counted =
            self.ledger.open_len() + self.ledger.sealed_len() + self.ledger.settling_len();
        assert_eq!(self.ledger.len(), counted);
        assert_eq!(self.ledger.is_empty(), counted == 0);
        assert_eq!(self.ledger.newest(), self.model.newest.map(Epoch::new));
        for epoch in self.epochs() {
            let at = Epoch::new(epoch);
            assert_eq!(self.ledger.is_drained(at), self.model.is_drained(epoch));
            assert_eq!(
                self.ledger.is_sealed(at),
                self.model.sealed.contains(&epoch)
            );
        }

        // The released ones are a prefix of all, in the order in which they were added, each once.
        assert!(
            self.released.is_sorted_by(|a, b| a < b),
            "{:?}",
            self.released
        );
        let last = self.released.last();
        let skipped = self
            .model
            .items
            .iter()
            .find(|item| Some(&item.number) < last && item.fate == Fate::Waiting);
        assert!(skipped.is_none(), "{skipped:?} was passed over");

        let mut reports = Vec::new();
        while let Some((id, committed)) = self.ledger.poll_committed() {
            let at = self
                .commits
                .iter()
                .position(|commit| *commit == id)
                .unwrap();
            reports.push((at, committed));
        }
        assert_eq!(
            reports,
            self.model.report(),
            "commits are reported once, with their verdicts"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_ledger_does_what_its_naive_model_does(ops in ops()) {
        let mut run = Run::default();
        for op in &ops {
            run.apply(op);
            run.check();
        }
        // After the faults stop and the host commits, everything gets out, each once.
        run.apply(&Op::Add(1));
        run.apply(&Op::Seal(1));
        run.apply(&Op::Save);
        let newest = run.model.newest.unwrap();
        run.commit(usize::try_from(newest).unwrap());
        for at in 0..run.places.len() {
            run.apply(&Op::Settle(at, Outcome::Settled));
        }
        run.check();
        prop_assert!(run.ledger.is_empty());
        prop_assert_eq!(&run.added, &run.done, "nothing is lost in this line of incarnations");
    }
}

fn numbers(commit: &Commit<u64>) -> Vec<u64> {
    let segments = commit.released.iter();
    segments
        .flat_map(|segment| segment.iter().map(|(_, number)| *number))
        .collect()
}

#[test]
fn an_aborted_epoch_goes_in_front_of_the_next_sealed_one() {
    let mut ledger = Ledger::new();
    for epoch in 1..=3 {
        ledger.add(epoch);
        ledger.seal(Epoch::new(epoch)).unwrap();
    }
    assert!(ledger.abort(Epoch::new(2)));
    // What was aborted is not released with its own number but with the next.
    assert_eq!(numbers(&ledger.commit(Epoch::new(2)).unwrap()), [1]);
    assert_eq!(numbers(&ledger.commit(Epoch::new(3)).unwrap()), [2, 3]);
}

#[test]
fn epochs_aborted_newest_first_keep_the_order_of_their_items() {
    let mut ledger = Ledger::new();
    for epoch in 1..=3 {
        ledger.add(epoch);
        ledger.seal(Epoch::new(epoch)).unwrap();
    }
    ledger.add(4);
    for epoch in [3, 1, 2] {
        assert!(ledger.abort(Epoch::new(epoch)));
        ledger.check_invariants();
    }
    assert_eq!(ledger.open_len(), 4);
    ledger.seal(Epoch::new(4)).unwrap();
    assert_eq!(
        numbers(&ledger.commit(Epoch::new(4)).unwrap()),
        [1, 2, 3, 4]
    );
}

#[test]
fn a_view_does_not_see_later_verdicts() {
    let mut ledger = Ledger::new();
    let place = ledger.add(1);
    ledger.add(2);
    ledger.seal(Epoch::new(1)).unwrap();
    let view = ledger.view();
    ledger.settle(place, Outcome::Settled);
    assert_eq!(view.iter().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(ledger.view().iter().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_later_commit_does_not_report_before_an_earlier_epoch_has_its_verdicts() {
    let mut ledger = Ledger::new();
    let first = ledger.add(1);
    ledger.seal(Epoch::new(1)).unwrap();
    let one = ledger.commit(Epoch::new(1)).unwrap();
    let second = ledger.add(2);
    ledger.seal(Epoch::new(2)).unwrap();
    let two = ledger.commit(Epoch::new(2)).unwrap();
    ledger.settle(second, Outcome::Settled);
    assert_eq!(ledger.poll_committed(), None);
    ledger.settle(first, Outcome::Lapsed);
    let mut lapsed = Committed::default();
    lapsed.lapsed = 1;
    let mut settled = Committed::default();
    settled.settled = 1;
    assert_eq!(ledger.poll_committed(), Some((one.id, lapsed)));
    assert_eq!(ledger.poll_committed(), Some((two.id, settled)));
    assert_eq!(ledger.poll_committed(), None);
}

#[test]
fn an_open_epoch_of_many_segments_is_one_epoch() {
    const ITEMS: u64 = 200_000;
    let mut ledger = Ledger::new();
    ledger.add(0);
    ledger.seal(Epoch::new(1)).unwrap();
    let places: Vec<Place> = (1..=ITEMS).map(|number| ledger.add(number)).collect();
    ledger.check_invariants();
    let withdrawn = places[70_000];
    assert_eq!(ledger.withdraw(withdrawn), Standing::Open);
    assert_eq!(ledger.settle(places[0], Outcome::Settled), Standing::Open);
    // Folds in front of segments that the open epoch has closed already.
    assert!(ledger.abort(Epoch::new(1)));
    ledger.check_invariants();
    ledger.seal(Epoch::new(2)).unwrap();
    let released = numbers(&ledger.commit(Epoch::new(2)).unwrap());
    let expected: Vec<u64> = (0..=ITEMS)
        .filter(|number| ![1, 70_001].contains(number))
        .collect();
    assert_eq!(released, expected);
}

#[test]
fn an_open_epoch_does_not_keep_what_has_its_verdict() {
    let mut ledger = Ledger::new();
    for number in 0..300_000 {
        let place = ledger.add(number);
        ledger.settle(place, Outcome::Settled);
    }
    let last = ledger.add(300_000);
    ledger.seal(Epoch::new(1)).unwrap();
    assert_eq!(
        ledger.view().segments().len(),
        1,
        "the closed segments are gone"
    );
    let commit = ledger.commit(Epoch::new(1)).unwrap();
    ledger.settle(last, Outcome::Settled);
    let committed = ledger.poll_committed();
    assert!(
        matches!(committed, Some((id, told)) if id == commit.id && told.settled == 300_001),
        "{committed:?}"
    );
}

#[test]
fn a_view_can_be_read_a_part_at_a_time() {
    let mut ledger = Ledger::new();
    let places = [1, 2, 3].map(|number| ledger.add(number));
    ledger.settle(places[0], Outcome::Settled);
    ledger.seal(Epoch::new(1)).unwrap();
    let commit = ledger.commit(Epoch::new(1)).unwrap();
    let mut cursor = 0;
    let mut read = Vec::new();
    while let Some((place, number)) = commit.released[0].next_from(&mut cursor) {
        read.push((place, *number));
    }
    assert_eq!(read, [(places[1], 2), (places[2], 3)]);
    assert_eq!(commit.released[0].next_from(&mut cursor), None);
}

#[test]
fn a_host_that_never_commits_does_not_grow_the_list_of_empty_epochs_for_ever() {
    let mut ledger = Ledger::new();
    let first = ledger.add(1);
    for epoch in 1..=5_000 {
        ledger.seal(Epoch::new(epoch)).unwrap();
    }
    ledger.check_invariants();
    let kept = (1..=5_000).filter(|epoch| ledger.is_sealed(Epoch::new(*epoch)));
    assert!(kept.count() <= 1_024);
    assert!(
        ledger.is_sealed(Epoch::new(5_000)),
        "the newest is about to be committed"
    );
    let commit = ledger.commit(Epoch::new(5_000)).unwrap();
    assert_eq!(numbers(&commit), [1]);
    ledger.settle(first, Outcome::Settled);
    assert!(matches!(ledger.poll_committed(), Some((_, committed)) if committed.settled == 1));
}
