//! Seeking: acknowledging and un-acknowledging in bulk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::message::Stored;
use super::subscription::Subscription;
use super::{PubsubState, Refusal};
use crate::time::Time;

impl PubsubState {
    /// Marks everything published up to and including `target` as acknowledged, and everything
    /// after it, as far as it is still kept, as not: what was acknowledged or outstanding comes
    /// again. The boundary was measured on the service: a message published exactly at the target
    /// stays acknowledged.
    ///
    /// # Errors
    ///
    /// When the subscription is missing or detached.
    pub fn seek_to_time(
        &mut self,
        now: Time,
        subscription: &str,
        target: Time,
    ) -> Result<(), Refusal> {
        let now = self.clock(now);
        let of_topic = self.kept_by_topic(now, subscription);
        self.on(now, subscription, |subscription, _| {
            if subscription.config.detached {
                return Err(Refusal::Detached);
            }
            let own = subscription
                .backlog
                .entries()
                .map(|entry| Arc::clone(&entry.stored));
            let all: BTreeMap<u64, Arc<Stored>> = of_topic
                .into_iter()
                .chain(own)
                .map(|stored| (stored.seq, stored))
                .collect();
            subscription.rebuild(all.into_values().map(|stored| {
                let unacked = stored.at > target;
                (stored, unacked)
            }));
            Ok(())
        })?
    }

    /// Puts a subscription back to where a snapshot was taken: what was unacknowledged then, and
    /// everything published since, comes again; everything else is acknowledged.
    ///
    /// # Errors
    ///
    /// When subscription or snapshot are missing, or belong to different topics.
    pub fn seek_to_snapshot(
        &mut self,
        now: Time,
        subscription: &str,
        snapshot: &str,
    ) -> Result<(), Refusal> {
        let now = self.clock(now);
        self.subscription(now, subscription)?;
        let there = self.live_snapshot(now, snapshot)?;
        let (topic, unacked) = (there.topic.clone(), there.unacked.clone());
        self.on(now, subscription, |subscription, around| {
            if subscription.config.detached {
                return Err(Refusal::Detached);
            }
            if subscription.config.topic != topic {
                return Err(Refusal::SnapshotOfOtherTopic);
            }
            let mut all: BTreeMap<u64, (Arc<Stored>, bool)> = subscription
                .backlog
                .entries()
                .map(|entry| (entry.stored.seq, (Arc::clone(&entry.stored), false)))
                .collect();
            let young = |stored: &Stored| stored.at + subscription.retention > around.now;
            all.extend(
                unacked
                    .into_iter()
                    .filter(|(_, stored)| young(stored))
                    .map(|(seq, stored)| (seq, (stored, true))),
            );
            subscription.rebuild(all.into_values());
            Ok(())
        })?
    }

    /// What the subscription's topic keeps by itself.
    fn kept_by_topic(&mut self, now: Time, subscription: &str) -> Vec<Arc<Stored>> {
        let Some(topic) = self.topic_of(subscription) else {
            return Vec::new();
        };
        let Some(topic) = self.topics.get_mut(&topic) else {
            return Vec::new();
        };
        topic.kept(now).map(Arc::clone).collect()
    }
}

impl Subscription {
    /// Starts over with these messages, oldest first; true marks the unacknowledged ones. Leases
    /// end, and the ack ids given out mean nothing any more.
    fn rebuild(&mut self, messages: impl Iterator<Item = (Arc<Stored>, bool)>) {
        let messages: Vec<_> = messages.collect();
        for freed in self.backlog.clear() {
            self.free(Some(freed));
        }
        for (stored, unacked) in messages {
            if !self.wants(&stored) {
                continue;
            }
            if unacked {
                self.backlog.add(stored);
            } else {
                self.backlog.add_retained(stored);
            }
        }
    }
}
