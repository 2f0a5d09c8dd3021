//! The pull streams: when they open, what they are told, when they are given up.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use connector_core::backoff::Backoff;

use super::effect::{Effect, Notice, StreamId};

/// How often a stream gets an empty request: the service closes a stream that sends nothing for
/// 75 to 90 s, and Google's clients ping every 30 s.
pub(super) const PING: Duration = Duration::from_secs(30);

/// How long a stream that answers pings may be silent: one ping interval, and 15 s for its answer,
/// as in Google's clients.
pub(super) const SILENCE: Duration = Duration::from_secs(45);

/// How long a half-closed stream may take to end. The service ends it at once.
const FAREWELL: Duration = Duration::from_secs(5);

/// The same for a source that closes: its host waits.
const LAST_FAREWELL: Duration = Duration::from_secs(1);

/// After a change of the lease length the server may for so long still give the old one: a request
/// on its way, and a response on its way back.
const CHANGE: Duration = Duration::from_secs(10);

/// Delays before a stream opens again that had delivered nothing, with full jitter.
const REOPEN: Backoff = Backoff::new(Duration::from_millis(100), 2.0, Duration::from_secs(10));

/// Failures in a row after which an operator is told, once per doubling.
const FAILURES_TOLD: u32 = 4;

/// Why a stream is no more, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// It ended or broke in a way that a new one may well not.
    Again,
    /// It failed, and the server asked for a pause.
    After(Duration),
}

#[derive(Debug)]
struct Live {
    stream: StreamId,
    told: u64,
    opened: bool,
    delivered: bool,
    lease: Duration,
    lease_before: Duration,
    lease_changed: Option<Instant>,
    next_ping: Instant,
    /// The last response, or the moment from which on silence counts.
    heard: Instant,
    pinged: bool,
    /// Taken for dead; its end is not told yet.
    given_up: bool,
}

#[derive(Debug)]
enum Slot {
    /// Opens when this time has come.
    Waiting(Instant),
    Live(Live),
    /// Closed since then, because what it delivered was not read; opens as soon as reading goes on.
    Unread(Instant),
}

#[derive(Debug)]
struct Retiring {
    stream: StreamId,
    told: u64,
    lease: Duration,
    drop_at: Instant,
}

/// All pull streams of a source, a slot for each that should be open.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Slot>,
    failures: Vec<u32>,
    /// Half-closed streams, which may still deliver.
    retiring: Vec<Retiring>,
    next: u64,
    /// The most that all open streams together may be told.
    bound: u64,
    effects: VecDeque<Effect>,
    /// Nothing is opened before the host asks for the first message.
    started: bool,
    closing: bool,
    reading: bool,
    /// The server has answered a ping, so its silence means something. Google's emulator never
    /// does.
    answers_pings: bool,
}

impl Streams {
    pub(super) fn new(now: Instant, slots: usize, bound: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Slot::Waiting(now)).collect(),
            failures: vec![0; slots],
            retiring: Vec::new(),
            next: 0,
            bound: bound as u64,
            effects: VecDeque::new(),
            started: false,
            closing: false,
            reading: true,
            answers_pings: false,
        }
    }

    /// The host is ready to receive. Answers whether it was not before.
    pub(super) fn start(&mut self) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    pub(super) fn is_started(&self) -> bool {
        self.started
    }

    fn may_open(&self) -> bool {
        self.started && !self.closing
    }

    /// Opens what should be open, pings, and gives up what is silent.
    pub(super) fn advance(&mut self, now: Instant, told: u64, lease: Duration) {
        self.retiring.retain(|old| {
            let over = old.drop_at <= now;
            if over {
                self.effects.push_back(Effect::Drop { stream: old.stream });
            }
            !over
        });
        for slot in 0..self.slots.len() {
            self.advance_slot(now, slot, told, lease);
        }
    }

    fn advance_slot(&mut self, now: Instant, slot: usize, told: u64, lease: Duration) {
        let (reading, may_open) = (self.reading, self.may_open());
        match &mut self.slots[slot] {
            Slot::Waiting(at) if *at <= now && may_open => self.open(now, slot, told, lease),
            Slot::Unread(_) if reading && may_open => self.open(now, slot, told, lease),
            Slot::Waiting(_) | Slot::Unread(_) => {}
            Slot::Live(live) => {
                let silence = now.saturating_duration_since(live.heard);
                if live.given_up {
                    // Its end is on its way.
                } else if reading && self.answers_pings && silence >= SILENCE {
                    live.given_up = true;
                    let stream = live.stream;
                    self.effects.push_back(Effect::GiveUp { stream });
                    self.effects
                        .push_back(Effect::Tell(Notice::StreamSilent { slot, silence }));
                } else if live.next_ping <= now {
                    live.next_ping = now + PING;
                    live.pinged = true;
                    let stream = live.stream;
                    self.effects.push_back(Effect::Ping { stream });
                }
            }
        }
    }

    fn open(&mut self, now: Instant, slot: usize, told: u64, lease: Duration) {
        let share = self.share(slot, told);
        // Room for what is told must be left within the bound, unless nothing is open at all.
        if self.told() > 0 && self.told() + share > self.bound {
            return;
        }
        let live = self.begin(now, slot, share, lease);
        self.slots[slot] = Slot::Live(live);
    }

    fn begin(&mut self, now: Instant, slot: usize, share: u64, lease: Duration) -> Live {
        let stream = StreamId(self.next);
        self.next += 1;
        self.effects.push_back(Effect::Open {
            stream,
            slot,
            lease_seconds: seconds(lease),
            max_messages: share,
        });
        Live {
            stream,
            told: share,
            opened: false,
            delivered: false,
            lease,
            lease_before: lease,
            lease_changed: None,
            next_ping: now + PING,
            heard: now,
            pinged: false,
            given_up: false,
        }
    }

    /// What the stream of a slot is told: together they are told all of it.
    fn share(&self, slot: usize, told: u64) -> u64 {
        let (slot, slots) = (slot as u64, self.slots.len() as u64);
        let share = told / slots + u64::from(slot < told % slots);
        share.max(1)
    }

    /// What all open streams are told together.
    fn told(&self) -> u64 {
        let live = self.live().map(|live| live.told);
        live.chain(self.retiring.iter().map(|old| old.told)).sum()
    }

    fn live(&self) -> impl Iterator<Item = &Live> + '_ {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Live(live) => Some(live),
            Slot::Waiting(_) | Slot::Unread(_) => None,
        })
    }

    fn live_mut(&mut self) -> impl Iterator<Item = &mut Live> + '_ {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Live(live) => Some(live),
            Slot::Waiting(_) | Slot::Unread(_) => None,
        })
    }

    /// Tells a larger limit. It can be told only when a stream opens: a successor opens beside each
    /// stream where the bound allows that, else after it.
    pub(super) fn retell(&mut self, now: Instant, told: u64, lease: Duration) {
        for slot in 0..self.slots.len() {
            let share = self.share(slot, told);
            let Slot::Live(live) = &self.slots[slot] else {
                continue;
            };
            if live.told >= share {
                continue;
            }
            let old = Retiring {
                stream: live.stream,
                told: live.told,
                lease: live.lease.min(live.lease_before),
                drop_at: now + FAREWELL,
            };
            let stream = old.stream;
            self.retiring.push(old);
            self.slots[slot] = Slot::Waiting(now);
            self.open(now, slot, told, lease);
            self.effects.push_back(Effect::HalfClose { stream });
        }
    }

    /// Asks for another lease length on every stream.
    pub(super) fn change_lease(&mut self, now: Instant, lease: Duration) {
        let mut changes = Vec::new();
        for live in self.live_mut() {
            if live.lease == lease {
                continue;
            }
            live.lease_before = live.lease;
            live.lease = lease;
            live.lease_changed = Some(now);
            changes.push(live.stream);
        }
        for stream in changes {
            self.effects.push_back(Effect::ChangeLease {
                stream,
                lease_seconds: seconds(lease),
            });
        }
    }

    /// The length of the leases of what a stream delivers now; `None` for one that is no more.
    pub(super) fn lease(&self, now: Instant, stream: StreamId) -> Option<Duration> {
        if let Some(live) = self.live().find(|live| live.stream == stream) {
            let changing = live
                .lease_changed
                .is_some_and(|at| now.saturating_duration_since(at) < CHANGE);
            return Some(if changing {
                live.lease.min(live.lease_before)
            } else {
                live.lease
            });
        }
        let old = self.retiring.iter().find(|old| old.stream == stream);
        old.map(|old| old.lease)
    }

    /// The server began to answer.
    pub(super) fn handle_opened(&mut self, now: Instant, stream: StreamId) {
        if let Some(live) = self.live_mut().find(|live| live.stream == stream) {
            live.opened = true;
            live.heard = now;
        }
    }

    /// A response came; an empty one answers a ping.
    pub(super) fn handle_response(&mut self, now: Instant, stream: StreamId, messages: usize) {
        let Some(at) = self.slot_of(stream) else {
            return;
        };
        let Slot::Live(live) = &mut self.slots[at] else {
            return;
        };
        live.opened = true;
        live.heard = now;
        if messages == 0 {
            self.answers_pings |= live.pinged;
        } else {
            live.delivered = true;
            self.failures[at] = 0;
        }
    }

    /// A stream is no more. Answers whether that was unasked for.
    pub(super) fn handle_end(
        &mut self,
        now: Instant,
        random: f64,
        stream: StreamId,
        end: StreamEnd,
    ) -> bool {
        self.retiring.retain(|old| old.stream != stream);
        let Some(slot) = self.slot_of(stream) else {
            return false;
        };
        let Slot::Live(live) = &self.slots[slot] else {
            return false;
        };
        let delay = match end {
            StreamEnd::Again if live.delivered => Duration::ZERO,
            StreamEnd::Again => {
                self.failures[slot] = self.failures[slot].saturating_add(1);
                REOPEN.full_jitter(self.failures[slot], random)
            }
            StreamEnd::After(pause) => {
                self.failures[slot] = self.failures[slot].saturating_add(1);
                REOPEN
                    .full_jitter(self.failures[slot], random)
                    .max(pause.min(REOPEN.delay(u32::MAX)))
            }
        };
        self.slots[slot] = Slot::Waiting(now + delay);
        let failures = self.failures[slot];
        self.effects.push_back(Effect::Tell(
            if failures >= FAILURES_TOLD && failures.is_power_of_two() {
                Notice::StreamFails {
                    slot,
                    failures,
                    delay,
                }
            } else {
                Notice::StreamReopens { slot, delay }
            },
        ));
        true
    }

    /// Reading stopped, or goes on. Silence counts anew then: nothing was read meanwhile.
    pub(super) fn set_reading(&mut self, now: Instant, reading: bool) {
        if reading && !self.reading {
            for live in self.live_mut() {
                live.heard = now;
            }
        }
        self.reading = reading;
    }

    /// Closes every stream, since nobody reads them: what they hold is leased and not ours.
    pub(super) fn close_unread(&mut self, now: Instant) -> bool {
        let mut any = false;
        for slot in &mut self.slots {
            if let Slot::Live(live) = slot {
                let stream = live.stream;
                *slot = Slot::Unread(now);
                any = true;
                self.effects.push_back(Effect::Drop { stream });
            }
        }
        any
    }

    /// Half-closes every stream for good.
    pub(super) fn close(&mut self, now: Instant) {
        self.closing = true;
        for slot in &mut self.slots {
            if let Slot::Live(live) = slot {
                let (stream, told) = (live.stream, live.told);
                self.retiring.push(Retiring {
                    stream,
                    told,
                    lease: live.lease.min(live.lease_before),
                    drop_at: now + LAST_FAREWELL,
                });
                *slot = Slot::Unread(now);
                self.effects.push_back(Effect::HalfClose { stream });
            }
        }
    }

    /// Drops every stream for good.
    pub(super) fn drop_all(&mut self, now: Instant) {
        self.closing = true;
        self.close_unread(now);
        for old in std::mem::take(&mut self.retiring) {
            self.effects.push_back(Effect::Drop { stream: old.stream });
        }
    }

    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub(super) fn has_effect(&self) -> bool {
        !self.effects.is_empty()
    }

    /// When something is to be done next.
    pub(super) fn next_timeout(&self, told: u64) -> Option<Instant> {
        let open = self.told();
        let slots = self.slots.iter().enumerate();
        let slots = slots.filter_map(|(index, slot)| match slot {
            // As in `open`: only the end of a stream makes room where there is none.
            Slot::Waiting(_) | Slot::Unread(_)
                if open > 0 && open + self.share(index, told) > self.bound =>
            {
                None
            }
            Slot::Waiting(at) => self.may_open().then_some(*at),
            Slot::Unread(since) => (self.reading && self.may_open()).then_some(*since),
            Slot::Live(live) => {
                let watched = self.reading && self.answers_pings;
                let silent = watched.then(|| live.heard + SILENCE);
                let next = silent.map_or(live.next_ping, |silent| silent.min(live.next_ping));
                (!live.given_up).then_some(next)
            }
        });
        slots
            .chain(self.retiring.iter().map(|old| old.drop_at))
            .min()
    }

    /// Streams whose server has begun to answer.
    pub(super) fn open_count(&self) -> usize {
        self.live().filter(|live| live.opened).count()
    }

    /// Streams that exist, half-closed ones included.
    pub(super) fn count(&self) -> usize {
        self.live().count() + self.retiring.len()
    }

    fn slot_of(&self, stream: StreamId) -> Option<usize> {
        self.slots.iter().position(|slot| match slot {
            Slot::Live(live) => live.stream == stream,
            Slot::Waiting(_) | Slot::Unread(_) => false,
        })
    }

    #[cfg(test)]
    pub(super) fn check_invariants(&self) {
        assert!(
            self.told() <= self.bound.max(self.slots.len() as u64),
            "the streams are told {} of {}",
            self.told(),
            self.bound
        );
    }
}

fn seconds(lease: Duration) -> u32 {
    u32::try_from(lease.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    fn started(now: Instant, slots: usize, bound: usize) -> Streams {
        let mut streams = Streams::new(now, slots, bound);
        assert!(streams.start());
        streams
    }

    fn opened(streams: &mut Streams) -> Vec<(StreamId, u64)> {
        let mut opened = Vec::new();
        while let Some(effect) = streams.poll_effect() {
            if let Effect::Open {
                stream,
                max_messages,
                ..
            } = effect
            {
                opened.push((stream, max_messages));
            }
        }
        opened
    }

    #[test]
    fn the_limit_is_divided_over_the_streams() {
        let now = crate::driver::now();
        let mut streams = started(now, 4, 100);
        streams.advance(now, 100, LEASE);
        let told: Vec<u64> = opened(&mut streams).iter().map(|(_, told)| *told).collect();
        assert_eq!(told, [25; 4]);
        streams.check_invariants();

        let mut streams = started(now, 3, 1000);
        streams.advance(now, 1000, LEASE);
        let told: Vec<u64> = opened(&mut streams).iter().map(|(_, told)| *told).collect();
        assert_eq!(told, [334, 333, 333]);
    }

    #[test]
    fn a_stream_that_delivered_opens_again_at_once_and_one_that_did_not_waits_longer_each_time() {
        let mut now = crate::driver::now();
        let mut streams = started(now, 1, 100);
        streams.advance(now, 100, LEASE);
        let (first, _) = opened(&mut streams)[0];
        streams.handle_response(now, first, 3);
        streams.handle_end(now, 1.0, first, StreamEnd::Again);
        streams.advance(now, 100, LEASE);
        let (mut stream, _) = opened(&mut streams)[0];
        let mut last = Duration::ZERO;
        for _ in 0..7 {
            streams.handle_end(now, 1.0, stream, StreamEnd::Again);
            streams.advance(now, 100, LEASE);
            assert!(opened(&mut streams).is_empty(), "not at once");
            let at = streams.next_timeout(100).unwrap();
            assert!(at - now > last);
            last = at - now;
            now = at;
            streams.advance(now, 100, LEASE);
            stream = opened(&mut streams)[0].0;
        }
        assert!(last <= Duration::from_secs(10));
    }

    #[test]
    fn the_watchdog_is_armed_by_the_first_answered_ping() {
        let start = crate::driver::now();
        let mut streams = started(start, 1, 100);
        streams.advance(start, 100, LEASE);
        let (stream, _) = opened(&mut streams)[0];
        streams.handle_opened(start, stream);
        for minute in 1..=10 {
            streams.advance(start + SECOND * 60 * minute, 100, LEASE);
        }
        assert!(
            opened(&mut streams).is_empty(),
            "a server that never answers is left alone"
        );

        let answered = start + SECOND * 601;
        streams.handle_response(answered, stream, 0);
        streams.advance(answered + SILENCE - SECOND, 100, LEASE);
        assert!(opened(&mut streams).is_empty());
        streams.advance(answered + SILENCE, 100, LEASE);
        assert!(opened(&mut streams).is_empty(), "its end is awaited");
        streams.handle_end(answered + SILENCE, 0.0, stream, StreamEnd::Again);
        streams.advance(answered + SILENCE, 100, LEASE);
        assert_eq!(opened(&mut streams).len(), 1);
    }

    #[test]
    fn silence_does_not_count_while_nobody_reads() {
        let start = crate::driver::now();
        let mut streams = started(start, 1, 100);
        streams.advance(start, 100, LEASE);
        let (stream, _) = opened(&mut streams)[0];
        streams.advance(start + PING, 100, LEASE);
        streams.handle_response(start + PING, stream, 0);
        streams.set_reading(start + PING, false);
        let later = start + SECOND * 600;
        streams.advance(later, 100, LEASE);
        streams.set_reading(later, true);
        streams.advance(later, 100, LEASE);
        assert!(opened(&mut streams).is_empty());
    }

    #[test]
    fn a_larger_limit_opens_a_successor_beside_the_stream_within_the_bound() {
        let now = crate::driver::now();
        let mut streams = started(now, 1, 10_000);
        streams.advance(now, 1000, LEASE);
        let (first, _) = opened(&mut streams)[0];
        streams.retell(now, 4000, LEASE);
        assert_eq!(opened(&mut streams)[0].1, 4000);
        streams.check_invariants();

        // 4,000 and 10,000 together pass the bound: one after the other.
        streams.handle_end(now, 0.0, first, StreamEnd::Again);
        streams.retell(now, 10_000, LEASE);
        assert!(opened(&mut streams).is_empty());
        let second = StreamId(1);
        streams.handle_end(now, 0.0, second, StreamEnd::Again);
        streams.advance(now, 10_000, LEASE);
        assert_eq!(opened(&mut streams)[0].1, 10_000);
        streams.check_invariants();
    }

    #[test]
    fn a_half_closed_stream_that_does_not_end_is_dropped() {
        let now = crate::driver::now();
        let mut streams = started(now, 1, 10_000);
        streams.advance(now, 1000, LEASE);
        streams.retell(now, 4000, LEASE);
        assert_eq!(streams.count(), 2);
        streams.advance(now + FAREWELL, 4000, LEASE);
        assert_eq!(streams.count(), 1);
    }

    #[test]
    fn around_a_change_of_the_lease_the_shorter_one_counts() {
        let now = crate::driver::now();
        let mut streams = started(now, 1, 100);
        streams.advance(now, 100, SECOND * 20);
        let (stream, _) = opened(&mut streams)[0];
        streams.change_lease(now, SECOND * 30);
        assert_eq!(streams.lease(now, stream), Some(SECOND * 20));
        assert_eq!(streams.lease(now + CHANGE, stream), Some(SECOND * 30));
        streams.change_lease(now + CHANGE, SECOND * 10);
        assert_eq!(streams.lease(now + CHANGE, stream), Some(SECOND * 10));
    }
}
