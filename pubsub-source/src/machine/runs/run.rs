//! One ordering key.

use std::{collections::VecDeque, sync::Arc};

use super::super::{acks::Lane, key::MessageKey};
use super::gap::Gap;
use crate::delivery::DeliveryId;

/// Messages of a key whose ranks are remembered until they come again. Without its rank a message
/// may come out once more than it need.
const RANKS: usize = 64;

/// Publish time and id: greater than those of every other message of the key means new.
pub(super) type Position = (i64, MessageKey);

/// When a message was let through last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::machine) struct Passage {
    /// The turn of its key; 0: it was never let through before.
    pub(in crate::machine) turn: u32,
    /// Grows with the order in which the messages of the key were let through for the first time;
    /// 0: unknown.
    pub(in crate::machine) rank: u64,
}

impl Passage {
    /// Whether it certainly lies before another in the order of its key. In one turn a key only
    /// goes up.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.turn == other.turn || (self.rank > 0 && self.rank < other.rank)
    }
}

/// A message that was let through and is not handed out.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: DeliveryId,
    pub(super) position: Position,
    pub(super) passage: Passage,
    /// It must not come out any more, if it has not yet: the handle will say.
    pub(super) revoked: bool,
}

/// One ordering key.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: Arc<str>,
    pub(super) lane: Lane,
    pub(super) queued: VecDeque<Queued>,
    /// 0: what was let through goes up to its end without a step back, so nothing known need come
    /// again. Otherwise something came again; what was let through in an earlier turn comes again
    /// too, since it may lie behind that.
    pub(super) turn: u32,
    /// The response in which the turn began: within one a key only goes up, so what is let through
    /// of it is one run.
    pub(super) began: u64,
    /// The greatest position let through.
    pub(super) newest: Option<Position>,
    /// The greatest position handed out.
    pub(super) out: Option<Position>,
    /// What was published by then may have come out although nothing here says so.
    pub(super) floor: i64,
    /// What was handed out last came again, so the host is behind what it once had.
    pub(super) behind: bool,
    pub(super) gap: Option<Gap>,
    /// The turn of what was handed out last.
    pub(super) out_turn: u32,
    /// What was given back, comes again, and does not lie behind what was handed out last.
    pub(super) released: VecDeque<MessageKey>,
    /// The ranks of messages that were let through and are given up or given back, the last ones.
    pub(super) ranks: VecDeque<(MessageKey, u64)>,
}

impl Queued {
    /// Whether it was never let through before.
    pub(super) fn is_new(&self) -> bool {
        self.passage.turn == 0
    }
}

impl Run {
    /// Takes a message out of those that wait.
    pub(super) fn unqueue(&mut self, id: DeliveryId) -> Option<Queued> {
        let at = self.queued.iter().position(|queued| queued.id == id)?;
        let queued = self.queued.remove(at)?;
        if queued.revoked
            && let Some(gap) = &mut self.gap
        {
            gap.unsure = gap.unsure.saturating_sub(1);
        }
        Some(queued)
    }

    /// Whether nothing waits that is not revoked.
    pub(super) fn is_revoked(&self) -> bool {
        let revoked = self.gap.as_ref().map_or(0, |gap| gap.unsure);
        revoked == self.queued.len()
    }

    /// Nothing is awaited any more of which nothing is missing.
    pub(super) fn close_gap(&mut self) {
        if self.gap.as_ref().is_some_and(Gap::is_closed) {
            self.gap = None;
        }
    }

    /// The host has something of this turn. Unless it is new or the turn goes on, it may be an
    /// earlier message than one that was given back before: that one does not come next any more.
    pub(super) fn come_out_in(&mut self, turn: u32) {
        if turn != 0 && turn != self.out_turn {
            self.released.clear();
        }
        self.out_turn = turn;
    }

    /// Remembers the rank of a message that is not held any more and comes again.
    pub(super) fn remember(&mut self, message: &MessageKey, rank: u64) {
        if rank > 0 {
            self.ranks.push_back((message.clone(), rank));
            if self.ranks.len() > RANKS {
                self.ranks.pop_front();
            }
        }
    }

    /// The rank of a message that comes again.
    pub(super) fn recall(&mut self, message: &MessageKey) -> u64 {
        let mut ranks = self.ranks.iter().rev();
        let rank = ranks.find(|(other, _)| other == message);
        let rank = rank.map_or(0, |(_, rank)| *rank);
        self.ranks.retain(|(other, _)| other != message);
        rank
    }

    /// Whether what was let through in a turn, and is out, is certainly nothing that lies behind
    /// what was handed out last.
    pub(super) fn has_passed(&self, turn: u32) -> bool {
        self.out_turn == 0 || self.out_turn == turn
    }

    /// Whether a message was certainly never let through before.
    pub(super) fn is_new(&self, (published, id): (i64, &MessageKey)) -> bool {
        let beyond = |newest: &Position| (published, id) > (newest.0, &newest.1);
        published > self.floor && self.newest.as_ref().is_none_or(beyond)
    }
}
