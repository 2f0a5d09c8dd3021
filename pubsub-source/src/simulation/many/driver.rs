//! The drivers' part: does what the machines want done, and reads what has arrived.

use gcp_emulator::pubsub::proto::StreamingPullRequest;

use super::{
    Violation,
    event::{Address, Event, Line},
    reader::Stream,
    world::World,
};
use crate::{
    machine::{Effect, Notice, StreamEnd, StreamId},
    simulation::client::take_apart_of,
};

/// Turns of the drivers at one instant that are no loop.
const TURNS_PER_INSTANT: u32 = 10_000;

impl World {
    /// Lets every split do what it has to do now.
    pub(super) fn run_touched(&mut self) -> Result<(), Violation> {
        let mut turns = 0;
        while let Some(address) = self.touched.pop_first() {
            turns += 1;
            if turns > TURNS_PER_INSTANT {
                return Err("the drivers go round in circles".to_owned());
            }
            self.run_split(address)?;
            self.hear_bells(address);
            self.bury(address);
        }
        Ok(())
    }

    fn run_split(&mut self, address: Address) -> Result<(), Violation> {
        let (now, at) = (self.now, self.at());
        let mut busy = false;
        // What a call is about is for the driver's own next turn, as the driver has it.
        for _ in 0..TURNS_PER_INSTANT {
            let Some(reader) = self.reader(address.place) else {
                return Ok(());
            };
            if now < reader.suspended_until {
                return Ok(());
            }
            let Some(split) = reader.split(address.subscription) else {
                return Ok(());
            };
            let machine = &mut split.machine;
            if machine.poll_timeout().is_some_and(|due| due <= at) {
                machine.handle_timeout(at);
            }
            if let Some(effect) = machine.poll_effect(at) {
                busy = true;
                self.perform(address, effect)?;
                continue;
            }
            if machine.poll_timeout().is_some_and(|due| due <= at) {
                continue;
            }
            if self.share(address) || self.read_a_response(address) {
                busy = true;
                continue;
            }
            if let Some(split) = self.split(address) {
                split.due = split.machine.poll_timeout();
                if busy {
                    split.machine.check_invariants();
                }
            }
            return Ok(());
        }
        Err("a driver goes round in circles".to_owned())
    }

    /// A reader whose source has closed is gone, and with the last one its run.
    fn bury(&mut self, address: Address) {
        let reader = self.reader(address.place);
        if reader.is_some_and(|reader| reader.closing && reader.is_closed()) {
            self.retire(address.place);
        }
        let run = address.place.0;
        if self
            .jobs
            .get(&run)
            .is_some_and(|job| job.readers.is_empty())
        {
            self.jobs.remove(&run);
        }
    }

    /// Reads one response if there is one and the machine wants it.
    fn read_a_response(&mut self, address: Address) -> bool {
        let (now, at, random) = (self.now, self.at(), self.chance.random().f64());
        let (base, stale) = (self.base, self.chance.millis(0..1000));
        let Some(split) = self.split(address) else {
            return false;
        };
        if !split.machine.reads() {
            return false;
        }
        let streams = split.streams.iter_mut();
        let mut waiting = streams.filter(|(_, stream)| !stream.inbox.is_empty());
        let Some((&id, stream)) = waiting.next() else {
            for stream in split.streams.values_mut() {
                // The driver looks at a waiting stream once a second.
                stream.drained = stream.drained.max(now.saturating_sub(stale));
            }
            return false;
        };
        let (response, unacked) = stream.inbox.pop_front().expect("it is not empty");
        let leased_since = base + stream.drained;
        if stream.inbox.is_empty() {
            stream.drained = now;
        }
        let opened = std::mem::replace(&mut stream.opened, true);
        // Sent before the acknowledgement took effect, read after it.
        let acked = &self.truth.acked;
        let crossed = unacked
            .into_iter()
            .filter(|message| acked.contains(message));
        let crossed: Vec<_> = crossed.collect();
        self.truth.crossed.extend(crossed);
        let subscription = &self.subscriptions[address.subscription];
        let pulled = take_apart_of(subscription, &response, leased_since);
        let split = self.split(address).expect("it has the stream");
        if !opened {
            split.machine.handle_opened(at, id);
        }
        split.machine.handle_response(at, random, id, pulled);
        self.service.credit((address, id));
        true
    }

    fn perform(&mut self, address: Address, effect: Effect) -> Result<(), Violation> {
        trace!("{:?} {address:?} does {effect:?}", self.now);
        let line = |stream| (address, stream);
        match effect {
            Effect::Open {
                stream,
                slot: _,
                lease_seconds,
                max_messages,
                max_bytes,
            } => {
                let opened = Stream {
                    drained: self.now,
                    ..Stream::default()
                };
                let Some(split) = self.split(address) else {
                    return Ok(());
                };
                split.streams.insert(stream, opened);
                let first = StreamingPullRequest {
                    subscription: self.subscriptions[address.subscription].as_str().to_owned(),
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
            Effect::Drop { stream } => self.drop_stream(line(stream)),
            Effect::GiveUp { stream } => {
                self.drop_stream(line(stream));
                self.tell_end(address, stream);
            }
            Effect::Call { call, method, body } => self.call(address, call, method, body),
            Effect::Committed { commit, .. } => {
                let resolved = self.split(address);
                if !resolved.is_some_and(|split| split.commits.remove(&commit)) {
                    return Err(format!("{commit:?} resolved twice or was never asked for"));
                }
            }
            Effect::Tell(notice) => self.note(&notice),
            Effect::Unconfirmed { .. } | Effect::Restored { .. } => {}
            Effect::Settled { settle, .. } => {
                return Err(format!("{settle:?} was never asked for"));
            }
        }
        Ok(())
    }

    fn note(&mut self, notice: &Notice) {
        if let Notice::Parked { .. } = notice {
            self.chance.count("a paused split was parked");
        }
        if let Notice::StreamsUnread { .. } = notice {
            // What was on its way is not ours then, and comes again when its lease ends.
            self.chance.disturb();
        }
    }

    fn drop_stream(&mut self, line: Line) {
        if let Some(split) = self.split(line.0) {
            split.streams.remove(&line.1);
        }
        self.send_to_server(line, Event::HangUp(line));
    }

    pub(super) fn tell_end(&mut self, address: Address, stream: StreamId) {
        let (at, random) = (self.at(), self.chance.random().f64());
        if let Some(split) = self.split(address) {
            split
                .machine
                .handle_stream_ended(at, random, stream, StreamEnd::Again, None);
        }
    }
}
