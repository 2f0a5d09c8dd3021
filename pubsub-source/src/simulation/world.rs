//! Everything together, in virtual time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use gcp_emulator::pubsub::proto::{
    AcknowledgeRequest, ModifyAckDeadlineRequest, StreamingPullRequest, StreamingPullResponse,
};
use prost::Message as _;

use super::{
    Counts, Violation,
    bugs::Bug,
    chance::{Chance, Rates},
    client::{Client, Reader, strange_key, take_apart},
    server::{Line, SUBSCRIPTION, Sent, Server},
    truth::{Saved, Truth},
};
use crate::{
    machine::{
        Answer, CallId, CallMethod, Effect, MessageKey, Notice, Restoration, StreamEnd, StreamId,
    },
    settings::Settings,
};

/// The faults end at this time at the latest.
const TROUBLE: Duration = Duration::from_secs(240);

/// After the faults everything must be done within this time: several of the longest leases, and
/// the time after which held messages are given back.
const PATIENCE: Duration = Duration::from_secs(1500);

/// The driver's own time-out of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// Turns of the driver at one instant that are no loop.
const TURNS_PER_INSTANT: u32 = 10_000;

/// Something that will happen.
pub(super) enum Event {
    Host,
    Publish,
    Trouble,
    /// A request arrives at the server.
    Open(Line, Box<StreamingPullRequest>),
    Request(Line, Box<StreamingPullRequest>),
    HalfClose(Line),
    HangUp(Line),
    Call {
        incarnation: u32,
        call: CallId,
        method: CallMethod,
        body: Bytes,
        fate: Fate,
    },
    /// Something arrives at the client.
    Response(Line, Box<StreamingPullResponse>, Vec<u64>),
    End(Line),
    Answer {
        incarnation: u32,
        call: CallId,
        answer: Answer,
        /// What an acknowledgement that this answer calls done did not do.
        effectless: Vec<u64>,
    },
    Durable(u32, Box<Saved>, bool),
    Restart,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Served,
    AnswerLost,
    Unavailable,
    UnavailableAfterEffect,
    NoEffect,
}

/// A run.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) bug: Option<Bug>,
    pub(super) base: Instant,
    pub(super) now: Duration,
    pub(super) client: Option<Client>,
    pub(super) truth: Truth,
    settings: Settings,
    server: Server,
    queue: BTreeMap<(Duration, u64), Event>,
    next_event: u64,
    incarnations: u32,
    /// When the last thing sent on a line arrives: a line keeps the order.
    last_arrival: BTreeMap<Line, Duration>,
    last_answer: Duration,
    next_number: u64,
    to_publish: u64,
    generations: u32,
    turns_now: (Duration, u32),
    /// The last incarnation is being closed.
    finishing: bool,
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let mut chance = Chance::new(seed);
        let settings = chance.settings();
        let server = Server::new(&mut chance);
        if chance.quiet {
            chance.count("a quiet run");
        }
        // Any instant will do: only differences count.
        let base = crate::driver::now();
        let to_publish = chance.number(5..80);
        Self {
            chance,
            bug,
            base,
            now: Duration::ZERO,
            client: None,
            truth: Truth::default(),
            settings,
            server,
            queue: BTreeMap::new(),
            next_event: 0,
            incarnations: 0,
            last_arrival: BTreeMap::new(),
            last_answer: Duration::ZERO,
            next_number: 0,
            to_publish,
            generations: 0,
            turns_now: (Duration::ZERO, 0),
            finishing: false,
        }
    }

    pub(super) fn run(mut self) -> Result<Counts, Violation> {
        self.restart();
        self.schedule(Duration::ZERO, Event::Host);
        self.schedule(Duration::ZERO, Event::Publish);
        self.schedule(Duration::from_millis(500), Event::Trouble);
        while !self.is_done()? {
            self.step()?;
        }
        if self.chance.one_in(3) {
            self.start_server_again();
            while !self.is_done()? {
                self.step()?;
            }
        }
        self.finish()?;
        if let Some(client) = &self.client {
            let stats = client.machine.stats(self.base + self.now);
            if self.chance.quiet && stats.redelivered + stats.lapsed > 0 {
                return Err(format!("something lapsed in a quiet run: {stats:?}"));
            }
        }
        self.retire();
        Ok(self.chance.counts)
    }

    pub(super) fn schedule(&mut self, after: Duration, event: Event) {
        self.queue
            .insert((self.now + after, self.next_event), event);
        self.next_event += 1;
    }

    /// Whether the faults are over and everything is settled.
    fn is_done(&mut self) -> Result<bool, Violation> {
        let all_published = self.to_publish == 0;
        if !self.chance.calm
            && (self.now >= TROUBLE || (all_published && self.server.backlog() == 0))
        {
            self.chance.calm = true;
        }
        if !self.chance.calm || !all_published {
            return Ok(false);
        }
        let done = self.server.backlog() == 0
            && self
                .client
                .as_ref()
                .is_some_and(|client| client.is_drained(self.base + self.now) && !client.closing);
        if done {
            let client = self.client.as_ref().expect("looked at above");
            self.truth.check_no_loss(&client.covered)?;
        } else if self.now > TROUBLE + PATIENCE * (1 + self.generations) {
            let client = self.client.as_ref();
            if let Some(client) = client {
                println!("{:?}", client.machine.streams());
            }
            let stats = client.map(|client| client.machine.stats(self.base + self.now));
            return Err(format!(
                "nothing is lost, but it does not end: backlog {}, {stats:?}",
                self.server.backlog()
            ));
        }
        Ok(done)
    }

    /// Lets the next thing happen.
    fn step(&mut self) -> Result<(), Violation> {
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        let server = self.server.poll_timeout();
        let client = self.client.as_ref().and_then(|client| {
            let due = client.machine.poll_timeout()?;
            let due = due.saturating_duration_since(self.base);
            Some(due.max(client.suspended_until))
        });
        let next = [queued, server, client].into_iter().flatten().min();
        let next = next.expect("the host's loop never ends").max(self.now);
        self.now = next;
        if server.is_some_and(|due| due <= next) {
            self.server.handle_timeout(next);
        }
        if queued.is_some_and(|due| due <= next)
            && let Some((_, event)) = self.queue.pop_first()
        {
            self.happen(event)?;
        }
        self.pump_server();
        self.run_client()?;
        self.pump_server();
        self.watch()
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Host => self.host_turn()?,
            Event::Publish => self.publish(),
            Event::Trouble => self.trouble(),
            Event::Open(line, first) => self.open(line, &first),
            Event::Request(line, request) => self.server.request(self.now, line, &request),
            Event::HalfClose(line) => self.server.half_close(self.now, line),
            Event::HangUp(line) => self.server.hang_up(self.now, line),
            Event::Call {
                incarnation,
                call,
                method,
                body,
                fate,
            } => self.evaluate(incarnation, call, method, body, fate),
            Event::Response(line, response, numbers) => self.arrive(line, response, numbers),
            Event::End(line) => self.stream_ended(line),
            Event::Answer {
                incarnation,
                call,
                answer,
                effectless,
            } => self.answered(incarnation, call, answer, effectless),
            Event::Durable(incarnation, saved, fails) => self.durable(incarnation, *saved, fails),
            Event::Restart => self.restart(),
        }
        Ok(())
    }

    fn open(&mut self, line: Line, first: &StreamingPullRequest) {
        self.server.open(self.now, line, first);
        let lives = self
            .client
            .as_ref()
            .is_some_and(|client| client.incarnation == line.0);
        if !lives {
            let delay = self.chance.millis(1..3000);
            self.schedule(delay, Event::HangUp(line));
        }
    }

    fn publish(&mut self) {
        if self.to_publish == 0 {
            return;
        }
        let count = self.chance.number(1..6).min(self.to_publish);
        self.to_publish -= count;
        let numbers: Vec<u64> = (self.next_number..self.next_number + count).collect();
        self.next_number += count;
        self.truth.published.extend(&numbers);
        self.server.publish(self.now, &numbers);
        let pause = self.chance.millis(1..6000);
        self.schedule(pause, Event::Publish);
    }

    /// Faults that come by themselves.
    fn trouble(&mut self) {
        self.schedule(Duration::from_millis(500), Event::Trouble);
        if self.next_number > 0 && self.chance.strikes(|rates: &Rates| rates.redeliver) {
            let number = self.chance.number(0..self.next_number);
            if self.server.redeliver_early(self.now, number) {
                self.chance
                    .count("a message was redelivered under a live lease");
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.end_stream) {
            let lines = self.server.lines();
            if !lines.is_empty() {
                let line = self.chance.pick(&lines);
                if self.chance.one_in(2) {
                    self.chance.count("a stream ended clean");
                    self.server.half_close(self.now, line);
                } else {
                    self.chance.count("a stream ended with an error");
                    self.server.hang_up(self.now, line);
                    self.send_to_client(line, Event::End(line));
                }
            }
        }
        if self.chance.strikes(|rates: &Rates| rates.suspend)
            && let Some(client) = &mut self.client
        {
            self.chance.count("the process was suspended");
            client.suspended_until = self.now + self.chance.millis(1_000..120_000);
        }
        if self.chance.strikes(|rates: &Rates| rates.crash) {
            self.crash();
        }
    }

    /// The process is gone, from one moment to the next.
    fn crash(&mut self) {
        if self.retire() {
            self.chance.count("a crash");
            self.hang_up_everything();
            let pause = self.chance.millis(10..20_000);
            self.schedule(pause, Event::Restart);
        }
    }

    /// Takes the last figures of an incarnation that is over.
    fn retire(&mut self) -> bool {
        let Some(client) = self.client.take() else {
            return false;
        };
        let stats = client.machine.stats(self.base + self.now);
        self.chance
            .count_many("a redelivery of a held message", stats.redelivered);
        self.chance
            .count_many("a redelivery recognised after a restore", stats.recognised);
        true
    }

    /// The server notices that a process is gone, line by line, now or later.
    fn hang_up_everything(&mut self) {
        for line in self.server.lines() {
            let delay = self.chance.millis(1..3000);
            self.schedule(delay, Event::HangUp(line));
        }
    }

    fn restart(&mut self) {
        if self.client.is_some() {
            return;
        }
        let at = self.base + self.now;
        let mut restoration = Restoration::default();
        let mut covered = std::collections::BTreeSet::new();
        if let Some(saved) = self.truth.newest() {
            restoration.epoch = Some(saved.epoch);
            covered = saved.covered.clone();
            if self.bug != Some(Bug::RestoreForgets) {
                restoration.groups = saved.state.groups_of(&SUBSCRIPTION.parse().unwrap());
            }
            if self.bug == Some(Bug::StateWithoutSettling) {
                let server = &self.server;
                for group in &mut restoration.groups {
                    group.ids.retain(|id| match id {
                        MessageKey::Number(id) => server
                            .number(&id.to_string())
                            .is_none_or(|number| !saved.settling.contains(&number)),
                        MessageKey::Text(_) => true,
                    });
                }
            }
        }
        trace!("{:?} restart from {:?} {restoration:?}", self.now, covered);
        self.incarnations += 1;
        let client = Client::new(
            self.incarnations,
            self.now,
            at,
            self.settings.clone(),
            restoration,
            covered,
        );
        self.client = Some(client);
    }

    /// Google's emulator forgets everything and gives the same ids again.
    fn start_server_again(&mut self) {
        self.chance.count("ids started again");
        self.generations += 1;
        self.now += Duration::from_secs(5);
        self.retire();
        self.queue
            .retain(|_, event| matches!(event, Event::Host | Event::Trouble));
        self.server.start_again(self.now);
        self.to_publish = self.chance.number(5..40);
        self.schedule(Duration::ZERO, Event::Restart);
        self.schedule(Duration::from_millis(1), Event::Publish);
    }

    /// Ends the last incarnation in good order.
    fn finish(&mut self) -> Result<(), Violation> {
        self.finishing = true;
        self.close();
        let limit = self.now + Duration::from_secs(30);
        while self
            .client
            .as_ref()
            .is_some_and(|client| !client.machine.is_closed())
        {
            if self.now > limit {
                return Err("the source does not close".to_owned());
            }
            self.step()?;
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        let at = self.base + self.now;
        if let Some(client) = &mut self.client {
            client.out.clear(&mut client.machine, at);
            client.machine.close(at);
            client.closing = true;
        }
    }

    /// What the server sends leaves.
    fn pump_server(&mut self) {
        while let Some((line, sent)) = self.server.poll(self.now) {
            match sent {
                Sent::Response(response) => {
                    let numbers: Vec<u64> = response
                        .received_messages
                        .iter()
                        .filter_map(|one| one.message.as_ref())
                        .filter_map(|message| self.server.number(&message.message_id))
                        .filter(|number| !self.truth.acked.contains(number))
                        .collect();
                    trace!("{:?} sent {line:?} {numbers:?}", self.now);
                    self.send_to_client(line, Event::Response(line, response, numbers));
                }
                Sent::End => self.send_to_client(line, Event::End(line)),
            }
        }
    }

    fn send_to_client(&mut self, line: Line, event: Event) {
        let mut delay = self.chance.millis(1..50);
        if self.chance.strikes(|rates: &Rates| rates.late_response) {
            self.chance.count("a response was late");
            delay = self.chance.millis(100..15_000);
        }
        // A line keeps the order.
        let earliest = self.last_arrival.get(&line).copied().unwrap_or_default();
        let at = (self.now + delay).max(earliest);
        self.last_arrival.insert(line, at);
        self.schedule(at - self.now, event);
    }

    fn arrive(&mut self, line: Line, response: Box<StreamingPullResponse>, unacked: Vec<u64>) {
        let Some(reader) = self.reader(line) else {
            self.server.credit(line);
            return;
        };
        reader.inbox.push_back((response, unacked));
        if reader.inbox.len() > 1 {
            self.chance.count("two responses waited unread");
        }
    }

    fn reader(&mut self, (incarnation, stream): Line) -> Option<&mut Reader> {
        let client = self.client.as_mut()?;
        if client.incarnation != incarnation {
            return None;
        }
        client.readers.get_mut(&stream)
    }

    fn stream_ended(&mut self, line: Line) {
        let (at, random) = (self.base + self.now, self.chance.unit());
        let Some(reader) = self.reader(line) else {
            return;
        };
        // What arrived before the end is read first.
        if !reader.inbox.is_empty() {
            self.schedule(Duration::from_millis(100), Event::End(line));
            return;
        }
        let client = self.client.as_mut().expect("it has the reader");
        client.readers.remove(&line.1);
        client
            .machine
            .handle_stream_ended(at, random, line.1, StreamEnd::Again);
    }

    /// Lets the client do everything it has to do now.
    fn run_client(&mut self) -> Result<(), Violation> {
        loop {
            let at = self.base + self.now;
            let Some(client) = &mut self.client else {
                return Ok(());
            };
            if self.now < client.suspended_until {
                return Ok(());
            }
            self.turns_now = match self.turns_now {
                (when, turns) if when == self.now => (when, turns + 1),
                _ => (self.now, 0),
            };
            if self.turns_now.1 > TURNS_PER_INSTANT {
                return Err("the driver goes round in circles".to_owned());
            }
            if client.machine.poll_timeout().is_some_and(|due| due <= at) {
                client.machine.handle_timeout(at);
                client.machine.check_invariants();
            }
            if let Some(effect) = client.machine.poll_effect(at) {
                client.machine.check_invariants();
                if !client.closing && self.chance.strikes(|rates: &Rates| rates.crash / 4) {
                    self.chance.count("a crash between two effects");
                    if self.chance.one_in(2) {
                        self.perform(effect)?;
                    }
                    self.crash();
                    return Ok(());
                }
                self.perform(effect)?;
                continue;
            }
            if client.machine.poll_timeout().is_some_and(|due| due <= at) {
                continue;
            }
            if !self.read_a_response() {
                return self.after_close();
            }
        }
    }

    /// Reads one response if there is one and the machine wants it.
    fn read_a_response(&mut self) -> bool {
        let (at, random) = (self.base + self.now, self.chance.unit());
        let stale = self.chance.millis(0..1000);
        let Some(client) = &mut self.client else {
            return false;
        };
        if !client.machine.reads() {
            self.chance.count("the buffer was full");
            return false;
        }
        let waiting = client
            .readers
            .iter_mut()
            .find(|(_, reader)| !reader.inbox.is_empty());
        let Some((&stream, reader)) = waiting else {
            for reader in client.readers.values_mut() {
                // The driver looks at a waiting stream once a second.
                reader.drained = reader.drained.max(self.now.saturating_sub(stale));
            }
            return false;
        };
        let (response, unacked) = reader.inbox.pop_front().expect("it is not empty");
        // Sent before the acknowledgement took effect, read after it.
        let crossed = unacked
            .into_iter()
            .filter(|number| self.truth.acked.contains(number));
        let crossed: Vec<u64> = crossed.collect();
        self.truth.crossed.extend(crossed);
        let leased_since = self.base + reader.drained;
        if reader.inbox.is_empty() {
            reader.drained = self.now;
        }
        let opened = std::mem::replace(&mut reader.opened, true);
        trace!(
            "{:?} reads {stream:?} {} messages",
            self.now,
            response.received_messages.len()
        );
        for one in &response.received_messages {
            let id = one.message.as_ref().expect("a delivery has its message");
            client
                .messages
                .insert(one.ack_id.clone(), id.message_id.clone());
            client
                .newest
                .insert(id.message_id.clone(), one.ack_id.clone());
        }
        let mut pulled = take_apart(*response, leased_since);
        match self.bug {
            Some(Bug::GuardIgnored) => {
                for message in &mut pulled.messages {
                    message.published = Some(i64::MIN);
                }
            }
            Some(Bug::RedeliveryIsNew) => {
                let salt = self.chance.number(1..120);
                for key in &mut pulled.keys {
                    *key = strange_key(key, salt);
                }
            }
            _ => {}
        }
        if !opened {
            client.machine.handle_opened(at, stream);
        }
        client.machine.handle_response(at, random, stream, pulled);
        client.machine.check_invariants();
        let line = (client.incarnation, stream);
        self.server.credit(line);
        true
    }

    /// A source that was closed in the middle of things is followed by another.
    fn after_close(&mut self) -> Result<(), Violation> {
        let over = self
            .client
            .as_ref()
            .is_some_and(|client| client.closing && client.machine.is_closed());
        if over && !self.finishing {
            self.chance.count("an orderly close");
            self.retire();
            self.hang_up_everything();
            let pause = self.chance.millis(10..5000);
            self.schedule(pause, Event::Restart);
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> Result<(), Violation> {
        let Some(client) = &mut self.client else {
            return Ok(());
        };
        trace!("{:?} does {effect:?}", self.now);
        let incarnation = client.incarnation;
        let line = |stream| (incarnation, stream);
        match effect {
            Effect::Open {
                stream,
                slot: _,
                lease_seconds,
                max_messages,
            } => {
                let now = self.now;
                let reader = Reader {
                    drained: now,
                    ..Reader::default()
                };
                client.readers.insert(stream, reader);
                if client.readers.len() > self.settings.streams {
                    self.chance.count("a successor stream opened");
                }
                let first = StreamingPullRequest {
                    subscription: SUBSCRIPTION.to_owned(),
                    stream_ack_deadline_seconds: i32::try_from(lease_seconds).unwrap(),
                    max_outstanding_messages: i64::try_from(max_messages).unwrap(),
                    protocol_version: 1,
                    ..StreamingPullRequest::default()
                };
                self.send_to_server(line(stream), Event::Open(line(stream), Box::new(first)));
            }
            Effect::Ping { stream } => {
                let ping = Box::<StreamingPullRequest>::default();
                self.send_to_server(line(stream), Event::Request(line(stream), ping));
            }
            Effect::ChangeLease {
                stream,
                lease_seconds,
            } => {
                let change = StreamingPullRequest {
                    stream_ack_deadline_seconds: i32::try_from(lease_seconds).unwrap(),
                    ..StreamingPullRequest::default()
                };
                let event = Event::Request(line(stream), Box::new(change));
                self.send_to_server(line(stream), event);
            }
            Effect::HalfClose { stream } => {
                self.send_to_server(line(stream), Event::HalfClose(line(stream)));
            }
            Effect::Drop { stream } => self.drop_stream(stream),
            Effect::GiveUp { stream } => {
                self.drop_stream(stream);
                let (at, random) = (self.base + self.now, self.chance.unit());
                if let Some(client) = &mut self.client {
                    client
                        .machine
                        .handle_stream_ended(at, random, stream, StreamEnd::Again);
                }
            }
            Effect::Call { call, method, body } => self.call(incarnation, call, method, body)?,
            Effect::Committed { commit, committed } => {
                self.chance
                    .count_many("a lapse told by a commit", committed.lapsed as u64);
                client.resolve(commit, committed)?;
                if self.bug == Some(Bug::ResolvesTwice) {
                    client.resolve(commit, committed)?;
                }
            }
            Effect::Settled {
                settle,
                committed: _,
            } => {
                if !client.settles.remove(&settle) && self.bug.is_none() {
                    return Err(format!("{settle:?} resolved twice or was never asked for"));
                }
            }
            Effect::Tell(notice) => self.note(&notice),
        }
        Ok(())
    }

    fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::HeldTooLong { .. } => self.chance.count("held too long"),
            Notice::Lapsed { buffered, .. } => {
                self.chance
                    .count_many("a lapse in the buffer", *buffered as u64);
            }
            // What was on its way is not ours then, and comes again when its lease ends.
            Notice::StreamsUnread { .. } => self.chance.quiet = false,
            Notice::StreamReopens { .. }
            | Notice::StreamFails { .. }
            | Notice::StreamSilent { .. }
            | Notice::LimitChanged { .. }
            | Notice::CheckpointLate { .. }
            | Notice::SeenOverflowed { .. }
            | Notice::Recognised { .. }
            | Notice::CallFails { .. } => {}
        }
    }

    fn drop_stream(&mut self, stream: StreamId) {
        let Some(client) = &mut self.client else {
            return;
        };
        client.readers.remove(&stream);
        let line = (client.incarnation, stream);
        self.send_to_server(line, Event::HangUp(line));
    }

    /// Requests on a line keep their order too.
    fn send_to_server(&mut self, line: Line, event: Event) {
        let delay = self.chance.millis(1..30);
        let key = (line.0 | 1 << 31, line.1);
        let earliest = self.last_arrival.get(&key).copied().unwrap_or_default();
        let at = (self.now + delay).max(earliest);
        self.last_arrival.insert(key, at);
        self.schedule(at - self.now, event);
    }

    fn call(
        &mut self,
        incarnation: u32,
        call: CallId,
        method: CallMethod,
        mut body: Bytes,
    ) -> Result<(), Violation> {
        let is_ack = method == CallMethod::Acknowledge;
        let is_extension = !is_ack && extends(&body);
        match self.bug {
            Some(Bug::ExtensionsSkipped) if is_extension => {
                self.answer(incarnation, call, Answer::Done, Vec::new());
                return Ok(());
            }
            Some(Bug::FirstAckIdKept) if is_ack => body = self.with_first_ack_ids(body),
            Some(Bug::ReleaseAcknowledges) if !is_ack && !is_extension => {
                let event = Event::Call {
                    incarnation,
                    call,
                    method: CallMethod::Acknowledge,
                    body: as_acknowledge(body),
                    fate: Fate::Served,
                };
                self.schedule(Duration::from_millis(5), event);
                return Ok(());
            }
            _ => {}
        }
        self.check_newest(&body, method)?;
        if self.chance.strikes(|rates: &Rates| rates.lose_request) {
            self.chance.count("a request was lost");
            self.give_up_waiting(incarnation, call);
            return Ok(());
        }
        let fate = if self.chance.strikes(|rates: &Rates| rates.lose_answer) {
            self.chance.count("an answer was lost");
            Fate::AnswerLost
        } else if self.chance.strikes(|rates: &Rates| rates.unavailable) {
            if !is_ack && !is_extension {
                self.chance.count("a release failed");
            }
            if self.chance.one_in(2) {
                self.chance
                    .count("a call was answered UNAVAILABLE before it took effect");
                Fate::Unavailable
            } else {
                self.chance
                    .count("a call was answered UNAVAILABLE after it took effect");
                Fate::UnavailableAfterEffect
            }
        } else if self.chance.strikes(|rates: &Rates| rates.no_effect) {
            Fate::NoEffect
        } else {
            Fate::Served
        };
        let mut delay = self.chance.millis(1..50);
        if self.chance.strikes(|rates: &Rates| rates.late_call) {
            delay = self.chance.millis(200..80_000);
        }
        if fate == Fate::AnswerLost || delay >= CALL_TIMEOUT {
            self.give_up_waiting(incarnation, call);
        }
        if delay >= CALL_TIMEOUT {
            self.chance
                .count("a call was evaluated after its client gave up");
        }
        let event = Event::Call {
            incarnation,
            call,
            method,
            body,
            fate,
        };
        self.schedule(delay, event);
        Ok(())
    }

    /// Whatever is sent is sent under the newest ack id that was received.
    fn check_newest(&self, body: &Bytes, method: CallMethod) -> Result<(), Violation> {
        let ack_ids = match method {
            CallMethod::Acknowledge => AcknowledgeRequest::decode(body.clone()).unwrap().ack_ids,
            CallMethod::ModifyAckDeadline => {
                ModifyAckDeadlineRequest::decode(body.clone())
                    .unwrap()
                    .ack_ids
            }
        };
        let Some(client) = &self.client else {
            return Ok(());
        };
        for ack_id in ack_ids {
            let Some(message) = client.messages.get(&ack_id) else {
                return Err(format!("{ack_id} was never received"));
            };
            let newest = &client.newest[message];
            // What is given back may have come again already: then it is another delivery.
            let gives_back = method == CallMethod::ModifyAckDeadline && !extends(body);
            if *newest != ack_id && !gives_back {
                return Err(format!(
                    "message {message}: {method:?} was sent under an older ack id"
                ));
            }
        }
        Ok(())
    }

    fn give_up_waiting(&mut self, incarnation: u32, call: CallId) {
        let event = Event::Answer {
            incarnation,
            call,
            answer: Answer::Again(None),
            effectless: Vec::new(),
        };
        self.schedule(CALL_TIMEOUT, event);
    }

    /// The server evaluates a call, whether or not anybody waits for the answer.
    fn evaluate(
        &mut self,
        incarnation: u32,
        call: CallId,
        method: CallMethod,
        body: Bytes,
        fate: Fate,
    ) {
        let named = match method {
            CallMethod::Acknowledge => {
                let request = AcknowledgeRequest::decode(body.clone()).unwrap();
                self.server.numbers_of(&request.ack_ids)
            }
            CallMethod::ModifyAckDeadline => Vec::new(),
        };
        let answer = match fate {
            Fate::Unavailable => Answer::Again(None),
            Fate::NoEffect => Answer::Done,
            Fate::Served | Fate::AnswerLost | Fate::UnavailableAfterEffect => {
                self.server.call(self.now, method, body)
            }
        };
        let answer = match fate {
            Fate::UnavailableAfterEffect => Answer::Again(None),
            Fate::Served | Fate::AnswerLost | Fate::Unavailable | Fate::NoEffect => answer,
        };
        if fate == Fate::AnswerLost {
            return;
        }
        self.note_acked();
        let mut effectless = named;
        effectless.retain(|number| !self.truth.acked.contains(number));
        if let Answer::Done = answer {
            if !effectless.is_empty() {
                self.chance
                    .count("an acknowledgement had no effect though answered OK");
            }
        } else {
            effectless.clear();
        }
        self.answer(incarnation, call, answer, effectless);
    }

    fn answer(&mut self, incarnation: u32, call: CallId, answer: Answer, effectless: Vec<u64>) {
        let delay = self.chance.millis(1..50);
        if self.now + delay < self.last_answer {
            self.chance.count("an answer arrived before an earlier one");
        }
        self.last_answer = self.last_answer.max(self.now + delay);
        let event = Event::Answer {
            incarnation,
            call,
            answer,
            effectless,
        };
        self.schedule(delay, event);
    }

    fn answered(&mut self, incarnation: u32, call: CallId, answer: Answer, effectless: Vec<u64>) {
        let (at, random) = (self.base + self.now, self.chance.unit());
        let Some(client) = &mut self.client else {
            return;
        };
        if client.incarnation != incarnation {
            return;
        }
        if self.now < client.suspended_until {
            let wait = client.suspended_until - self.now;
            let event = Event::Answer {
                incarnation,
                call,
                answer,
                effectless,
            };
            self.schedule(wait, event);
            return;
        }
        self.truth.effectless.extend(effectless);
        let answer = match (self.bug, answer) {
            (Some(Bug::FailedAckCounts), Answer::Again(_)) => Answer::Done,
            (_, answer) => answer,
        };
        trace!("{:?} answer {call:?} {answer:?}", self.now);
        client.machine.handle_answer(at, random, call, answer);
        client.machine.check_invariants();
    }

    fn note_acked(&mut self) {
        let acked = self.server.take_acked();
        self.truth.acked.extend(&acked);
        self.truth.fresh.extend(acked);
    }

    /// Checks what is checked after every step.
    fn watch(&mut self) -> Result<(), Violation> {
        self.note_acked();
        self.truth.check_acked()?;
        let lapses = self.server.take_lapses() as u64;
        self.chance.count_many("a lapse at the server", lapses);
        if self.chance.quiet && lapses > 0 {
            return Err("a lease lapsed in a quiet run".to_owned());
        }
        Ok(())
    }

    fn with_first_ack_ids(&self, body: Bytes) -> Bytes {
        let mut request = AcknowledgeRequest::decode(body).unwrap();
        for ack_id in &mut request.ack_ids {
            *ack_id = self.server.first_ack_id(ack_id);
        }
        request.encode_to_vec().into()
    }
}

/// Whether a request extends leases; what gives messages back holds them back for 7 s at most here.
fn extends(body: &Bytes) -> bool {
    let request = ModifyAckDeadlineRequest::decode(body.clone());
    request.unwrap().ack_deadline_seconds >= 10
}

fn as_acknowledge(body: Bytes) -> Bytes {
    let request = ModifyAckDeadlineRequest::decode(body).unwrap();
    AcknowledgeRequest {
        subscription: request.subscription,
        ack_ids: request.ack_ids,
    }
    .encode_to_vec()
    .into()
}
