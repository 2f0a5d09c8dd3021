//! The server's side, and the lines to it.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use gcp_emulator::{
    Time,
    pubsub::{
        proto::{
            AcknowledgeRequest, DeadLetterPolicy, ModifyAckDeadlineRequest, PubsubMessage,
            StreamingPullRequest, StreamingPullResponse, Subscription, Topic,
            UpdateSubscriptionRequest,
        },
        state::{
            LateAcks, OnStreamClose, PubsubState, Refusal, Settings, StreamId as ServerStream,
            StreamPoll, SubscriptionRecord,
        },
    },
};
use prost::Message as _;

use super::chance::Chance;
use crate::machine::{Answer, CallMethod, IdVerdict, StreamId};

pub(super) const TOPIC: &str = "projects/demo-project/topics/t11";
const DEAD: &str = "projects/demo-project/topics/dead";
pub(super) const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/s11";

/// Responses that a client may leave unread before the windows on the way are full.
const WINDOW: usize = 3;

/// One stream of one incarnation of the client.
pub(super) type Line = (u32, StreamId);

struct Open {
    stream: ServerStream,
    unread: usize,
}

/// What leaves the server on a line.
pub(super) enum Sent {
    Response(Box<StreamingPullResponse>),
    End,
}

pub(super) struct Server {
    state: PubsubState,
    settings: Settings,
    exactly_once: bool,
    ordered: bool,
    /// Whether a message that failed five times goes to another topic.
    dead_letters: bool,
    epoch: Duration,
    lines: BTreeMap<Line, Open>,
    /// The number that each message of this generation was published with.
    numbers: BTreeMap<String, u64>,
    acked_read: usize,
    lapsed_read: usize,
}

impl Server {
    pub(super) fn new(chance: &mut Chance, ordered: bool) -> Self {
        let mut settings = Settings::default();
        settings.ack_id_length = 40;
        settings.response_messages = chance.pick(&[1, 3, 10, 100]);
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
        let exactly_once = chance.one_in(4);
        if exactly_once {
            chance.count("exactly-once delivery");
        }
        let mut server = Self {
            state: PubsubState::new(settings.clone()),
            settings,
            exactly_once,
            ordered,
            dead_letters: !chance.is_quiet() && chance.one_in(4),
            epoch: Duration::from_secs(1_800_000_000),
            lines: BTreeMap::new(),
            numbers: BTreeMap::new(),
            acked_read: 0,
            lapsed_read: 0,
        };
        server.create(Duration::ZERO);
        server
    }

    fn create(&mut self, now: Duration) {
        let at = self.time(now);
        let topic = Topic {
            name: TOPIC.to_owned(),
            ..Topic::default()
        };
        let subscription = Subscription {
            name: SUBSCRIPTION.to_owned(),
            topic: TOPIC.to_owned(),
            enable_exactly_once_delivery: self.exactly_once,
            enable_message_ordering: self.ordered,
            dead_letter_policy: self.dead_letters.then(|| DeadLetterPolicy {
                dead_letter_topic: DEAD.to_owned(),
                max_delivery_attempts: 5,
            }),
            ..Subscription::default()
        };
        self.state.create_topic(at, topic).unwrap();
        let dead = Topic {
            name: DEAD.to_owned(),
            ..Topic::default()
        };
        self.state.create_topic(at, dead).unwrap();
        self.state.create_subscription(at, subscription).unwrap();
    }

    /// Forgets everything and starts to count ids from the beginning, as Google's emulator does.
    pub(super) fn start_again(&mut self, now: Duration) {
        self.state = PubsubState::new(self.settings.clone());
        self.lines.clear();
        self.numbers.clear();
        self.acked_read = 0;
        self.lapsed_read = 0;
        self.create(now);
    }

    /// Switches exactly-once delivery on or off. Open streams say so with their next response.
    pub(super) fn switch_exactly_once(&mut self, now: Duration) {
        self.exactly_once = !self.exactly_once;
        let request = UpdateSubscriptionRequest {
            subscription: Some(Subscription {
                name: SUBSCRIPTION.to_owned(),
                enable_exactly_once_delivery: self.exactly_once,
                ..Subscription::default()
            }),
            update_mask: Some(gcp_wire::proto::FieldMask {
                paths: vec!["enable_exactly_once_delivery".to_owned()],
            }),
        };
        let at = self.time(now);
        self.state.update_subscription(at, request).unwrap();
    }

    pub(super) fn is_exactly_once(&self) -> bool {
        self.exactly_once
    }

    fn time(&self, now: Duration) -> Time {
        Time::from_unix(self.epoch + now)
    }

    /// Publishes numbers, each with its key; a request has one key at most.
    pub(super) fn publish(&mut self, now: Duration, numbers: &[(u64, &str)]) {
        for request in numbers.chunk_by(|one, other| one.1 == other.1) {
            let messages = request.iter().map(|(number, key)| PubsubMessage {
                data: number.to_string().into(),
                ordering_key: (*key).to_owned(),
                ..PubsubMessage::default()
            });
            let ids = self
                .state
                .publish(self.time(now), TOPIC, messages.collect())
                .unwrap();
            self.numbers
                .extend(ids.into_iter().zip(request.iter().map(|one| one.0)));
        }
    }

    pub(super) fn open(&mut self, now: Duration, line: Line, first: &StreamingPullRequest) {
        let stream = self.state.open_stream(self.time(now), first).unwrap();
        self.lines.insert(line, Open { stream, unread: 0 });
    }

    pub(super) fn request(&mut self, now: Duration, line: Line, request: &StreamingPullRequest) {
        let at = self.time(now);
        if let Some(open) = self.lines.get(&line) {
            self.state
                .handle_stream_request(at, open.stream, request)
                .expect("later requests are empty or change the lease");
        }
    }

    pub(super) fn half_close(&mut self, now: Duration, line: Line) {
        let at = self.time(now);
        if let Some(open) = self.lines.get(&line) {
            self.state.handle_half_close(at, open.stream);
        }
    }

    /// The client's end of a line is gone.
    pub(super) fn hang_up(&mut self, now: Duration, line: Line) {
        let at = self.time(now);
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
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Duration) {
        let at = self.time(now);
        self.state.handle_timeout(at);
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let due = self.state.poll_timeout()?;
        Some(due.as_unix().saturating_sub(self.epoch))
    }

    /// The next thing that leaves on any line.
    pub(super) fn poll(&mut self, now: Duration) -> Option<(Line, Sent)> {
        let at = self.time(now);
        let lines = self.lines();
        for line in lines {
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
        None
    }

    /// Evaluates a call.
    pub(super) fn call(&mut self, now: Duration, method: CallMethod, body: Bytes) -> Answer {
        let at = self.time(now);
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
            // Ids of a generation of the server that is gone.
            Err(Refusal::AckId { .. }) => Answer::Refused,
            Err(other) => panic!("the server refused a request: {other}"),
        }
    }

    pub(super) fn redeliver_early(&mut self, now: Duration, number: u64) -> bool {
        let at = self.time(now);
        let id = self.numbers.iter().find(|(_, n)| **n == number);
        let Some(id) = id.map(|(id, _)| id.clone()) else {
            return false;
        };
        self.state.handle_early_redelivery(at, SUBSCRIPTION, &id)
    }

    /// Another subscriber takes messages. Answers their ack ids.
    pub(super) fn pull(&mut self, now: Duration, most: i32) -> Vec<String> {
        let at = self.time(now);
        let pulled = self.state.pull(at, SUBSCRIPTION, most).unwrap();
        pulled.into_iter().map(|one| one.ack_id).collect()
    }

    /// The other subscriber acknowledges what it took, or gives it back.
    pub(super) fn settle_other(&mut self, now: Duration, ack_ids: &[String], done: bool) {
        let at = self.time(now);
        // What it lost meanwhile is not its business any more.
        drop(if done {
            self.state.acknowledge(at, SUBSCRIPTION, ack_ids)
        } else {
            self.state.modify_ack_deadline(at, SUBSCRIPTION, ack_ids, 0)
        });
    }

    pub(super) fn has_dead_letters(&self) -> bool {
        self.dead_letters
    }

    /// The numbers that went to the topic of dead letters.
    pub(super) fn dead(&self) -> Vec<u64> {
        let dead = self.record().dead_lettered.iter();
        dead.filter_map(|one| self.number(&one.message_id))
            .collect()
    }

    fn record(&self) -> &SubscriptionRecord {
        &self.state.record().subscriptions[SUBSCRIPTION]
    }

    pub(super) fn number(&self, message_id: &str) -> Option<u64> {
        self.numbers.get(message_id).copied()
    }

    /// The numbers of the messages that ack ids stand for.
    pub(super) fn numbers_of(&self, ack_ids: &[String]) -> Vec<u64> {
        let deliveries = &self.record().deliveries;
        let number = |ack_id: &String| {
            let delivery = deliveries
                .iter()
                .rev()
                .find(|one| *one.ack_id == **ack_id)?;
            self.number(&delivery.message_id)
        };
        ack_ids.iter().filter_map(number).collect()
    }

    /// The first ack id under which the message of an ack id was ever delivered.
    pub(super) fn first_ack_id(&self, ack_id: &str) -> String {
        let deliveries = &self.record().deliveries;
        let message = deliveries.iter().find(|one| *one.ack_id == *ack_id);
        let first = message.and_then(|message| {
            deliveries
                .iter()
                .find(|one| one.message_id == message.message_id)
        });
        first.map_or_else(|| ack_id.to_owned(), |one| one.ack_id.to_string())
    }

    /// The numbers whose acknowledgement took effect since the last call.
    pub(super) fn take_acked(&mut self) -> Vec<u64> {
        let acked = &self.record().acked;
        let fresh: Vec<u64> = acked
            .iter()
            .skip(self.acked_read)
            .filter_map(|settled| self.number(&settled.message_id))
            .collect();
        self.acked_read = self.record().acked.len();
        fresh
    }

    /// The number of leases that ended since the last call.
    pub(super) fn take_lapses(&mut self) -> usize {
        let count = self.record().lapsed.len();
        count - std::mem::replace(&mut self.lapsed_read, count)
    }

    pub(super) fn backlog(&self) -> usize {
        self.record().backlog
    }
}
