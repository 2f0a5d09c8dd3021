//! Messages that wait for the commit of their epoch.

use std::collections::BTreeMap;

use connector_core::{Epoch, Limits, ledger::Place};

use super::ReplyId;

/// Sealed epochs that hold nothing and are kept apart while the host never commits, as many as the
/// ledger keeps.
const MAX_EMPTY: usize = 1_024;

/// How much waits for a commit, by epoch, and whether the host was asked for one.
///
/// Knows amounts and places only: the messages are in the ledger.
#[derive(Debug)]
pub(super) struct Stage {
    limits: Limits,
    /// What was staged since the last cut.
    open: Limits,
    /// What each sealed epoch holds, ascending; with nothing in it, too, since an aborted epoch
    /// folds into the very next one.
    sealed: BTreeMap<Epoch, Limits>,
    /// The host was asked for a checkpoint, and the open epoch grew by nothing but records since.
    asked: bool,
    /// A message was put into quarantine, which only the next checkpoint makes durable.
    quarantined: bool,
    /// Who waits for what becomes of a staged message: few, so kept apart.
    replies: BTreeMap<Place, ReplyId>,
}

impl Stage {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            open: Limits::new(0, 0),
            sealed: BTreeMap::new(),
            asked: false,
            quarantined: false,
            replies: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, place: Place, bytes: usize, reply: Option<ReplyId>) {
        self.open = plus(self.open, Limits::new(1, bytes));
        if let Some(reply) = reply {
            self.replies.insert(place, reply);
        }
    }

    /// The open epoch was sealed.
    pub(super) fn seal(&mut self, epoch: Epoch) {
        self.sealed.insert(epoch, std::mem::take(&mut self.open));
        self.asked = false;
        self.quarantined = false;
        if self.sealed.len() > MAX_EMPTY
            && let Some(empty) = self.sealed.iter().find(|(_, held)| held.items == 0)
            && *empty.0 != epoch
        {
            let empty = *empty.0;
            self.sealed.remove(&empty);
        }
    }

    /// A sealed epoch was folded into the next one.
    pub(super) fn abort(&mut self, epoch: Epoch) {
        let Some(folded) = self.sealed.remove(&epoch) else {
            return;
        };
        match self.sealed.range_mut(epoch..).next() {
            Some((_, next)) => *next = plus(*next, folded),
            None => {
                self.open = plus(self.open, folded);
                self.asked = false;
            }
        }
    }

    /// Everything up to `epoch` may leave.
    pub(super) fn commit(&mut self, epoch: Epoch) {
        self.sealed.retain(|sealed, _| *sealed > epoch);
    }

    /// What waits for a commit.
    pub(super) fn waiting(&self) -> Limits {
        self.sealed
            .values()
            .fold(self.open, |sum, sealed| plus(sum, *sealed))
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn open_amount(&self) -> Limits {
        self.open
    }

    pub(super) fn take_reply(&mut self, place: Place) -> Option<ReplyId> {
        self.replies.remove(&place)
    }

    /// A message is in quarantine that no checkpoint names yet.
    pub(super) fn quarantined(&mut self) {
        self.quarantined = true;
    }

    /// Whether the host should take a checkpoint now.
    ///
    /// At half a stage, so that there is room while it is taken. Or when the stage is full although
    /// the open epoch is small, and nothing but a commit makes room. `held` is everything without a
    /// verdict.
    pub(super) fn wants_checkpoint(&self, held: Limits) -> bool {
        if self.asked {
            return false;
        }
        let half = |limit: usize| limit.div_ceil(2);
        let half_full = self.open.items >= half(self.limits.items)
            || self.open.bytes >= half(self.limits.bytes);
        let stuck = !self.limits.admits(held) && held.items == self.waiting().items;
        self.quarantined || (self.open.items > 0 && (half_full || stuck))
    }

    /// The host is told.
    pub(super) fn asked(&mut self) {
        self.asked = true;
        self.quarantined = false;
    }
}

fn plus(one: Limits, other: Limits) -> Limits {
    Limits::new(one.items + other.items, one.bytes + other.bytes)
}

#[cfg(test)]
mod tests {
    use connector_core::ledger::Ledger;

    use super::*;

    const STAGE: Limits = Limits::new(4, 1_000);

    struct Staging {
        stage: Stage,
        ledger: Ledger<()>,
    }

    impl Staging {
        fn new(limits: Limits) -> Self {
            Self {
                stage: Stage::new(limits),
                ledger: Ledger::new(),
            }
        }

        fn add(&mut self, bytes: usize) {
            let place = self.ledger.add(());
            self.stage.add(place, bytes, None);
        }

        fn asks(&mut self) -> bool {
            let asks = self.stage.wants_checkpoint(self.stage.waiting());
            if asks {
                self.stage.asked();
            }
            asks
        }
    }

    #[test]
    fn a_checkpoint_is_wanted_at_half_a_stage_and_once_per_open_epoch() {
        let mut staging = Staging::new(STAGE);
        assert!(!staging.asks(), "an empty stage wants nothing");
        staging.add(10);
        assert!(!staging.asks());
        staging.add(10);
        assert!(staging.asks());
        staging.add(10);
        assert!(!staging.asks(), "once per open epoch");
        staging.stage.seal(Epoch::new(1));
        assert!(!staging.asks(), "the cut was made");
    }

    #[test]
    fn bytes_fill_a_stage_as_messages_do() {
        let mut staging = Staging::new(STAGE);
        staging.add(500);
        assert!(staging.asks());
    }

    #[test]
    fn a_stage_of_one_message_wants_a_checkpoint_for_each() {
        let mut staging = Staging::new(Limits::items(1));
        staging.add(1);
        assert!(staging.asks());
    }

    #[test]
    fn an_abort_that_fills_the_open_epoch_asks_again() {
        let mut staging = Staging::new(STAGE);
        staging.add(10);
        staging.add(10);
        assert!(staging.asks());
        staging.stage.seal(Epoch::new(1));
        staging.stage.abort(Epoch::new(1));
        assert!(staging.asks());
        assert_eq!(staging.stage.waiting(), Limits::new(2, 20));
    }

    #[test]
    fn an_aborted_epoch_goes_with_the_next_one_even_if_that_was_empty() {
        let mut staging = Staging::new(STAGE);
        staging.add(10);
        staging.stage.seal(Epoch::new(1));
        staging.stage.seal(Epoch::new(2));
        staging.stage.abort(Epoch::new(1));
        staging.stage.commit(Epoch::new(2));
        assert_eq!(staging.stage.waiting(), Limits::new(0, 0));
    }

    #[test]
    fn a_stage_full_of_what_was_sealed_wants_a_checkpoint_for_the_little_that_is_open() {
        let mut staging = Staging::new(STAGE);
        for _ in 0..3 {
            staging.add(10);
        }
        staging.stage.seal(Epoch::new(1));
        staging.add(10);
        assert!(staging.asks(), "only a commit makes room");
    }

    #[test]
    fn a_stage_full_of_what_is_being_published_waits_for_that() {
        let mut staging = Staging::new(STAGE);
        staging.add(10);
        let held = Limits::new(4, 40);
        assert!(!staging.stage.wants_checkpoint(held));
    }

    #[test]
    fn empty_epochs_of_a_host_that_never_commits_are_not_kept_for_ever() {
        let mut stage = Stage::new(STAGE);
        for epoch in 1..5_000 {
            stage.seal(Epoch::new(epoch));
        }
        assert!(stage.sealed.len() <= MAX_EMPTY);
        assert!(stage.sealed.contains_key(&Epoch::new(4_999)));
    }
    #[test]
    fn as_many_empty_epochs_are_kept_apart_as_the_ledger_keeps() {
        let mut stage = Stage::new(STAGE);
        for epoch in 1..=1_024 {
            stage.seal(Epoch::new(epoch));
        }
        assert!(stage.sealed.contains_key(&Epoch::new(1)));
        stage.seal(Epoch::new(1_025));
        assert!(!stage.sealed.contains_key(&Epoch::new(1)));
        stage.seal(Epoch::new(1_026));
        assert_eq!(stage.sealed.len(), 1_024);
    }

    #[test]
    fn a_commit_takes_its_epoch_out_and_leaves_the_next() {
        let mut staging = Staging::new(STAGE);
        for epoch in 1..=3 {
            staging.add(10);
            staging.stage.seal(Epoch::new(epoch));
        }
        staging.stage.commit(Epoch::new(2));
        assert_eq!(staging.stage.waiting(), Limits::new(1, 10));
        assert!(staging.stage.sealed.contains_key(&Epoch::new(3)));
    }

    #[test]
    fn a_stage_full_of_what_was_sealed_wants_nothing_for_an_open_epoch_without_messages() {
        let mut staging = Staging::new(STAGE);
        for _ in 0..4 {
            staging.add(10);
        }
        staging.stage.seal(Epoch::new(1));
        assert!(!staging.asks());
    }

    #[test]
    fn what_is_quarantined_wants_the_next_checkpoint_once() {
        let mut staging = Staging::new(STAGE);
        staging.stage.quarantined();
        assert!(staging.asks());
        staging.stage.quarantined();
        staging.stage.seal(Epoch::new(1));
        assert!(!staging.asks(), "that state names it");
    }

    #[test]
    fn who_waits_for_a_message_is_told_once() {
        let mut staging = Staging::new(STAGE);
        let places = [staging.ledger.add(()), staging.ledger.add(())];
        staging.stage.add(places[0], 10, Some(ReplyId(7)));
        staging.stage.add(places[1], 10, None);
        let replies =
            [places[0], places[1], places[0]].map(|place| staging.stage.take_reply(place));
        assert_eq!(replies, [Some(ReplyId(7)), None, None]);
    }
}
