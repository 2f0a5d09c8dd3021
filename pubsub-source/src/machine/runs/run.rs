//! One ordering key.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use super::super::{acks::Lane, key::MessageKey};
use crate::delivery::DeliveryId;

/// Publish time and id: greater than those of every other message of the key means new.
pub(super) type Position = (i64, MessageKey);

/// A message that was let through and is not handed out.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: DeliveryId,
    pub(super) position: Position,
    /// It was never let through before.
    pub(super) new: bool,
    /// It must not come out any more, if it has not yet: the handle will say.
    pub(super) revoked: bool,
}

/// Messages were dropped, so that what arrives next may not be what comes next.
#[derive(Debug)]
pub(super) struct Gap {
    /// What was dropped, in order: the first of it is what comes next.
    pub(super) dropped: VecDeque<(DeliveryId, MessageKey)>,
    /// Of those, the ones of which the handle has not said whether they came out before.
    pub(super) unsure: usize,
    /// Since a moment after the drop.
    pub(super) since: Option<Instant>,
    /// What arrived first since, and was dropped too.
    pub(super) next: Option<MessageKey>,
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
    pub(super) released: VecDeque<MessageKey>,
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

    /// Whether a message was certainly never let through before.
    pub(super) fn is_new(&self, (published, id): (i64, &MessageKey)) -> bool {
        let beyond = |newest: &Position| (published, id) > (newest.0, &newest.1);
        published > self.floor && self.newest.as_ref().is_none_or(beyond)
    }
}
