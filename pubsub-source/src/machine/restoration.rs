//! What a source knows that was there before.

use std::{sync::Arc, time::Duration};

use connector_core::Epoch;

use super::{AckIds, MessageKey, Unfinished};
use crate::start::SeekId;

/// What a restored source knows.
#[derive(Debug, Default)]
pub(crate) struct Restoration {
    /// The newest epoch of the states.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) groups: Vec<RestoredGroup>,
    /// Messages of which some records are part of the epoch.
    pub(crate) unfinished: Vec<Unfinished>,
    /// The seek after which the source reads.
    pub(crate) sought: Option<SeekId>,
    /// Ordering keys in which the host is behind what it once had.
    pub(crate) behind: Vec<Arc<str>>,
}

/// Ids of a state that share a guard and a lifetime.
#[derive(Debug)]
pub(crate) struct RestoredGroup {
    pub(crate) ids: Vec<MessageKey>,
    /// Nanoseconds since the Unix epoch: what is published later is another message.
    pub(crate) published_by: i64,
    /// What is left of the group's lifetime; `None` for a full one.
    pub(crate) remaining: Option<Duration>,
    /// Those that can be acknowledged without waiting for them to come again.
    pub(crate) held: Option<RestoredHeld>,
}

/// Deliveries of a state that saved their ack ids.
#[derive(Debug, Default)]
pub(crate) struct RestoredHeld {
    pub(crate) keys: Vec<MessageKey>,
    /// The ack id of each.
    pub(crate) ack_ids: AckIds,
    /// What is left of the first lease to end. Nothing when it is over or not known.
    pub(crate) lease_left: Duration,
}
