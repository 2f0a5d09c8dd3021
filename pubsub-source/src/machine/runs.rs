//! What has come out of each ordering key, and what may come out of it next.

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
use run::{Gap, Position, Queued, Run};

/// Keys of which nothing is held are remembered up to this number: one that is forgotten costs a
/// needless repeat at worst, one that is remembered about 200 bytes.
const REMEMBERED: usize = 10_000;

/// Releases of a key that are remembered until their messages come again.
const RELEASES: usize = 16;

/// Names an ordering key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyNo(NonZeroU32);

/// What is known of a message that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Nothing: it is new, or was handed out and is settled and forgotten.
    Nothing,
    /// A durable epoch names it.
    Seen,
    /// It is held, and was last let through in this turn of its key.
    Held(u32),
}

/// What is to become of a message that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is handed out, again or for the first time, in this turn of its key.
    HandOut { turn: u32 },
    /// It is a redelivery of something that need not come out again.
    Suppress,
    /// It would leave a gap: what comes before it was dropped and is on its way.
    Drop,
}

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
    floor: i64,
    /// Of new keys it is not known whether something came again: one that knew was forgotten.
    doubt: bool,
    /// The number of keys at which those that are not needed are forgotten.
    sweep_at: usize,
    /// How long the service may take to deliver again what was dropped.
    patience: Duration,
    /// Keys with a gap that has not been dated.
    fresh_gaps: Vec<KeyNo>,
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
            floor,
            doubt: false,
            sweep_at: REMEMBERED,
            patience,
            fresh_gaps: Vec::new(),
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
        if self.doubt {
            self.turns += 1;
        }
        let run = Run {
            lane: Lane::of(BuildHasherDefault::<DefaultHasher>::default().hash_one(&name)),
            name: Arc::clone(&name),
            queued: VecDeque::new(),
            turn: if self.doubt { self.turns } else { 0 },
            began: u64::MAX,
            newest: None,
            out: None,
            floor: self.floor,
            behind: false,
            gap: None,
            released: VecDeque::new(),
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
            return Fate::HandOut { turn: 0 };
        };
        if let Some(gap) = &mut run.gap {
            let since = *gap.since.get_or_insert(now);
            // Nobody holds what was dropped any more: if it does not come first, it is gone.
            let over = sent.saturating_duration_since(since) >= self.patience;
            let first = gap.dropped.front();
            let starts = first.is_some_and(|first| first.1 == *position.1);
            let mut goes_on = starts || run.released.contains(position.1);
            if known == Known::Nothing && !goes_on {
                // Then what comes next is what came first meanwhile, again and again.
                let next = gap.next.get_or_insert_with(|| position.1.clone());
                goes_on = over && next == position.1;
                if over && !goes_on {
                    *next = position.1.clone();
                    gap.since = Some(now);
                }
            }
            if !goes_on || gap.unsure > 0 {
                return match known {
                    Known::Nothing => Fate::Drop,
                    Known::Seen | Known::Held(_) => Fate::Suppress,
                };
            }
            run.gap = None;
        }
        let again = match known {
            Known::Seen => run.turn != 0,
            Known::Held(turn) => run.turn != 0 && turn != run.turn,
            Known::Nothing => true,
        };
        if !again {
            return Fate::Suppress;
        }
        if known == Known::Nothing && run.is_new(position) {
            run.turn = 0;
        } else if run.turn == 0 || run.began != id.batch() {
            self.turns += 1;
            run.turn = self.turns;
            run.began = id.batch();
        }
        run.released.retain(|id| id != position.1);
        Fate::HandOut { turn: run.turn }
    }

    /// A message that was let through waits to be handed out.
    pub(super) fn queue(&mut self, key: KeyNo, id: DeliveryId, position: Position) {
        if let Some(run) = self.runs.get_mut(&key) {
            let new = run.turn == 0;
            run.newest = run.newest.take().max(Some(position.clone()));
            run.queued.push_back(Queued {
                id,
                position,
                new,
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
        run.behind = !queued.new;
        if queued.new && run.queued.is_empty() {
            // It had been revoked; now the host has everything up to here.
            run.turn = 0;
        }
        run.out = run.out.take().max(Some(queued.position));
        run.newest = run.newest.take().max(run.out.clone());
        // It came out before its revocation was seen, so nothing is missing up to here.
        if let Some(gap) = &mut run.gap {
            gap.dropped.retain(|dropped| dropped.0 != id);
            if gap.dropped.is_empty() {
                run.gap = None;
            }
        }
    }

    /// A message that was let through was dropped, and will not be handed out.
    pub(super) fn handle_withdrawn(&mut self, key: KeyNo, id: DeliveryId) {
        self.revoked.remove(&id);
        if let Some(run) = self.runs.get_mut(&key) {
            run.unqueue(id);
        }
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
                revoked.push((queued.id, queued.position.1.clone(), queued.new));
            }
        }
        if revoked.is_empty() {
            return Vec::new();
        }
        let gap = run.gap.get_or_insert(Gap {
            dropped: VecDeque::new(),
            unsure: 0,
            since: None,
            next: None,
        });
        gap.since = None;
        gap.next = None;
        gap.unsure += revoked.len();
        for (id, message, _) in revoked.iter().rev() {
            gap.dropped.push_front((*id, message.clone()));
            self.revoked.insert(*id, key);
        }
        self.fresh_gaps.push(key);
        if revoked.iter().any(|(_, _, new)| !new) {
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
        for key in self.fresh_gaps.drain(..) {
            if let Some(gap) = self.runs.get_mut(&key).and_then(|run| run.gap.as_mut()) {
                gap.since.get_or_insert(now);
            }
        }
    }

    /// A message that was handed out is given back: it comes again, and starts anew.
    pub(super) fn release(&mut self, key: KeyNo, id: &MessageKey) {
        if let Some(run) = self.runs.get_mut(&key) {
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
    pub(super) fn sweep(&mut self, held: &BTreeSet<KeyNo>) {
        let (floor, doubt) = (&mut self.floor, &mut self.doubt);
        self.runs.retain(|key, run| {
            let needed =
                held.contains(key) || !run.queued.is_empty() || run.behind || run.gap.is_some();
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

    /// Checks what only this type can break.
    #[cfg(test)]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.names.len(), self.runs.len());
        let mut revoked_in_all = 0;
        for (key, run) in &self.runs {
            assert_eq!(self.names.get(&run.name), Some(key));
            assert!(run.out <= run.newest, "what is out was let through");
            assert!(run.turn <= self.turns);
            let is_known = |queued: &&Queued| self.revoked_key(queued.id) == Some(*key);
            let revoked = run.queued.iter().filter(|queued| queued.revoked);
            assert!(revoked.clone().all(|queued| is_known(&queued)));
            let revoked = revoked.count();
            revoked_in_all += revoked;
            let unsure = run.gap.as_ref().map_or(0, |gap| gap.unsure);
            assert_eq!(
                revoked, unsure,
                "the handle is asked about what was revoked"
            );
        }
        assert_eq!(revoked_in_all, self.revoked.len(), "and about nothing else");
    }

    /// What waits to be handed out, by key.
    #[cfg(test)]
    pub(super) fn queued(&self) -> impl Iterator<Item = (KeyNo, DeliveryId)> + '_ {
        self.runs
            .iter()
            .flat_map(|(key, run)| run.queued.iter().map(move |queued| (key, queued)))
            .filter(|(_, queued)| !queued.revoked)
            .map(|(key, queued)| (*key, queued.id))
    }
}
