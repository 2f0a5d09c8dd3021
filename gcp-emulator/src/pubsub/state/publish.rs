//! Publishing.

use std::sync::Arc;

use super::message::{self, Stored};
use super::name::{self, Kind};
use super::{PubsubState, Refusal};
use crate::pubsub::proto::PubsubMessage;
use crate::time::Time;

impl PubsubState {
    /// Publishes messages in one request. Their ids, in order.
    ///
    /// # Errors
    ///
    /// The whole request is refused when the topic is missing, or when any limit is broken: 1,000
    /// messages, 10,000,000 encoded bytes, one ordering key, no empty message, 100 attributes with
    /// keys of 256 and values of 1,024 bytes, ordering keys of 1,024 bytes.
    pub fn publish(
        &mut self,
        now: Time,
        topic: &str,
        messages: Vec<PubsubMessage>,
    ) -> Result<Vec<String>, Refusal> {
        let now = self.clock(now);
        name::check(Kind::Topic, topic)?;
        message::check(topic, &messages)?;
        if !self.topics.contains_key(topic) {
            return Err(Refusal::Missing {
                id: name::id(topic),
            });
        }
        let ids = self.store(now, topic, messages);
        self.record.topic(topic).requests += 1;
        Ok(ids)
    }

    /// Stores messages on a topic that exists and offers them to its subscriptions.
    pub(super) fn store(
        &mut self,
        now: Time,
        topic: &str,
        messages: Vec<PubsubMessage>,
    ) -> Vec<String> {
        // One publish time per request, in whole milliseconds: both measured.
        let at = now.to_millisecond();
        let stored: Vec<Arc<Stored>> = messages
            .into_iter()
            .map(|message| {
                let seq = self.next_seq;
                self.next_seq += 1;
                Arc::new(Stored::new(seq, at, message))
            })
            .collect();
        let record = self.record.topic(topic);
        for one in &stored {
            record.published(&one.message, one.size, self.settings.history);
        }
        let Some(there) = self.topics.get_mut(topic) else {
            return Vec::new();
        };
        for one in &stored {
            there.keep(now, one);
        }
        let listeners: Vec<String> = there.subscriptions.iter().cloned().collect();
        for listener in &listeners {
            if let Some(subscription) = self.subscriptions.get_mut(listener) {
                for one in &stored {
                    subscription.offer(one);
                }
            }
            self.refresh(listener);
        }
        for snapshot in self.snapshots.values_mut() {
            snapshot.offer(topic, &stored);
        }
        stored
            .iter()
            .map(|one| one.id.as_ref().to_owned())
            .collect()
    }
}
