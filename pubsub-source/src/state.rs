//! What a source saves with an epoch.

mod body;
mod group;
mod saved_deliveries;
#[cfg(test)]
mod tests;
mod unfinished;

pub(crate) use group::Named;
pub use saved_deliveries::SavedDeliveries;

use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use connector_core::{StateError, Versioned};
use gcp_wire::SubscriptionName;

use crate::{
    machine::{RestoredGroup, SeenView, Unfinished},
    start::SeekId,
};
use group::{Group, Ids, Lease};

/// What a source saves with an epoch: the ids of messages that a commit of the epoch settles.
///
/// It names everything that is sealed, everything that is committed and not confirmed, and what the
/// seen window holds; no payload, and ack ids only with [`SavedDeliveries::AckIds`]. Restoring it
/// equals having committed the epoch, whatever was in flight. A message id takes at most 12 bytes
/// where it is a number, usually 2 to 8.
///
/// The state of a decoded source also names the message that the cut fell into, with the number of
/// its records that were handed out before: they are skipped when the message comes again.
#[derive(Clone)]
pub struct SourceState {
    instance: Arc<str>,
    subscriptions: Vec<Part>,
    /// The seek after which it was taken: a later one makes it say nothing.
    sought: Option<SeekId>,
}

/// What the state says about one subscription.
#[derive(Clone)]
struct Part {
    name: Arc<str>,
    groups: Vec<Group>,
    unfinished: Vec<Unfinished>,
    /// Ordering keys in which the host is behind what it once had: what comes again of them is
    /// handed out, whether or not a group names it.
    behind: Vec<Arc<str>>,
}

impl SourceState {
    /// The state of a running source. Shares the ids; encoding them needs no lock.
    pub(crate) fn live(
        instance: Arc<str>,
        subscription: &SubscriptionName,
        held: Named,
        seen: Vec<SeenView>,
        unfinished: Vec<Unfinished>,
    ) -> Self {
        let mut groups = Vec::with_capacity(seen.len() + 1);
        if !held.ids.is_empty() {
            groups.push(Group {
                lease: match held.ack_ids {
                    Some(_) => Lease::Left(held.lease_left),
                    None => Lease::Unknown,
                },
                ids: Ids::Ledger(held.ids, held.ack_ids),
                published_by: held.published_by,
                remaining: None,
            });
        }
        groups.extend(seen.into_iter().map(|view| Group {
            published_by: view.published_by,
            remaining: Some(view.remaining),
            ids: Ids::Seen(view),
            lease: Lease::Unknown,
        }));
        Self {
            instance,
            subscriptions: vec![Part {
                name: subscription.as_str().into(),
                groups,
                unfinished,
                behind: Vec::new(),
            }],
            sought: None,
        }
    }

    /// The same, of a host that is behind in these ordering keys.
    pub(crate) fn behind(mut self, keys: Vec<Arc<str>>) -> Self {
        if let Some(part) = self.subscriptions.first_mut() {
            part.behind = keys;
        }
        self
    }

    /// The same, taken by a source that reads after this seek.
    pub(crate) fn after(mut self, sought: Option<SeekId>) -> Self {
        self.sought = sought;
        self
    }

    /// The seek after which the state was taken.
    pub(crate) fn sought(&self) -> Option<SeekId> {
        self.sought
    }

    /// The states of a source's splits, of different subscriptions, as the source's one.
    pub(crate) fn join(splits: impl IntoIterator<Item = Self>) -> Option<Self> {
        splits.into_iter().reduce(|mut all, split| {
            all.subscriptions.extend(split.subscriptions);
            all
        })
    }

    /// A state that names nothing.
    pub(crate) fn empty(instance: Arc<str>, subscription: &SubscriptionName) -> Self {
        Self {
            instance,
            subscriptions: vec![Part {
                name: subscription.as_str().into(),
                groups: Vec::new(),
                unfinished: Vec::new(),
                behind: Vec::new(),
            }],
            sought: None,
        }
    }

    /// Notes when the cut was made, on a clock that a later process understands.
    pub(crate) fn taken_at(mut self, wall: SystemTime) -> Self {
        let parts = self.subscriptions.iter_mut();
        for group in parts.flat_map(|part| &mut part.groups) {
            if let Lease::Left(left) = group.lease {
                group.lease = wall.checked_add(left).map_or(Lease::Unknown, Lease::Until);
            }
        }
        self
    }

    /// The number of messages that the state names.
    #[must_use]
    pub fn named(&self) -> usize {
        let groups = self.subscriptions.iter().flat_map(|part| &part.groups);
        groups.map(|group| group.ids.len()).sum()
    }

    /// The number of messages of which the state names some records and not all.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        let parts = self.subscriptions.iter();
        parts.map(|part| part.unfinished.len()).sum()
    }

    /// The unfinished messages of a subscription.
    pub(crate) fn unfinished_of(&self, subscription: &SubscriptionName) -> Vec<Unfinished> {
        let parts = self.subscriptions.iter();
        parts
            .filter(|part| *part.name == *subscription.as_str())
            .flat_map(|part| part.unfinished.iter().cloned())
            .collect()
    }

    /// The ordering keys of a subscription in which the host is behind what it once had.
    pub(crate) fn behind_in(&self, subscription: &SubscriptionName) -> Vec<Arc<str>> {
        let parts = self.subscriptions.iter();
        parts
            .filter(|part| *part.name == *subscription.as_str())
            .flat_map(|part| part.behind.iter().map(Arc::clone))
            .collect()
    }

    /// What the state says about a subscription, to a source that is built at `wall`.
    pub(crate) fn groups_of(
        &self,
        subscription: &SubscriptionName,
        wall: SystemTime,
    ) -> Vec<RestoredGroup> {
        let parts = self.subscriptions.iter();
        let groups = parts
            .filter(|part| *part.name == *subscription.as_str())
            .flat_map(|part| &part.groups);
        groups
            .map(|group| {
                let mut ids = Vec::new();
                group.ids.each(|id, _| ids.push(id.clone()));
                RestoredGroup {
                    ids,
                    published_by: group.published_by,
                    remaining: group.remaining,
                    held: group.held(wall),
                }
            })
            .collect()
    }
}

// Ids by the million do not belong into a log.
impl fmt::Debug for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.subscriptions.iter().map(|part| &*part.name).collect();
        f.debug_struct("SourceState")
            .field("instance", &self.instance)
            .field("subscriptions", &names)
            .field("named", &self.named())
            .field("unfinished", &self.unfinished())
            .finish()
    }
}

impl Versioned for SourceState {
    const CONNECTOR: &'static str = "pubsub-source";
    const VERSION: u32 = 2;

    fn instance(&self) -> &str {
        &self.instance
    }

    fn encode_body(&self) -> Bytes {
        body::encode(self)
    }

    fn decode_body(version: u32, instance: &str, body: Bytes) -> Result<Self, StateError> {
        // Version 2 only added fields: after which seek it was taken, ack ids, and
        // unfinished messages.
        if !(1..=Self::VERSION).contains(&version) {
            return Err(StateError::unknown_version::<Self>(version));
        }
        body::decode(instance, body)
            .map_err(|problem| StateError::damaged::<Self>(version, problem))
    }
}

connector_core::serde_through_envelope!(SourceState);
