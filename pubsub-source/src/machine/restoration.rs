//! What a source knows that was there before.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use connector_core::{Epoch, Restored, StateError, Versioned};
use gcp_wire::SubscriptionName;

use super::{AckIds, MessageKey, Unfinished};
use crate::{
    start::SeekId,
    state::{SavedDeliveries, SourceState},
};

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

impl Restoration {
    /// What the states of a job's readers together say about a subscription, to a source that is
    /// built at `wall`.
    ///
    /// # Errors
    ///
    /// [`StateError::OtherInstance`] for the state of another source.
    pub(crate) fn of(
        subscription: &SubscriptionName,
        instance: &str,
        sought: Option<SeekId>,
        restored: &[Restored<SourceState>],
        saved_deliveries: SavedDeliveries,
        wall: SystemTime,
    ) -> Result<Self, StateError> {
        let mut restoration = Self {
            sought,
            ..Self::default()
        };
        for Restored { epoch, state, .. } in restored {
            if state.instance() != instance {
                return Err(StateError::OtherInstance {
                    connector: SourceState::CONNECTOR,
                    found: state.instance().to_owned(),
                    expected: instance.to_owned(),
                });
            }
            restoration.epoch = restoration.epoch.max(Some(*epoch));
            // A seek brings back on purpose what an older state names. Without a seek of ours there
            // is nothing that a state could be older than.
            if sought.is_none() || state.sought() == sought {
                let groups = state.groups_of(subscription, wall);
                restoration.groups.extend(groups);
                restoration
                    .unfinished
                    .extend(state.unfinished_of(subscription));
                restoration.behind.extend(state.behind_in(subscription));
            }
        }
        if saved_deliveries == SavedDeliveries::Nothing {
            restoration.groups.clear();
            restoration.unfinished.clear();
        }
        Ok(restoration)
    }
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
