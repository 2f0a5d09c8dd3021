//! Ids in a state that belong together.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use connector_core::ledger::View;

use crate::machine::{AckIds, AckIdsView, MessageKey, RestoredHeld, SeenView};

/// Ids that share a guard and a lifetime.
#[derive(Clone)]
pub(super) struct Group {
    pub(super) ids: Ids,
    /// Nanoseconds since the Unix epoch: what was published later is not meant.
    pub(super) published_by: i64,
    /// What is left of the time in which the ids may come again; `None` for all of it.
    pub(super) remaining: Option<Duration>,
    pub(super) lease: Lease,
}

/// Ids as the machine shares them, or as they were decoded.
#[derive(Clone)]
pub(super) enum Ids {
    Ledger(View<MessageKey>, Option<AckIdsView>),
    Seen(SeenView),
    /// The ack ids are of the same number, or none.
    Listed(Arc<Vec<MessageKey>>, Arc<AckIds>),
}

impl Ids {
    /// Every id with its ack id, which is empty where none is saved.
    pub(super) fn each<'a>(&'a self, mut take: impl FnMut(&'a MessageKey, &'a [u8])) {
        match self {
            Self::Ledger(view, None) => view.iter().for_each(|id| take(id, &[])),
            Self::Ledger(view, Some(ack_ids)) => {
                let items = view.segments().iter().flat_map(|segment| segment.iter());
                items.for_each(|(place, id)| take(id, ack_ids.get(place).unwrap_or_default()));
            }
            Self::Seen(view) => view.iter().for_each(|id| take(id, &[])),
            Self::Listed(ids, ack_ids) => {
                for (index, id) in ids.iter().enumerate() {
                    let saved = index < ack_ids.len();
                    take(id, if saved { ack_ids.get(index) } else { &[] });
                }
            }
        }
    }

    pub(super) fn saves_ack_ids(&self) -> bool {
        match self {
            Self::Ledger(_, ack_ids) => ack_ids.is_some(),
            Self::Seen(_) => false,
            Self::Listed(_, ack_ids) => ack_ids.len() > 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        let mut len = 0;
        self.each(|_, _| len += 1);
        len
    }
}

/// When the first lease of a group ends.
#[derive(Clone, Copy)]
pub(super) enum Lease {
    Unknown,
    /// So long after the cut, whose time is not noted yet.
    Left(Duration),
    Until(SystemTime),
}

/// What a machine's ledger holds at a cut.
pub(crate) struct Named {
    pub(crate) ids: View<MessageKey>,
    pub(crate) published_by: i64,
    pub(crate) ack_ids: Option<AckIdsView>,
    /// What is left of the first lease to end.
    pub(crate) lease_left: Duration,
}

impl Group {
    /// The deliveries whose ack ids were saved.
    pub(super) fn held(&self, wall: SystemTime) -> Option<RestoredHeld> {
        if !self.ids.saves_ack_ids() {
            return None;
        }
        let mut held = RestoredHeld {
            lease_left: match self.lease {
                // A lease that ends in the past is over; a clock that was put back says nothing
                // worse than that it lasts as long as it did.
                Lease::Until(until) => until.duration_since(wall).unwrap_or_default(),
                Lease::Unknown | Lease::Left(_) => Duration::ZERO,
            },
            ..RestoredHeld::default()
        };
        self.ids.each(|id, ack_id| {
            if !ack_id.is_empty() && held.ack_ids.push(ack_id) {
                held.keys.push(id.clone());
            }
        });
        Some(held)
    }
}
