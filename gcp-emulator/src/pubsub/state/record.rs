//! What happened, kept for assertions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::pubsub::proto::PubsubMessage;
use crate::time::Time;

/// What happened on every topic and subscription.
///
/// Histories are bounded by [`Settings::history`](super::Settings::history); the counters are exact
/// whatever the histories forgot. Records outlive the resources they are about.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Record {
    /// By topic name.
    pub topics: Arc<BTreeMap<String, Arc<TopicRecord>>>,
    /// By subscription name.
    pub subscriptions: Arc<BTreeMap<String, Arc<SubscriptionRecord>>>,
}

impl Record {
    pub(crate) fn topic(&mut self, name: &str) -> &mut TopicRecord {
        entry(&mut self.topics, name)
    }

    pub(crate) fn subscription(&mut self, name: &str) -> &mut SubscriptionRecord {
        entry(&mut self.subscriptions, name)
    }
}

/// The record under a name, made when there is none. Copies what an observer still holds.
fn entry<'a, T: Clone + Default>(
    records: &'a mut Arc<BTreeMap<String, Arc<T>>>,
    name: &str,
) -> &'a mut T {
    let records = Arc::make_mut(records);
    if !records.contains_key(name) {
        records.insert(name.to_owned(), Arc::default());
    }
    let Some(record) = records.get_mut(name) else {
        unreachable!("inserted above")
    };
    Arc::make_mut(record)
}

/// What happened on a topic.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TopicRecord {
    /// The messages published, oldest first, with their ids and publish times.
    pub messages: VecDeque<Arc<PubsubMessage>>,
    /// How many messages were ever published.
    pub published: u64,
    /// How many publish requests were accepted.
    pub requests: u64,
    /// How many messages the history dropped.
    pub forgotten: u64,
    pub(crate) bytes: usize,
}

impl TopicRecord {
    /// The payloads of the messages, oldest first.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().map(|message| message.data.as_ref())
    }
}

/// What happened on a subscription.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SubscriptionRecord {
    /// Every delivery, oldest first.
    pub deliveries: VecDeque<Delivery>,
    /// Every acknowledgement that took effect, oldest first.
    pub acked: VecDeque<Settled>,
    /// Every negative acknowledgement that took effect, oldest first.
    pub nacked: VecDeque<Settled>,
    /// Every lease that ended by its deadline, oldest first.
    pub lapsed: VecDeque<Settled>,
    /// Every message forwarded to the dead-letter topic, oldest first.
    pub dead_lettered: VecDeque<DeadLettered>,
    /// How many messages were ever delivered, redeliveries included.
    pub delivered: u64,
    /// How many acknowledgements took effect.
    pub acks: u64,
    /// How many negative acknowledgements took effect.
    pub nacks: u64,
    /// How many leases ended by their deadline.
    pub lapses: u64,
    /// How many leases were extended (ids, not requests).
    pub extensions: u64,
    /// How many ack ids were answered with success although they no longer meant anything.
    pub ignored: u64,
    /// How many ack ids an exactly-once subscription refused.
    pub refused: u64,
    /// Messages not yet acknowledged, outstanding ones included.
    pub backlog: usize,
    /// Messages under a live lease.
    pub outstanding: usize,
    /// Their encoded bytes.
    pub outstanding_bytes: usize,
    /// Pull streams that are open, by their number.
    pub streams: BTreeMap<u64, StreamRecord>,
    /// How many pull streams were ever opened.
    pub streams_opened: u64,
    /// How many entries the histories dropped.
    pub forgotten: u64,
    pub(crate) counts: BTreeMap<Arc<str>, u32>,
}

impl SubscriptionRecord {
    /// How often the message was delivered, as far as the history reaches back.
    #[must_use]
    pub fn deliveries_of(&self, message_id: &str) -> u32 {
        self.counts.get(message_id).copied().unwrap_or(0)
    }

    /// How many different messages were delivered, as far as the history reaches back.
    #[must_use]
    pub fn distinct_delivered(&self) -> usize {
        self.counts.len()
    }

    /// The ids of the messages whose acknowledgement took effect.
    #[must_use]
    pub fn acked_ids(&self) -> BTreeSet<&str> {
        self.acked
            .iter()
            .map(|settled| settled.message_id.as_ref())
            .collect()
    }

    /// The sum of the message limits the open streams were told; `None` when one has no limit.
    #[must_use]
    pub fn told_limit(&self) -> Option<u64> {
        self.streams
            .values()
            .map(|stream| stream.max_outstanding_messages)
            .sum()
    }
}

/// One delivery of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The message.
    pub message_id: Arc<str>,
    /// Its ordering key, empty without one.
    pub ordering_key: Arc<str>,
    /// The ack id of this delivery.
    pub ack_id: Arc<str>,
    /// When.
    pub at: Time,
    /// 1 for the first delivery, one more after each nack and each lapse, also where no dead-letter
    /// policy makes the service say so.
    pub attempt: u32,
    /// The pull stream; `None` by a unary pull.
    pub stream: Option<u64>,
}

/// A message whose delivery came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The message.
    pub message_id: Arc<str>,
    /// When.
    pub at: Time,
}

/// A message that was forwarded to a dead-letter topic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLettered {
    /// Its id on the subscription.
    pub message_id: Arc<str>,
    /// Its id on the dead-letter topic.
    pub forwarded_as: Arc<str>,
    /// How often it was delivered, as its attributes say.
    pub attempts: u32,
    /// When.
    pub at: Time,
}

/// An open pull stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamRecord {
    /// What the client calls itself.
    pub client_id: String,
    /// The limit on messages; `None` is without limit.
    pub max_outstanding_messages: Option<u64>,
    /// The limit on bytes; `None` is without limit.
    pub max_outstanding_bytes: Option<u64>,
    /// The lease a delivery starts with.
    pub ack_deadline: Duration,
    /// Messages out on this stream.
    pub outstanding: usize,
    /// When it was opened.
    pub opened_at: Time,
    /// How many requests came after the opening one.
    pub requests: u64,
    /// How many responses left.
    pub responses: u64,
}

impl SubscriptionRecord {
    pub(crate) fn delivered(&mut self, delivery: Delivery, history: usize) {
        self.delivered += 1;
        *self
            .counts
            .entry(Arc::clone(&delivery.message_id))
            .or_default() += 1;
        self.deliveries.push_back(delivery);
        if self.deliveries.len() > history
            && let Some(oldest) = self.deliveries.pop_front()
        {
            self.forgotten += 1;
            if let Some(count) = self.counts.get_mut(&oldest.message_id) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&oldest.message_id);
                }
            }
        }
    }

    pub(crate) fn settled(&mut self, ending: Ending, message_id: Arc<str>, at: Time, keep: usize) {
        let (list, count) = match ending {
            Ending::Acked => (&mut self.acked, &mut self.acks),
            Ending::Nacked => (&mut self.nacked, &mut self.nacks),
            Ending::Lapsed => (&mut self.lapsed, &mut self.lapses),
        };
        *count += 1;
        list.push_back(Settled { message_id, at });
        if list.len() > keep {
            list.pop_front();
            self.forgotten += 1;
        }
    }
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Acked,
    Nacked,
    Lapsed,
}

impl TopicRecord {
    pub(crate) fn published(&mut self, message: &Arc<PubsubMessage>, size: usize, keep: History) {
        self.published += 1;
        self.bytes += size;
        self.messages.push_back(Arc::clone(message));
        while self.messages.len() > keep.entries || self.bytes > keep.bytes {
            let Some(oldest) = self.messages.pop_front() else {
                break;
            };
            self.bytes = self
                .bytes
                .saturating_sub(prost::Message::encoded_len(&*oldest));
            self.forgotten += 1;
        }
    }
}

/// How much is kept for assertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct History {
    /// Entries per list. Default 1,000,000.
    pub entries: usize,
    /// Encoded bytes of published messages per topic. Default 256 MiB.
    pub bytes: usize,
}

impl History {
    /// Keeps `entries` per list and `bytes` of messages per topic.
    #[must_use]
    pub const fn new(entries: usize, bytes: usize) -> Self {
        Self { entries, bytes }
    }
}

impl Default for History {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            bytes: 256 << 20,
        }
    }
}
