//! Very many deliveries, held for long: a server that keeps their leases, in virtual time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use connector_core::{Epoch, Limits};
use gcp_wire::proto::pubsub::{AcknowledgeRequest, ModifyAckDeadlineRequest};
use prost::Message as _;

use super::{AckIds, Answer, CallId, CallMethod, Effect, Machine, MessageKey, Pulled, StreamId};
use crate::{
    handout::HandOut, machine::Restoration, message::Message, settings::Settings, stats::Stats,
};

const SECOND: Duration = Duration::from_secs(1);

/// From a request to its answer.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// Messages of one response.
const RESPONSE: u64 = 1000;

struct Scale {
    machine: Machine,
    out: HandOut,
    now: Instant,
    random: fastrand::Rng,
    stream: Option<StreamId>,
    lease: Duration,
    /// When the server takes each message back; `None` once it is acknowledged.
    ends: Vec<Option<Instant>>,
    answers: BTreeMap<(Instant, u64), CallId>,
    calls: u64,
    /// Ids in all ModifyAckDeadline requests.
    modified: usize,
    /// Leases that were over when the server was asked to extend or acknowledge.
    late: usize,
}

impl Scale {
    fn new(settings: Settings) -> Self {
        let now = crate::driver::now();
        let mut scale = Self {
            machine: Machine::new(
                now,
                "projects/demo-project/subscriptions/s11".parse().unwrap(),
                "a-source".into(),
                settings,
                Restoration::default(),
            ),
            out: HandOut::default(),
            now,
            random: fastrand::Rng::with_seed(11),
            stream: None,
            lease: Duration::ZERO,
            ends: Vec::new(),
            answers: BTreeMap::new(),
            calls: 0,
            modified: 0,
            late: 0,
        };
        scale.machine.start(now);
        scale.work();
        scale
    }

    /// Delivers so many messages and hands them out.
    fn deliver(&mut self, count: u64) {
        let first = self.ends.len() as u64;
        for from in (first..first + count).step_by(usize::try_from(RESPONSE).unwrap()) {
            let mut ack_ids = AckIds::default();
            let (mut keys, mut messages) = (Vec::new(), Vec::new());
            for number in from..(from + RESPONSE).min(first + count) {
                assert!(ack_ids.push(number.to_string().as_bytes()));
                keys.push(MessageKey::Number(number));
                messages.push(Message::fake(number, 10));
                self.ends.push(Some(self.now + self.lease));
            }
            let pulled = Pulled {
                messages,
                keys,
                ack_ids,
                bytes: 0,
                leased_since: self.now,
                exactly_once: None,
                ordered: None,
            };
            let stream = self.stream.expect("a stream is open");
            let random = self.random.f64();
            self.machine
                .handle_response(self.now, random, stream, pulled);
            while self.out.fill(&mut self.machine, self.now) {
                while self.out.pop(self.now, self.machine.revoked()).is_ok() {}
            }
        }
        self.out.report(&mut self.machine, self.now);
        self.work();
    }

    fn work(&mut self) {
        while let Some(effect) = self.machine.poll_effect(self.now) {
            match effect {
                Effect::Open {
                    stream,
                    lease_seconds,
                    ..
                } => {
                    self.stream = Some(stream);
                    self.lease = SECOND * lease_seconds;
                    self.machine.handle_opened(self.now, stream);
                }
                Effect::ChangeLease { lease_seconds, .. } => self.lease = SECOND * lease_seconds,
                Effect::Call { call, method, body } => {
                    self.serve(method, &body);
                    self.calls += 1;
                    self.answers
                        .insert((self.now + ROUND_TRIP, self.calls), call);
                }
                Effect::Ping { .. }
                | Effect::HalfClose { .. }
                | Effect::GiveUp { .. }
                | Effect::Drop { .. }
                | Effect::Committed { .. }
                | Effect::Unconfirmed { .. }
                | Effect::Restored { .. }
                | Effect::Settled { .. }
                | Effect::Tell(_) => {}
            }
        }
    }

    fn serve(&mut self, method: CallMethod, body: &[u8]) {
        let (ack_ids, until) = match method {
            CallMethod::Acknowledge => (AcknowledgeRequest::decode(body).unwrap().ack_ids, None),
            CallMethod::ModifyAckDeadline => {
                let request = ModifyAckDeadlineRequest::decode(body).unwrap();
                self.modified += request.ack_ids.len();
                let seconds = u32::try_from(request.ack_deadline_seconds).unwrap();
                (request.ack_ids, Some(self.now + SECOND * seconds))
            }
        };
        for ack_id in ack_ids {
            let end = &mut self.ends[ack_id.parse::<usize>().unwrap()];
            if end.is_none_or(|end| end <= self.now) {
                self.late += 1;
            }
            *end = until;
        }
    }

    /// Lets time pass.
    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let answer = self.answers.first_key_value().map(|((at, _), _)| *at);
            let due = [answer, self.machine.poll_timeout()];
            let next = due.into_iter().flatten().min();
            let next = next.unwrap_or(until).max(self.now);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if answer.is_some_and(|at| at <= next)
                && let Some((_, call)) = self.answers.pop_first()
            {
                let random = self.random.f64();
                self.machine
                    .handle_answer(self.now, random, call, Answer::Done);
            }
            if self.machine.poll_timeout().is_some_and(|due| due <= next) {
                self.machine.handle_timeout(next);
            }
            self.work();
        }
    }

    fn stats(&self) -> Stats {
        self.machine.stats(self.now)
    }
}

fn settings(outstanding: usize) -> Settings {
    Settings {
        outstanding,
        first_outstanding: outstanding,
        buffer: Limits::items(10_000),
        stall_after: Duration::ZERO,
        unreachable_after: None,
        ..Settings::default()
    }
}

#[test]
fn of_400_000_deliveries_held_for_ten_minutes_none_lapses() {
    const HELD: u64 = 400_000;
    let mut scale = Scale::new(settings(400_000));
    // As fast as a source receives: the leases begin within 4 s.
    for _ in 0..40 {
        scale.deliver(HELD / 40);
        scale.wait(SECOND / 10);
    }
    scale.wait(SECOND * 600);
    let stats = scale.stats();
    assert_eq!(
        (stats.lapsed, stats.lapsed_in_buffer, scale.late),
        (0, 0, 0)
    );
    assert_eq!(stats.leased as u64, HELD);
    let now = scale.now;
    assert!(
        scale
            .ends
            .iter()
            .all(|end| end.is_some_and(|end| end > now))
    );
    // Leases of 60 s, extended when 10 to 16 s of them are left.
    let each = scale.modified as f64 / HELD as f64;
    println!(
        "{} ids in ModifyAckDeadline requests, {each:.1} for each delivery",
        scale.modified
    );
    assert!((12.0..=14.0).contains(&each), "{each}");
}

#[test]
fn at_a_steady_cadence_of_ten_seconds_fewer_than_one_in_twenty_is_extended() {
    const EPOCH: u64 = 10_000;
    const EPOCHS: u64 = 20;
    let mut scale = Scale::new(settings(400_000));
    for epoch in 1..=EPOCHS {
        for _ in 0..10 {
            scale.deliver(EPOCH / 10);
            scale.wait(SECOND);
        }
        let now = scale.now;
        scale.machine.snapshot(now, Epoch::new(epoch)).unwrap();
        scale.machine.commit(now, Epoch::new(epoch)).unwrap();
        scale.work();
    }
    scale.wait(SECOND);
    let stats = scale.stats();
    assert_eq!(stats.acknowledged, EPOCH * EPOCHS);
    assert_eq!((stats.lapsed, scale.late), (0, 0));
    let each = scale.modified as f64 / (EPOCH * EPOCHS) as f64;
    println!(
        "{} ids in ModifyAckDeadline requests, {each:.4} for each delivery",
        scale.modified
    );
    assert!(each < 0.05, "{each}");
}
