//! What was dropped of a key, and what may come next.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{super::key::MessageKey, run::Passage};

/// What is sent from this time on is no longer a message that was dropped: it is gone. Unknown until
/// time is told again.
type Gone = Option<Instant>;

/// Messages were dropped, so that what arrives next may not be what comes next.
///
/// The service leaves nothing out: it goes on behind what it sent last, or back. So whatever was on
/// its way when something was dropped comes behind that, in the order in which it arrives, and the
/// messages that were dropped since are known in their order. What the host has is followed by the
/// first of them that is not gone, and a message is gone that has not come again long after the
/// last lease on it that was ours: then the one behind it comes next. How long that takes is
/// counted for each by itself, from the last time it was dropped. That holds up what lies behind
/// it, never what lies before it, so every message that the service goes on sending comes to be
/// the first. Only of a message that is not among them nobody knows where it lies: it is dropped
/// too, and counts as the last from then on, though it may be one of long ago.
#[derive(Debug)]
pub(super) struct Gap {
    /// When each is gone, by their ranks.
    dropped: BTreeMap<i64, Gone>,
    /// The ranks of each message: one that was let through twice may have been dropped twice.
    ranks: BTreeSet<(MessageKey, i64)>,
    /// Messages that were revoked and of which the handle has not said whether they came out
    /// before.
    pub(super) unsure: usize,
    /// When the first of them was let through.
    pub(super) first: Passage,
    /// Whether there are messages that were dropped at an unknown time.
    undated: bool,
    /// None of them is sent again from then on.
    last_gone: Gone,
    /// When it was looked for the first that may still come, and its rank.
    awaited: Option<(Instant, i64)>,
}

impl Gap {
    pub(super) fn new(first: Passage) -> Self {
        Self {
            dropped: BTreeMap::new(),
            ranks: BTreeSet::new(),
            unsure: 0,
            first,
            undated: false,
            last_gone: None,
            awaited: None,
        }
    }

    /// These are revoked, in this order, and lie before everything that was dropped so far.
    pub(super) fn revoke<'a>(&mut self, messages: impl DoubleEndedIterator<Item = &'a MessageKey>) {
        for message in messages.rev() {
            self.unsure += 1;
            let first = self.dropped.first_key_value();
            let rank = first.map_or(0, |(rank, _)| rank - 1);
            self.insert(rank, message, None);
        }
    }

    /// One that had been revoked came out before that was seen: nothing is missing up to there.
    pub(super) fn handle_out(&mut self, message: &MessageKey) {
        if let Some(rank) = self.rank(message) {
            self.ranks.remove(&(message.clone(), rank));
            self.dropped.remove(&rank);
        }
    }

    /// One that had been revoked will not come out. Until now it was leased.
    pub(super) fn handle_withdrawn(&mut self, message: &MessageKey) {
        self.date_again(message, None);
    }

    /// Nothing is missing.
    pub(super) fn is_closed(&self) -> bool {
        self.unsure == 0 && self.dropped.is_empty()
    }

    /// What was dropped was dropped by now, and comes again within `patience` or never.
    pub(super) fn date(&mut self, now: Instant, patience: Duration) {
        if std::mem::take(&mut self.undated) {
            for gone in self.dropped.values_mut() {
                gone.get_or_insert(now + patience);
            }
            self.last_gone = self.last_gone.max(Some(now + patience));
        }
    }

    /// Whether a message, sent no earlier than `sent`, is what comes next.
    pub(super) fn ends_with(&mut self, message: &MessageKey, sent: Instant) -> bool {
        if self.unsure > 0 {
            return false;
        }
        match self.rank(message) {
            Some(rank) => self.first_awaited(sent).is_none_or(|first| rank <= first),
            // It may lie before everything or behind everything.
            None => self.last_gone.is_some_and(|last| last <= sent),
        }
    }

    /// The rank of the first message that may still come. What lies before it is not forgotten: if
    /// what arrives is one of long ago, it may yet follow.
    fn first_awaited(&mut self, sent: Instant) -> Option<i64> {
        let from = match self.awaited {
            Some((looked, rank)) if looked <= sent => rank,
            Some(_) | None => i64::MIN,
        };
        let mut ranks = self.dropped.range(from..);
        let first = ranks.find(|(_, gone)| gone.is_none_or(|gone| gone > sent));
        let first = first.map(|(rank, _)| *rank);
        self.awaited = Some((sent, first.unwrap_or_else(|| self.next_rank())));
        first
    }

    /// A message is dropped since it is not what comes next. Answers for how long the first one is
    /// awaited at most, for which time it may be held back; no time at all while it is not known
    /// which that is.
    pub(super) fn add(
        &mut self,
        message: &MessageKey,
        now: Instant,
        patience: Duration,
    ) -> Duration {
        let from = self.awaited.map_or(i64::MIN, |(_, rank)| rank);
        let mut awaited = self.dropped.range(from..).filter_map(|(_, gone)| *gone);
        let wait = match awaited.find(|gone| *gone > now) {
            Some(gone) if self.unsure == 0 => gone.saturating_duration_since(now),
            Some(_) | None => Duration::ZERO,
        };
        let gone = Some(now + wait + patience);
        self.last_gone = self.last_gone.max(gone);
        if !self.date_again(message, gone) {
            self.insert(self.next_rank(), message, gone);
        }
        wait
    }

    /// Whether everything is gone, even if something was left unread for as long again.
    pub(super) fn is_forgotten(&self, now: Instant, patience: Duration) -> bool {
        let is_long_gone = |gone: &Gone| gone.is_some_and(|gone| gone + patience <= now);
        self.unsure == 0 && self.dropped.values().all(is_long_gone)
    }

    /// The rank of what lies behind everything.
    fn next_rank(&self) -> i64 {
        let last = self.dropped.last_key_value();
        last.map_or(0, |(rank, _)| rank + 1)
    }

    /// The rank of a message, the first one if it has several.
    fn rank(&self, message: &MessageKey) -> Option<i64> {
        self.rank_from(message, i64::MIN)
    }

    fn rank_from(&self, message: &MessageKey, least: i64) -> Option<i64> {
        let ranks = (message.clone(), least)..=(message.clone(), i64::MAX);
        self.ranks.range(ranks).next().map(|(_, rank)| *rank)
    }

    /// A message that was dropped is gone from another time on. Answers whether it is here.
    fn date_again(&mut self, message: &MessageKey, gone: Gone) -> bool {
        let mut next = self.rank(message);
        let is_here = next.is_some();
        while let Some(rank) = next {
            self.dropped.insert(rank, gone);
            self.undated |= gone.is_none();
            self.look_again_from(rank);
            next = self.rank_from(message, rank + 1);
        }
        is_here
    }

    fn insert(&mut self, rank: i64, message: &MessageKey, gone: Gone) {
        self.undated |= gone.is_none();
        self.look_again_from(rank);
        self.ranks.insert((message.clone(), rank));
        self.dropped.insert(rank, gone);
    }

    /// What lies at this rank may come, whatever was found before.
    fn look_again_from(&mut self, rank: i64) {
        self.awaited = self.awaited.filter(|(_, first)| *first <= rank);
    }

    /// Checks what only this type can break.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.dropped.len(), self.ranks.len());
        for (_, rank) in &self.ranks {
            let gone = self.dropped.get(rank).expect("what has a rank was dropped");
            assert!(self.undated || gone.is_some());
            assert!(*gone <= self.last_gone, "none is gone later than the last");
        }
        assert!(!self.is_closed(), "what is closed is no gap");
    }
}
