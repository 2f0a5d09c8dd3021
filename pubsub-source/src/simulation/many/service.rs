//! The server's side: several subscriptions of one topic, and the lines to them.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use gcp_emulator::{
    Time,
    pubsub::{
        proto::{
            AcknowledgeRequest, ModifyAckDeadlineRequest, PubsubMessage, StreamingPullRequest,
            StreamingPullResponse, Subscription, Topic,
        },
        state::{
            LateAcks, OnStreamClose, PubsubState, Refusal, Settings, StreamId as ServerStream,
            StreamPoll, SubscriptionRecord,
        },
    },
};
use prost::Message as _;

use super::{
    chance::Chance,
    event::{Delivered, Line},
};
use crate::machine::{Answer, CallMethod, IdVerdict};

const TOPIC: &str = "projects/demo-project/topics/t11";

/// Responses that a client may leave unread before the windows on the way are full.
const WINDOW: usize = 3;

struct Open {
    stream: ServerStream,
    unread: usize,
}

/// What leaves the server on a line.
pub(super) enum Sent {
    Response(Box<StreamingPullResponse>),
    End,
}

pub(super) struct Service {
    state: PubsubState,
    epoch: Duration,
    lines: BTreeMap<Line, Open>,
    subscriptions: Vec<String>,
    /// The number of each message: one id has the same on every subscription.
    numbers: BTreeMap<String, u64>,
    acked_read: Vec<usize>,
    lapsed_read: Vec<usize>,
    pub(super) response_messages: usize,
    /// Something happened to it, so that something may leave.
    stirred: bool,
}

impl Service {
    pub(super) fn new(chance: &mut Chance, subscriptions: Vec<String>) -> Self {
        let mut settings = Settings::default();
        settings.ack_id_length = 40;
        settings.response_messages = chance.pick(&[1, 3, 3, 10]);
        settings.late_acks = chance.pick(&[
            LateAcks::UntilRedelivered,
            LateAcks::Never,
            LateAcks::Always,
        ]);
        if !chance.is_quiet() {
            settings.on_stream_close = chance.pick(&[
                OnStreamClose::WaitForDeadline,
                OnStreamClose::RedeliverAtOnce,
            ]);
        }
        let exactly_once = chance.one_in(5);
        if exactly_once {
            chance.count("exactly-once delivery");
        }
        let response_messages = settings.response_messages;
        let epoch = Duration::from_secs(1_800_000_000);
        let at = Time::from_unix(epoch);
        let mut state = PubsubState::new(settings);
        let topic = Topic {
            name: TOPIC.to_owned(),
            ..Topic::default()
        };
        state.create_topic(at, topic).unwrap();
        for name in &subscriptions {
            let subscription = Subscription {
                name: name.clone(),
                topic: TOPIC.to_owned(),
                enable_exactly_once_delivery: exactly_once,
                ..Subscription::default()
            };
            state.create_subscription(at, subscription).unwrap();
        }
        Self {
            state,
            epoch,
            lines: BTreeMap::new(),
            numbers: BTreeMap::new(),
            acked_read: vec![0; subscriptions.len()],
            lapsed_read: vec![0; subscriptions.len()],
            subscriptions,
            response_messages,
            stirred: true,
        }
    }

    fn time(&self, now: Duration) -> Time {
        Time::from_unix(self.epoch + now)
    }

    /// The time of something that happens to it.
    fn stir(&mut self, now: Duration) -> Time {
        self.stirred = true;
        self.time(now)
    }

    /// Publishes numbers, to every subscription.
    pub(super) fn publish(&mut self, now: Duration, numbers: &[u64]) {
        let at = self.stir(now);
        let messages = numbers.iter().map(|number| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        });
        let ids = self.state.publish(at, TOPIC, messages.collect()).unwrap();
        self.numbers
            .extend(ids.into_iter().zip(numbers.iter().copied()));
    }

    pub(super) fn open(&mut self, now: Duration, line: Line, first: &StreamingPullRequest) {
        let at = self.stir(now);
        let stream = self.state.open_stream(at, first).unwrap();
        self.lines.insert(line, Open { stream, unread: 0 });
    }

    pub(super) fn request(&mut self, now: Duration, line: Line, request: &StreamingPullRequest) {
        let at = self.stir(now);
        if let Some(open) = self.lines.get(&line) {
            self.state
                .handle_stream_request(at, open.stream, request)
                .expect("later requests are empty or change the lease");
        }
    }

    pub(super) fn half_close(&mut self, now: Duration, line: Line) {
        let at = self.stir(now);
        if let Some(open) = self.lines.get(&line) {
            self.state.handle_half_close(at, open.stream);
        }
    }

    /// The client's end of a line is gone.
    pub(super) fn hang_up(&mut self, now: Duration, line: Line) {
        let at = self.stir(now);
        if let Some(open) = self.lines.remove(&line) {
            self.state.close_stream(at, open.stream);
        }
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        self.lines.keys().copied().collect()
    }

    /// The client read a response.
    pub(super) fn credit(&mut self, line: Line) {
        if let Some(open) = self.lines.get_mut(&line) {
            open.unread = open.unread.saturating_sub(1);
            self.stirred = true;
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Duration) {
        let at = self.stir(now);
        self.state.handle_timeout(at);
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let due = self.state.poll_timeout()?;
        Some(due.as_unix().saturating_sub(self.epoch))
    }

    /// The next thing that leaves on any line.
    pub(super) fn poll(&mut self, now: Duration) -> Option<(Line, Sent)> {
        if !self.stirred {
            return None;
        }
        let at = self.time(now);
        for line in self.lines() {
            let open = self.lines.get_mut(&line).unwrap();
            if open.unread >= WINDOW {
                continue;
            }
            match self.state.poll_stream(at, open.stream) {
                StreamPoll::Response(response) => {
                    open.unread += 1;
                    return Some((line, Sent::Response(response)));
                }
                StreamPoll::End(_) => {
                    self.hang_up(now, line);
                    return Some((line, Sent::End));
                }
                StreamPoll::Idle => {}
                other => panic!("the server learnt to answer {other:?}"),
            }
        }
        self.stirred = false;
        None
    }

    /// Evaluates a call.
    pub(super) fn call(&mut self, now: Duration, method: CallMethod, body: Bytes) -> Answer {
        let at = self.stir(now);
        let outcome = match method {
            CallMethod::Acknowledge => {
                let request = AcknowledgeRequest::decode(body).unwrap();
                self.state
                    .acknowledge(at, &request.subscription, &request.ack_ids)
            }
            CallMethod::ModifyAckDeadline => {
                let request = ModifyAckDeadlineRequest::decode(body).unwrap();
                self.state.modify_ack_deadline(
                    at,
                    &request.subscription,
                    &request.ack_ids,
                    request.ack_deadline_seconds,
                )
            }
        };
        match outcome {
            Ok(()) => Answer::Done,
            Err(Refusal::AckIds { failures }) => Answer::Mixed {
                verdicts: failures
                    .into_keys()
                    .map(|ack_id| (ack_id, IdVerdict::Worthless))
                    .collect(),
                others_done: true,
            },
            Err(other) => panic!("the server refused a request: {other}"),
        }
    }

    fn record(&self, subscription: usize) -> &SubscriptionRecord {
        &self.state.record().subscriptions[&*self.subscriptions[subscription]]
    }

    pub(super) fn number(&self, message_id: &str) -> Option<u64> {
        self.numbers.get(message_id).copied()
    }

    /// What an acknowledgement is about.
    pub(super) fn acknowledged_by(&self, subscription: usize, body: &Bytes) -> Vec<Delivered> {
        let request = AcknowledgeRequest::decode(body.clone()).unwrap();
        let deliveries = &self.record(subscription).deliveries;
        let number = |ack_id: &String| {
            let mut deliveries = deliveries.iter().rev();
            let delivery = deliveries.find(|one| *one.ack_id == **ack_id)?;
            Some((subscription, self.number(&delivery.message_id)?))
        };
        request.ack_ids.iter().filter_map(number).collect()
    }

    /// What was acknowledged with effect since it was last taken.
    pub(super) fn fresh_acked(&self) -> Vec<Delivered> {
        let mut all = Vec::new();
        for subscription in 0..self.subscriptions.len() {
            let acked = &self.record(subscription).acked;
            let fresh = acked.iter().skip(self.acked_read[subscription]);
            let fresh = fresh.filter_map(|settled| self.number(&settled.message_id));
            all.extend(fresh.map(|number| (subscription, number)));
        }
        all
    }

    pub(super) fn take_acked(&mut self) -> Vec<Delivered> {
        let fresh = self.fresh_acked();
        for subscription in 0..self.subscriptions.len() {
            self.acked_read[subscription] = self.record(subscription).acked.len();
        }
        fresh
    }

    /// The number of leases that ended since the last call.
    pub(super) fn take_lapses(&mut self) -> u64 {
        let mut all = 0;
        for subscription in 0..self.subscriptions.len() {
            let count = self.record(subscription).lapsed.len();
            all += count - std::mem::replace(&mut self.lapsed_read[subscription], count);
        }
        all as u64
    }

    pub(super) fn backlog(&self, subscription: usize) -> usize {
        self.record(subscription).backlog
    }
}
