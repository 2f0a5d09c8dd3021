//! What the machine does with single deliveries, step by step.

mod answers;
mod extending;
mod holding;
mod ordering;
mod requests;
mod restoring;
mod turns;

use std::time::{Duration, Instant};

use connector_core::Epoch;
use gcp_wire::proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
use prost::Message as _;

use super::{
    AckIds, Answer, CallId, CallMethod, Effect, Machine, MessageKey, Notice, Pulled, Restoration,
    StreamEnd, StreamId,
};
use crate::{handout::HandOut, message::Message, settings::Settings, state::SourceState};

const SECOND: Duration = Duration::from_secs(1);

/// A request that waits for its answer.
struct Sent {
    call: CallId,
    method: CallMethod,
    ack_ids: Vec<String>,
    /// Of a ModifyAckDeadline.
    seconds: i32,
}

/// A machine with one open stream, the handle's queue, and a server that answers when it is told to.
struct Bench {
    machine: Machine,
    out: HandOut,
    now: Instant,
    stream: Option<StreamId>,
    sent: Vec<Sent>,
    exactly_once: bool,
    /// When what is delivered was published.
    published: i64,
    /// What the next response says of the order of keys.
    ordered: Option<bool>,
    told: Vec<Notice>,
    /// What became of deliveries that the host settled, and of how many it lapsed.
    settled: Vec<(usize, usize)>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        Self::restored(settings, Restoration::default())
    }

    fn restored(settings: Settings, restoration: Restoration) -> Self {
        let now = crate::driver::now();
        let subscription = "projects/demo-project/subscriptions/s11".parse().unwrap();
        let machine = Machine::new(now, subscription, "a-source".into(), settings, restoration);
        let mut bench = Self {
            machine,
            out: HandOut::default(),
            now,
            stream: None,
            sent: Vec::new(),
            exactly_once: false,
            published: 0,
            ordered: None,
            told: Vec::new(),
            settled: Vec::new(),
        };
        bench.machine.start(now);
        bench.work();
        bench
    }

    /// Does what the machine wants done, but answers no request. What is half-closed ends at once.
    fn work(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.now) {
            match effect {
                Effect::Open { stream, .. } => {
                    self.machine.handle_opened(self.now, stream);
                    self.stream = Some(stream);
                }
                Effect::Call { call, method, body } => self.sent.push(sent(call, method, &body)),
                Effect::HalfClose { stream } => {
                    let end = StreamEnd::Again;
                    self.machine
                        .handle_stream_ended(self.now, 0.0, stream, end, None);
                }
                Effect::Ping { .. }
                | Effect::ChangeLease { .. }
                | Effect::GiveUp { .. }
                | Effect::Drop { .. }
                | Effect::Committed { .. }
                | Effect::Unconfirmed { .. }
                | Effect::Restored { .. } => {}
                Effect::Settled { committed, .. } => {
                    self.settled.push((committed.settled, committed.lapsed));
                }
                Effect::Tell(notice) => self.told.push(notice),
            }
            self.machine.check_invariants();
        }
    }

    /// Delivers messages in one response, each under its ack id; of one ordering key, if there is
    /// one.
    fn deliver(&mut self, key: &str, messages: &[(u64, &str)]) {
        let mut ack_ids = AckIds::default();
        for (_, ack_id) in messages {
            assert!(ack_ids.push(ack_id.as_bytes()));
        }
        let numbers = messages.iter().map(|(number, _)| *number);
        let message = |number| {
            let mut message = Message::fake(number, 10);
            message.published = self.published;
            message.ordering_key = key.into();
            message
        };
        let pulled = Pulled {
            messages: numbers.clone().map(message).collect(),
            keys: numbers.map(MessageKey::Number).collect(),
            ack_ids,
            bytes: 0,
            leased_since: self.now,
            exactly_once: Some(self.exactly_once),
            ordered: self.ordered,
        };
        let stream = self.stream.expect("a stream is open");
        self.machine.handle_response(self.now, 0.0, stream, pulled);
        self.machine.check_invariants();
        self.work();
    }

    /// The handle takes the next response.
    fn take(&mut self) -> bool {
        let taken = self.out.fill(&mut self.machine, self.now);
        self.machine.check_invariants();
        taken
    }

    /// Everything that can be handed out is.
    fn read(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        loop {
            self.out.refresh(&mut self.machine, self.now);
            if !self.take() {
                break;
            }
            while let Ok(message) = self.out.pop(self.now, self.machine.revoked()) {
                numbers.push(message.id().parse().unwrap());
            }
        }
        self.out.report(&mut self.machine, self.now);
        self.machine.check_invariants();
        self.work();
        numbers
    }

    fn seal(&mut self, epoch: u64) -> SourceState {
        self.out.report(&mut self.machine, self.now);
        self.machine.snapshot(self.now, Epoch::new(epoch)).unwrap()
    }

    /// Time passes, and what is due is done; answers come where they are given.
    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let due = self.machine.poll_timeout().filter(|due| *due <= until);
            let Some(due) = due else {
                self.now = until;
                return;
            };
            self.now = due.max(self.now);
            self.machine.handle_timeout(self.now);
            self.machine.check_invariants();
            self.work();
        }
    }

    /// Answers one request.
    fn answer(&mut self, sent: &Sent, answer: Answer) {
        self.machine.handle_answer(self.now, 0.0, sent.call, answer);
        self.machine.check_invariants();
        self.work();
    }

    /// Answers every request that was sent with OK, and says which those were.
    fn answer_all(&mut self) -> Vec<Sent> {
        let mut answered = Vec::new();
        while !self.sent.is_empty() {
            let sent = self.sent.remove(0);
            self.answer(&sent, Answer::Done);
            answered.push(sent);
        }
        answered
    }

    /// The ack ids of the requests to acknowledge that wait for their answer.
    fn acknowledging(&self) -> Vec<&str> {
        let acks = self
            .sent
            .iter()
            .filter(|sent| sent.method == CallMethod::Acknowledge);
        acks.flat_map(|sent| sent.ack_ids.iter().map(String::as_str))
            .collect()
    }
}

fn sent(call: CallId, method: CallMethod, body: &[u8]) -> Sent {
    let (ack_ids, seconds) = match method {
        CallMethod::Acknowledge => (AcknowledgeRequest::decode(body).unwrap().ack_ids, 0),
        CallMethod::ModifyAckDeadline => {
            let request = ModifyAckDeadlineRequest::decode(body).unwrap();
            (request.ack_ids, request.ack_deadline_seconds)
        }
    };
    Sent {
        call,
        method,
        ack_ids,
        seconds,
    }
}

/// Settings of a source that never is called stalled.
fn settings() -> Settings {
    Settings {
        stall_after: Duration::ZERO,
        ..Settings::default()
    }
}
