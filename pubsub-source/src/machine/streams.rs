//! The pull streams: when they open, what they are told, when they are given up.

mod closing;
mod limit;
mod slot;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use connector_core::backoff::Backoff;

pub(super) use self::closing::LAST_FAREWELL;
use self::slot::{Live, Retiring, Slot};
use super::effect::{Effect, Notice, StreamId};
use crate::settings::Settings;

/// How often a stream gets an empty request: the service closes a stream that sends nothing for
/// 75 to 90 s, and Google's clients ping every 30 s.
pub(super) const PING: Duration = Duration::from_secs(30);

/// How long a stream that answers pings may be silent: one ping interval, and 15 s for its answer,
/// as in Google's clients.
pub(super) const SILENCE: Duration = Duration::from_secs(45);

/// How long a stream may go without any answer at all, not even headers. Nothing says that it is dead:
/// an idle subscription may send none, and Google's emulator answers no ping. So it is half-closed and
/// followed by another. The service closes a stream that says nothing after 75 to 90 s too.
const UNANSWERED: Duration = Duration::from_secs(75);

/// How long a stream that was answered may be silent while the server has never answered a ping. It
/// may be as well as an idle one on Google's emulator, or as dead as one whose server died between
/// its first response and its first ping; a successor serves both.
const QUIET: Duration = Duration::from_secs(300);

/// How long a half-closed stream may take to end. The service ends it at once.
const FAREWELL: Duration = Duration::from_secs(5);

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
    /// As much in bytes, where there is such a bound.
    bytes: Option<u64>,
    /// A stream opens only after the one before has ended: the order of keys holds on one stream.
    alone: bool,
    effects: VecDeque<Effect>,
    /// Nothing is opened before the host asks for the first message.
    started: bool,
    closing: bool,
    /// Nothing is opened until the host wants messages again.
    parked: bool,
    reading: bool,
    /// The server has answered a ping, so its silence means something. Google's emulator never
    /// does.
    answers_pings: bool,
}

impl Streams {
    pub(super) fn new(now: Instant, settings: &Settings) -> Self {
        let slots = settings.streams;
        Self {
            slots: (0..slots).map(|_| Slot::Waiting(now)).collect(),
            failures: vec![0; slots],
            retiring: Vec::new(),
            next: 0,
            bound: settings.outstanding as u64,
            bytes: settings.outstanding_bytes,
            alone: settings.message_ordering,
            effects: VecDeque::new(),
            started: false,
            closing: false,
            parked: false,
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

    /// Whether streams are wanted at all.
    pub(super) fn may_open(&self) -> bool {
        self.started && !self.closing && !self.parked
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
                } else if reading && !live.opened && silence >= UNANSWERED
                    || reading && !self.answers_pings && silence >= QUIET
                {
                    self.succeed(now, slot, told, lease);
                    self.effects
                        .push_back(Effect::Tell(Notice::StreamUnanswered { slot, silence }));
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
        if !self.has_room(slot, told) {
            return;
        }
        let live = self.begin(now, slot, share, lease);
        self.slots[slot] = Slot::Live(live);
    }

    fn begin(&mut self, now: Instant, slot: usize, share: u64, lease: Duration) -> Live {
        let stream = StreamId(self.next);
        self.next += 1;
        let told_bytes = self.share_of_bytes(slot);
        self.effects.push_back(Effect::Open {
            stream,
            slot,
            lease_seconds: seconds(lease),
            max_messages: share,
            max_bytes: told_bytes,
        });
        Live {
            stream,
            told: share,
            told_bytes,
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

    pub(super) fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub(super) fn has_effect(&self) -> bool {
        !self.effects.is_empty()
    }

    /// When something is to be done next.
    pub(super) fn next_timeout(&self, told: u64) -> Option<Instant> {
        let slots = self.slots.iter().enumerate();
        let slots = slots.filter_map(|(index, slot)| match slot {
            // As in `open`: only the end of a stream makes room where there is none.
            Slot::Waiting(_) | Slot::Unread(_) if !self.has_room(index, told) => None,
            Slot::Waiting(at) => self.may_open().then_some(*at),
            Slot::Unread(since) => (self.reading && self.may_open()).then_some(*since),
            Slot::Live(live) => {
                let bound = match (self.answers_pings, live.opened) {
                    (true, _) => SILENCE,
                    (false, false) => UNANSWERED,
                    (false, true) => QUIET,
                };
                let silent = self.reading.then(|| live.heard + bound);
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
}

fn seconds(lease: Duration) -> u32 {
    u32::try_from(lease.as_secs()).unwrap_or(u32::MAX)
}
