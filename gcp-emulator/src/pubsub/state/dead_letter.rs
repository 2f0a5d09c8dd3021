//! Forwarding to a dead-letter topic.

use std::sync::Arc;

use super::record::DeadLettered;
use super::subscription::Forward;
use super::{PubsubState, name};
use crate::pubsub::proto::PubsubMessage;
use crate::time::Time;

/// What the service adds to a forwarded message (documented; the forms are those seen on messages
/// of the real service: the subscription's id without its path, the time with milliseconds).
const COUNT: &str = "CloudPubSubDeadLetterSourceDeliveryCount";
const SUBSCRIPTION: &str = "CloudPubSubDeadLetterSourceSubscription";
const PROJECT: &str = "CloudPubSubDeadLetterSourceSubscriptionProject";
const PUBLISHED: &str = "CloudPubSubDeadLetterSourceTopicPublishTime";

impl PubsubState {
    /// Publishes a message that used up its attempts to its dead-letter topic, which exists.
    pub(super) fn forward(&mut self, now: Time, from: &str, topic: &str, forward: &Forward) {
        let stored = &forward.stored;
        let mut message = PubsubMessage::clone(&stored.message);
        message.attributes.extend([
            (COUNT.to_owned(), forward.attempts.to_string()),
            (SUBSCRIPTION.to_owned(), name::id(from)),
            (PROJECT.to_owned(), name::project(from).to_owned()),
            (PUBLISHED.to_owned(), stored.at.to_string()),
        ]);
        let ids = self.store(now, topic, vec![message]);
        let history = self.settings.history.entries;
        let record = self.record.subscription(from);
        record
            .dead_lettered
            .extend(ids.first().map(|id| DeadLettered {
                message_id: Arc::clone(&stored.id),
                forwarded_as: id.as_str().into(),
                attempts: forward.attempts,
                at: now,
            }));
        if record.dead_lettered.len() > history {
            record.dead_lettered.pop_front();
            record.forgotten += 1;
        }
    }
}
