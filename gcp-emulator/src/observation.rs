//! What the servers saw, for assertions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::call::Call;
use crate::cloudtasks::state::QueueRecord;
use crate::method::Method;
use crate::pubsub::state::{SubscriptionRecord, TopicRecord};

/// What the servers saw up to one instant.
///
/// Cheap to make and to clone: the parts are shared with the server until they change.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Observation {
    /// By topic name, `projects/P/topics/T`. Outlives the topic.
    pub topics: Arc<BTreeMap<String, Arc<TopicRecord>>>,
    /// By subscription name, `projects/P/subscriptions/S`. Outlives the subscription.
    pub subscriptions: Arc<BTreeMap<String, Arc<SubscriptionRecord>>>,
    /// By queue name, `projects/P/locations/L/queues/Q`. Outlives the queue.
    pub queues: Arc<BTreeMap<String, Arc<QueueRecord>>>,
    /// Every request, oldest first, in the order of arrival.
    pub requests: Arc<VecDeque<Arc<Call>>>,
    /// How many calls of each method arrived. Requests on a stream count as one call.
    pub calls: Arc<BTreeMap<Method, u64>>,
    /// How many requests the history dropped.
    pub requests_forgotten: u64,
    /// Connections that are open.
    pub connections: usize,
    /// Connections that were ever opened.
    pub connections_opened: u64,
}

impl Observation {
    /// What happened on a topic; an empty record for one nobody used.
    #[must_use]
    pub fn topic(&self, name: &str) -> Arc<TopicRecord> {
        self.topics.get(name).map(Arc::clone).unwrap_or_default()
    }

    /// What happened on a subscription; an empty record for one nobody used.
    #[must_use]
    pub fn subscription(&self, name: &str) -> Arc<SubscriptionRecord> {
        self.subscriptions
            .get(name)
            .map(Arc::clone)
            .unwrap_or_default()
    }

    /// What happened on a queue; an empty record for one nobody used.
    #[must_use]
    pub fn queue(&self, name: &str) -> Arc<QueueRecord> {
        self.queues.get(name).map(Arc::clone).unwrap_or_default()
    }

    /// The requests of one method that are still kept, oldest first.
    pub fn requests_of(&self, method: Method) -> impl Iterator<Item = &Call> {
        self.requests
            .iter()
            .map(AsRef::as_ref)
            .filter(move |call| call.method == method)
    }

    /// How many calls of a method arrived.
    #[must_use]
    pub fn count(&self, method: Method) -> u64 {
        self.calls.get(&method).copied().unwrap_or(0)
    }
}
