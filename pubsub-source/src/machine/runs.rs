//! What has come out of each ordering key, and what may come out of it next.

mod fate;
mod gap;
#[cfg(any(test, fuzzing))]
mod invariants;
mod run;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{acks::Lane, key::MessageKey};
use crate::delivery::DeliveryId;
pub(super) use fate::{Fate, Known};
use gap::Gap;
pub(super) use run::Passage;
use run::{Position, Queued, Run};

/// Keys of which nothing is held are remembered up to this number: one that is forgotten costs a
/// needless repeat at worst, one that is remembered about 200 bytes.
const REMEMBERED: usize = 10_000;

/// Releases of a key that are remembered until their messages come again.
const RELEASES: usize = 16;

/// Names an ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyNo(NonZeroU32);

/// The ordering keys of a subscription whose messages are handed out in order.
///
/// The service delivers the messages of a key in order, and after the lapse of one that one and
/// everything behind it once more, acknowledged messages included. What comes out must be runs
/// that go up without a gap, so only the beginning of such a redelivery may be suppressed: once
/// one message of it is handed out again, everything behind it is.
///
/// Publish times and ids only ever show that a message is new. The order of known messages is
/// that of their arrival: clocks of different servers may disagree.
#[derive(Debug)]
pub(super) struct Runs {
    names: BTreeMap<Arc<str>, KeyNo>,
    runs: BTreeMap<KeyNo, Run>,
    next: u32,
    turns: u32,
    ranks: u64,
    floor: i64,
    /// Of new keys it is not known whether something came again: one that knew was forgotten.
    doubt: bool,
    /// The number of keys at which those that are not needed are forgotten.
    sweep_at: usize,
    /// How long the service may take to deliver again what was dropped.
    patience: Duration,
    /// Keys with a gap that has not been dated.
    fresh_gaps: BTreeSet<KeyNo>,
    /// The keys of what is revoked. A delivery that is given back may be gone before the handle has
    /// said what became of its message.
    revoked: BTreeMap<DeliveryId, KeyNo>,
}

impl Runs {
    /// No keys but those of which a restored state says that its host is behind.
    pub(super) fn new(patience: Duration, floor: i64, behind: Vec<Arc<str>>) -> Self {
        let mut runs = Self {
            names: BTreeMap::new(),
            runs: BTreeMap::new(),
            next: 1,
            turns: 0,
            ranks: 0,
            floor,
            doubt: false,
            sweep_at: REMEMBERED,
            patience,
            fresh_gaps: BTreeSet::new(),
            revoked: BTreeMap::new(),
        };
        for name in behind {
            let key = runs.key(&name);
            runs.turns += 1;
            let turn = runs.turns;
            if let Some(run) = runs.runs.get_mut(&key) {
                run.turn = turn;
                run.behind = true;
            }
        }
        runs
    }

    /// The number of an ordering key.
    pub(super) fn key(&mut self, name: &str) -> KeyNo {
        if let Some(key) = self.names.get(name) {
            return *key;
        }
        let key = KeyNo(NonZeroU32::new(self.next).unwrap_or(NonZeroU32::MIN));
        self.next = self.next.wrapping_add(1).max(1);
        let name: Arc<str> = name.into();
        let run = Run {
            lane: Lane::of(BuildHasherDefault::<DefaultHasher>::default().hash_one(&name)),
            name: Arc::clone(&name),
            queued: VecDeque::new(),
            // Any turn there has been: of what was let through in it nothing is held.
            turn: if self.doubt { self.turns } else { 0 },
            began: u64::MAX,
            newest: None,
            out: None,
            floor: self.floor,
            behind: false,
            gap: None,
            out_turn: 0,
            released: VecDeque::new(),
            ranks: VecDeque::new(),
        };
        self.names.insert(name, key);
        self.runs.insert(key, run);
        key
    }

    /// The lane in which a key's messages are acknowledged.
    pub(super) fn lane(&self, key: KeyNo) -> Option<Lane> {
        Some(self.runs.get(&key)?.lane)
    }

    /// A message arrives that was sent no earlier than `sent`: it may have waited long, unread. What
    /// is let through must then be [queued](Self::queue).
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        sent: Instant,
        key: KeyNo,
        id: DeliveryId,
        position: (i64, &MessageKey),
        known: Known,
    ) -> Fate {
        let Some(run) = self.runs.get_mut(&key) else {
            return Fate::HandOut(Passage::default());
        };
        let again = match known {
            Known::Seen => run.turn != 0,
            Known::Held(last) | Known::Waits(last) => run.turn != 0 && last.turn != run.turn,
            Known::Nothing => true,
        };
        if !again {
            return Fate::Suppress;
        }
        if let Some(gap) = &mut run.gap {
            gap.date(now, self.patience);
            // What waits keeps its place, and what came out before the first that was dropped was let
            // through lies before it. The rest would be missing behind what comes again: it is
            // dropped though the host has it, and so comes again too.
            let before = match known {
                Known::Waits(_) => true,
                Known::Held(last) => last.is_before(gap.first),
                Known::Seen | Known::Nothing => false,
            };
            if before {
                return Fate::Suppress;
            }
            let ends = gap.ends_with(position.1, sent);
            if !ends && (gap.unsure > 0 || !run.released.contains(position.1)) {
                let wait = gap.add(position.1, now, self.patience);
                if let Known::Held(last) = known {
                    run.remember(position.1, last.rank);
                }
                return Fate::Drop { wait };
            }
            run.gap = None;
        }
        let remembered = run.recall(position.1);
        let mut rank = match known {
            Known::Held(last) | Known::Waits(last) => last.rank,
            Known::Seen | Known::Nothing => remembered,
        };
        if known == Known::Nothing && run.is_new(position) {
            run.turn = 0;
            self.ranks += 1;
            rank = self.ranks;
        } else if run.turn == 0 || run.began != id.batch() {
            self.turns += 1;
            run.turn = self.turns;
            run.began = id.batch();
        }
        run.released.retain(|id| id != position.1);
        let turn = run.turn;
        Fate::HandOut(Passage { turn, rank })
    }

    /// A message that was let through waits to be handed out.
    pub(super) fn queue(
        &mut self,
        key: KeyNo,
        id: DeliveryId,
        position: Position,
        passage: Passage,
    ) {
        if let Some(run) = self.runs.get_mut(&key) {
            run.newest = run.newest.take().max(Some(position.clone()));
            run.queued.push_back(Queued {
                id,
                position,
                passage,
                revoked: false,
            });
        }
    }

    /// The key of a message that was revoked, until it is told what became of it.
    pub(super) fn revoked_key(&self, id: DeliveryId) -> Option<KeyNo> {
        self.revoked.get(&id).copied()
    }

    /// A message that was let through was handed out.
    pub(super) fn handle_out(&mut self, key: KeyNo, id: DeliveryId) {
        self.revoked.remove(&id);
        let Some(run) = self.runs.get_mut(&key) else {
            return;
        };
        let Some(queued) = run.unqueue(id) else {
            return;
        };
        run.behind = !queued.is_new();
        run.come_out_in(queued.passage.turn);
        if queued.is_new() && run.queued.is_empty() {
            // It had been revoked; now the host has everything up to here.
            run.turn = 0;
        }
        // It came out before its revocation was seen, so nothing is missing up to here.
        if queued.revoked
            && let Some(gap) = &mut run.gap
        {
            gap.handle_out(&queued.position.1);
        }
        run.out = run.out.take().max(Some(queued.position));
        run.newest = run.newest.take().max(run.out.clone());
        run.close_gap();
    }

    /// A message that was let through was dropped, and will not be handed out.
    pub(super) fn handle_withdrawn(&mut self, key: KeyNo, id: DeliveryId) {
        self.revoked.remove(&id);
        let Some(run) = self.runs.get_mut(&key) else {
            return;
        };
        if let Some(queued) = run.unqueue(id)
            && let Some(gap) = &mut run.gap
        {
            gap.handle_withdrawn(&queued.position.1);
            self.fresh_gaps.insert(key);
        }
        run.close_gap();
    }

    /// A message's lease is over, or it is given back: what was let through behind it is revoked,
    /// for the service to deliver it again in order. Answers what that is, the message included
    /// where it was not handed out. Each of them is then told to have been handed out or withdrawn.
    pub(super) fn cut(&mut self, key: KeyNo, id: DeliveryId) -> Vec<DeliveryId> {
        let Some(run) = self.runs.get_mut(&key) else {
            return Vec::new();
        };
        // Asked for each message of a lapse: the first has mostly taken along what waits.
        if run.is_revoked() {
            return Vec::new();
        }
        // What is handed out or suppressed lies before everything that waits.
        let at = run.queued.iter().position(|queued| queued.id == id);
        // Where it waits more than once, from the first time on: it is not ours any more.
        let message = at.and_then(|at| run.queued.get(at));
        let message = message.map(|queued| queued.position.1.clone());
        let at = message.and_then(|message| {
            let mut queued = run.queued.iter();
            queued.position(|queued| queued.position.1 == message)
        });
        let mut revoked = Vec::new();
        for queued in run.queued.iter_mut().skip(at.unwrap_or(0)) {
            if !queued.revoked {
                queued.revoked = true;
                revoked.push((queued.id, queued.position.1.clone(), queued.passage));
            }
        }
        let Some((_, _, first)) = revoked.first() else {
            return Vec::new();
        };
        let gap = run.gap.get_or_insert_with(|| Gap::new(*first));
        gap.first = *first;
        gap.revoke(revoked.iter().map(|(_, message, _)| message));
        let ids = revoked.iter().map(|(id, _, _)| (*id, key));
        self.revoked.extend(ids);
        self.fresh_gaps.insert(key);
        for (_, message, passage) in &revoked {
            run.remember(message, passage.rank);
        }
        if revoked.iter().any(|(_, _, passage)| passage.turn != 0) {
            self.turns += 1;
            run.turn = self.turns;
            run.began = u64::MAX;
        }
        let left = run.queued.iter().filter(|queued| !queued.revoked);
        let left = left.map(|queued| &queued.position).max();
        run.newest = left.max(run.out.as_ref()).cloned();
        revoked.into_iter().map(|(id, _, _)| id).collect()
    }

    /// Revokes everything that waits, in all keys. Answers what that is.
    pub(super) fn cut_all(&mut self) -> Vec<DeliveryId> {
        let firsts = self.runs.iter().filter_map(|(key, run)| {
            let first = run.queued.iter().find(|queued| !queued.revoked)?;
            Some((*key, first.id))
        });
        let firsts: Vec<(KeyNo, DeliveryId)> = firsts.collect();
        let cut = |(key, first)| self.cut(key, first);
        firsts.into_iter().flat_map(cut).collect()
    }

    /// Time passes.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for key in std::mem::take(&mut self.fresh_gaps) {
            if let Some(gap) = self.runs.get_mut(&key).and_then(|run| run.gap.as_mut()) {
                gap.date(now, self.patience);
            }
        }
    }

    /// A message that was handed out in this turn of its key is given back: it comes again, and
    /// starts anew, unless the host is behind it.
    pub(super) fn release(&mut self, key: KeyNo, id: &MessageKey, passage: Passage) {
        let Some(run) = self.runs.get_mut(&key) else {
            return;
        };
        run.remember(id, passage.rank);
        if run.has_passed(passage.turn) {
            run.released.push_back(id.clone());
            if run.released.len() > RELEASES {
                run.released.pop_front();
            }
        }
    }

    /// The keys in which the host is behind what it once had: after a restore nothing of them may
    /// be suppressed.
    pub(super) fn behind(&self) -> Vec<Arc<str>> {
        let behind = self.runs.values().filter(|run| run.behind);
        behind.map(|run| Arc::clone(&run.name)).collect()
    }

    /// Whether there are such keys.
    pub(super) fn is_behind(&self) -> bool {
        self.runs.values().any(|run| run.behind)
    }

    /// Whether it is time to [`sweep`](Self::sweep).
    pub(super) fn is_crowded(&self) -> bool {
        self.runs.len() > self.sweep_at
    }

    /// Forgets the keys of which nothing is held.
    pub(super) fn sweep(&mut self, now: Instant, held: &BTreeSet<KeyNo>) {
        let (floor, doubt, patience) = (&mut self.floor, &mut self.doubt, self.patience);
        self.runs.retain(|key, run| {
            let gap = run.gap.as_ref();
            let awaits = gap.is_some_and(|gap| !gap.is_forgotten(now, patience));
            let needed = held.contains(key) || !run.queued.is_empty() || run.behind || awaits;
            if !needed {
                let newest = run.newest.as_ref().map_or(i64::MIN, |newest| newest.0);
                *floor = newest.max(run.floor).max(*floor);
                *doubt |= run.turn != 0;
            }
            needed
        });
        let runs = &self.runs;
        self.names.retain(|_, key| runs.contains_key(key));
        self.sweep_at = (2 * self.runs.len()).max(REMEMBERED);
    }
}
