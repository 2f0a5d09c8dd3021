//! Subscriptions that hand nothing out for a while.

use gcp_wire::SubscriptionName;

use super::PubsubSource;
use crate::split::SplitReader;

impl PubsubSource {
    /// Hands out nothing of a subscription until it is [resumed](Self::resume). Answers whether the
    /// source reads it.
    ///
    /// For hosts that let the slowest input set the pace. Checkpoints go on as before: what was
    /// handed out is settled by its epochs' commits, and its leases are extended. What is fetched
    /// meanwhile stays leased, up to [`paused_limit`](crate::SourceBuilder::paused_limit).
    ///
    /// Beyond that limit, or when another subscription of the source finds no room in the buffer
    /// (the one that holds most first), the subscription is *parked*: its streams are closed, and
    /// what was not handed out is given back for others to have, each message at the cost of one
    /// delivery attempt. A parked subscription is not watched either: that it was deleted meanwhile
    /// shows when it is resumed.
    pub fn pause(&mut self, subscription: &SubscriptionName) -> bool {
        let split = self.split_of(subscription);
        split.map(SplitReader::pause).is_some()
    }

    /// Hands out a subscription's messages again. Answers whether the source reads it.
    ///
    /// What was fetched before and during the pause comes first, as long as it is still ours.
    pub fn resume(&mut self, subscription: &SubscriptionName) -> bool {
        let split = self.split_of(subscription);
        split.map(SplitReader::resume).is_some()
    }

    /// Whether a subscription of this source is paused.
    #[must_use]
    pub fn is_paused(&self, subscription: &SubscriptionName) -> bool {
        let mut splits = self.splits.iter();
        splits.any(|split| split.subscription() == subscription && split.is_paused())
    }

    fn split_of(&mut self, subscription: &SubscriptionName) -> Option<&mut SplitReader> {
        let mut splits = self.splits.iter_mut();
        splits.find(|split| split.subscription() == subscription)
    }
}
