//! The driver's part: does what the machine wants done, and reads what has arrived.

use gcp_emulator::pubsub::proto::StreamingPullRequest;

use super::{
    Violation,
    bugs::Bug,
    chance::Rates,
    client::{Reader, strange_key, take_apart},
    event::Event,
    server::{Line, SUBSCRIPTION},
    world::World,
};
use crate::machine::{Effect, Notice, StreamEnd, StreamId};

/// Turns of the driver at one instant that are no loop.
const TURNS_PER_INSTANT: u32 = 10_000;

impl World {
    pub(super) fn reader(&mut self, (incarnation, stream): Line) -> Option<&mut Reader> {
        let client = self.client.as_mut()?;
        if client.incarnation != incarnation {
            return None;
        }
        client.readers.get_mut(&stream)
    }

    /// Lets the client do everything it has to do now.
    pub(super) fn run_client(&mut self) -> Result<(), Violation> {
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
    pub(super) fn read_a_response(&mut self) -> bool {
        let (at, random) = (self.base + self.now, self.chance.random().f64());
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
        let next = match self.bug {
            Some(Bug::ResponsesReordered) => reader.inbox.pop_back(),
            _ => reader.inbox.pop_front(),
        };
        let (response, unacked) = next.expect("it is not empty");
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
        let mut pulled = take_apart(&response, leased_since);
        match self.bug {
            Some(Bug::ExactlyOnceIgnored) => pulled.exactly_once = Some(false),
            Some(Bug::GuardIgnored) => {
                for message in &mut pulled.messages {
                    message.published = i64::MIN;
                }
            }
            Some(Bug::RedeliveryIsNew) => {
                let salt = self.chance.random().u64(1..120);
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
    pub(super) fn after_close(&mut self) -> Result<(), Violation> {
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

    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), Violation> {
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
                max_bytes,
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
                    max_outstanding_bytes: i64::try_from(max_bytes).unwrap(),
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
                let (at, random) = (self.base + self.now, self.chance.random().f64());
                if let Some(client) = &mut self.client {
                    client
                        .machine
                        .handle_stream_ended(at, random, stream, StreamEnd::Again, None);
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
            Effect::Unconfirmed { commit, error: _ } => {
                self.chance.count("a commit's receipt failed");
                client.fail(commit)?;
            }
            Effect::Restored { committed } => client.resolve_restored(committed)?,
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

    pub(super) fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::HeldTooLong { .. } => self.chance.count("held too long"),
            Notice::Lapsed { buffered, .. } => {
                self.chance
                    .count_many("a lapse in the buffer", *buffered as u64);
            }
            // What was on its way is not ours then, and comes again when its lease ends.
            Notice::StreamsUnread { .. } => self.chance.disturb(),
            Notice::Parked { .. } => self.chance.count("a paused source was parked"),
            Notice::Unparked { .. }
            | Notice::BudgetSpent { .. }
            | Notice::StreamReopens { .. }
            | Notice::StreamFails { .. }
            | Notice::StreamSilent { .. }
            | Notice::StreamUnanswered { .. }
            | Notice::LimitChanged { .. }
            | Notice::CheckpointLate { .. }
            | Notice::NothingCommitted { .. }
            | Notice::CommitSlow { .. }
            | Notice::HoldTooShort { .. }
            | Notice::SeenOverflowed { .. }
            | Notice::Recognised { .. }
            | Notice::CloseTimedOut { .. }
            | Notice::CallFails { .. } => {}
        }
    }

    pub(super) fn drop_stream(&mut self, stream: StreamId) {
        let Some(client) = &mut self.client else {
            return;
        };
        client.readers.remove(&stream);
        let line = (client.incarnation, stream);
        self.send_to_server(line, Event::HangUp(line));
    }
}
