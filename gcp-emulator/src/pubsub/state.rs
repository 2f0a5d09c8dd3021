//! Pub/Sub as a pure state machine: no clock, no tasks, no randomness.
//!
//! [`PubsubState`] is told what time it is with every call and answers what the service would. The
//! shell around it serves the answers over gRPC; a simulation can drive it directly:
//!
//! ```
//! use std::time::Duration;
//!
//! use gcp_emulator::Time;
//! use gcp_emulator::pubsub::proto::{PubsubMessage, StreamingPullRequest, Subscription, Topic};
//! use gcp_emulator::pubsub::state::{PubsubState, Settings, StreamPoll};
//!
//! # fn main() -> Result<(), gcp_emulator::pubsub::state::Refusal> {
//! let mut state = PubsubState::new(Settings::default());
//! let start = Time::from_unix(Duration::from_secs(1_800_000_000));
//! let (topic, subscription) = ("projects/p/topics/orders", "projects/p/subscriptions/orders");
//! state.create_topic(start, Topic { name: topic.into(), ..Default::default() })?;
//! let wanted = Subscription {
//!     name: subscription.into(),
//!     topic: topic.into(),
//!     ..Default::default()
//! };
//! state.create_subscription(start, wanted)?;
//! state.publish(start, topic, vec![PubsubMessage { data: "1".into(), ..Default::default() }])?;
//!
//! let first = StreamingPullRequest {
//!     subscription: subscription.into(),
//!     stream_ack_deadline_seconds: 10,
//!     ..Default::default()
//! };
//! let stream = state.open_stream(start, &first)?;
//! let StreamPoll::Response(response) = state.poll_stream(start, stream) else { panic!() };
//! assert_eq!(response.received_messages.len(), 1);
//!
//! // Nobody acknowledges: the message comes again when its lease ends.
//! let lapse = state.poll_timeout().unwrap();
//! assert_eq!(lapse.since(start), Duration::from_secs(10));
//! state.handle_timeout(lapse);
//! let StreamPoll::Response(response) = state.poll_stream(lapse, stream) else { panic!() };
//! assert_eq!(response.received_messages.len(), 1);
//! # Ok(())
//! # }
//! ```

mod ack_id;
mod acknowledge;
mod backlog;
mod config;
mod dead_letter;
mod filter;
mod message;
mod name;
mod ordering;
mod publish;
mod record;
mod refusal;
mod retry;
mod seek;
mod settings;
mod snapshot;
mod stream;
mod streaming;
mod subscription;
mod subscriptions;
mod topic;
mod topics;

pub use record::{
    DeadLettered, Delivery, History, Record, Settled, StreamRecord, SubscriptionRecord, TopicRecord,
};
pub use refusal::{AckFailure, Refusal};
pub use settings::{LateAcks, OnStreamClose, Settings};
pub use stream::StreamId;
pub use streaming::StreamPoll;

use std::collections::{BTreeMap, BTreeSet};

use crate::time::Time;
use snapshot::Snapshot;
use subscription::{Subscription, Surroundings};
use topic::Topic;

/// The topics, subscriptions and messages of a Pub/Sub server.
///
/// Every method that takes `now` lets time pass up to it only for what it touches; what becomes due
/// by itself (lapsing leases, retry pauses, retention, expiry) happens in
/// [`handle_timeout`](Self::handle_timeout), which the driver calls when
/// [`poll_timeout`](Self::poll_timeout) says so, before anything else that happens at that time.
#[derive(Debug)]
pub struct PubsubState {
    settings: Settings,
    latest: Time,
    topics: BTreeMap<String, Topic>,
    subscriptions: BTreeMap<String, Subscription>,
    numbers: BTreeMap<u32, String>,
    snapshots: BTreeMap<String, Snapshot>,
    streams: BTreeMap<StreamId, String>,
    timers: BTreeSet<(Time, u32)>,
    timer_of: BTreeMap<u32, Time>,
    woken: BTreeSet<StreamId>,
    next_seq: u64,
    next_lease: u64,
    next_stream: u64,
    next_pull: u64,
    next_number: u32,
    record: Record,
}

impl PubsubState {
    /// An empty server.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            latest: Time::UNIX_EPOCH,
            topics: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            streams: BTreeMap::new(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
            woken: BTreeSet::new(),
            next_seq: 0,
            next_lease: 0,
            next_stream: 0,
            next_pull: 0,
            next_number: 0,
            record: Record::default(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The next time at which something happens by itself.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Lets everything happen that is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.clock(now);
        while let Some((at, number)) = self.timers.first().copied()
            && at <= now
        {
            let Some(name) = self.numbers.get(&number).cloned() else {
                self.timers.pop_first();
                continue;
            };
            let expired = self.visit(now, &name, |subscription, around| {
                subscription.handle_timeout(around)
            });
            if expired == Some(true) {
                self.remove_subscription(&name);
            }
        }
    }

    /// The open pull streams that have something to send since they last had nothing, in order.
    /// Each is named once; its next poll may still find nothing.
    pub fn take_woken(&mut self) -> BTreeSet<StreamId> {
        std::mem::take(&mut self.woken)
    }

    /// Time as the machine knows it: never behind what it was told before.
    fn clock(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Does something with a subscription on a client's behalf, which keeps it from expiring.
    fn on<R>(
        &mut self,
        now: Time,
        subscription: &str,
        act: impl FnOnce(&mut Subscription, &mut Surroundings<'_>) -> R,
    ) -> Result<R, Refusal> {
        name::check(name::Kind::Subscription, subscription)?;
        self.visit(now, subscription, |subscription, around| {
            subscription.active_at = around.now;
            act(subscription, around)
        })
        .ok_or_else(|| Refusal::Missing {
            id: name::id(subscription),
        })
    }

    /// Does something with a subscription and brings everything that depends on it up to date.
    fn visit<R>(
        &mut self,
        now: Time,
        name: &str,
        act: impl FnOnce(&mut Subscription, &mut Surroundings<'_>) -> R,
    ) -> Option<R> {
        let subscription = self.subscriptions.get_mut(name)?;
        let dead_letter_topic = subscription
            .config
            .dead_letter_policy
            .as_ref()
            .map(|policy| policy.dead_letter_topic.clone());
        let dead_letters = dead_letter_topic
            .as_ref()
            .is_some_and(|topic| self.topics.contains_key(topic));
        let mut around = Surroundings {
            now,
            settings: &self.settings,
            record: self.record.subscription(name),
            next_lease: &mut self.next_lease,
            woken: &mut self.woken,
            dead_letters,
            forwards: Vec::new(),
        };
        let result = act(subscription, &mut around);
        let forwards = around.forwards;
        self.refresh(name);
        if let Some(topic) = dead_letter_topic {
            for forward in forwards {
                self.forward(now, name, &topic, &forward);
            }
        }
        Some(result)
    }

    /// Brings timers, gauges and wake-ups of a subscription up to date with it.
    fn refresh(&mut self, name: &str) {
        let Some(subscription) = self.subscriptions.get(name) else {
            return;
        };
        let record = self.record.subscription(name);
        record.backlog = subscription.backlog.unacked();
        (record.outstanding, record.outstanding_bytes) = subscription.backlog.outstanding();
        record.streams = subscription
            .streams
            .iter()
            .map(|(number, s)| (*number, s.record()))
            .collect();
        subscription.wake(&mut self.woken);
        let number = subscription.number;
        let due = subscription.next_due(&self.settings);
        self.arm(number, due);
    }

    fn arm(&mut self, number: u32, due: Option<Time>) {
        let before = match due {
            Some(due) => self.timer_of.insert(number, due),
            None => self.timer_of.remove(&number),
        };
        if before != due {
            if let Some(before) = before {
                self.timers.remove(&(before, number));
            }
            if let Some(due) = due {
                self.timers.insert((due, number));
            }
        }
    }

    /// Panics when the parts of the machine contradict each other. For tests, after every step.
    ///
    /// # Panics
    ///
    /// When an invariant is broken: a bug of this crate.
    pub fn check_invariants(&self) {
        for (name, subscription) in &self.subscriptions {
            subscription.check_invariants();
            assert_eq!(self.numbers.get(&subscription.number), Some(name));
            // The other way round a stream outlives its subscription until its client was told.
            for stream in subscription.streams.keys() {
                assert_eq!(
                    self.streams.get(&StreamId(*stream)),
                    Some(name),
                    "stream {stream}"
                );
            }
            let due = subscription.next_due(&self.settings);
            assert_eq!(
                self.timer_of.get(&subscription.number).copied(),
                due,
                "timer of {name}"
            );
            let topic = self.topics.get(&subscription.config.topic);
            let attached = topic.is_some_and(|topic| topic.subscriptions.contains(name));
            assert_eq!(
                attached,
                topic.is_some() && !subscription.config.detached,
                "{name}"
            );
        }
        let timers: BTreeSet<_> = self
            .timer_of
            .iter()
            .map(|(number, at)| (*at, *number))
            .collect();
        assert_eq!(timers, self.timers, "timers");
    }
}
