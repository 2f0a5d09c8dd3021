//! Every decision of the source, without a clock, a random number or a network.
//!
//! The machine owns the deliveries: which are buffered, handed out, sealed, being acknowledged or
//! given back, until when they are leased, and what is sent about them. Its methods are of four
//! kinds: `handle_*` for what happened, plain verbs for what the host asks, `poll_effect` and
//! `poll_timeout` for what to do next, nouns for what is so. Time goes in as `now`, chance as
//! `random`, a number in `0.0..1.0`.

mod ack_ids;
mod acks;
mod answers;
mod arrivals;
mod batch;
mod batches;
mod buffer;
mod cadence;
mod calls;
mod closing;
mod commits;
mod cutting;
mod deliveries;
mod effect;
mod exactly_once;
mod figures;
mod host;
#[cfg(any(test, fuzzing))]
mod invariants;
mod key;
mod leases;
mod need;
mod ordering;
mod outage;
mod partial;
mod pausing;
mod places;
mod request;
mod restoration;
mod restored;
mod runs;
mod saved_ack_ids;
#[cfg(test)]
mod scale;
mod seen;
mod streams;
#[cfg(test)]
mod tests;
mod upkeep;

pub(crate) use ack_ids::AckIds;
pub(crate) use answers::{Answer, IdVerdict};
pub(crate) use arrivals::Pulled;
pub(crate) use buffer::Parcel;
pub(crate) use calls::CallId;
pub(crate) use effect::{CallMethod, Effect, Notice, SettleId, StreamId};
pub(crate) use key::MessageKey;
pub(crate) use partial::{Begun, Unfinished};
pub(crate) use restoration::{Restoration, RestoredGroup, RestoredHeld};
pub(crate) use saved_ack_ids::AckIdsView;
pub(crate) use seen::SeenView;
pub(crate) use streams::StreamEnd;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use connector_core::{Cause, ledger::Ledger};
use gcp_wire::SubscriptionName;

use crate::{
    delivery::DeliveryId, error::SourceError, settings::Settings, source::Room, start::SeekId,
    state::SavedDeliveries, stats::Stats,
};
use acks::Acks;
use buffer::Buffer;
use cadence::Cadence;
use calls::Calls;
use commits::Commits;
use deliveries::Deliveries;
use leases::Leases;
use need::Need;
use outage::Outage;
use partial::Partials;
use pausing::Flow;
use restored::RestoredCommit;
use runs::Runs;
use seen::Seen;
use streams::Streams;

/// How long an id stays in the seen window beyond one lease cap, in open-stream time. The service
/// has redelivered within seconds of a lease's end; ten minutes also cover a subscription that
/// another subscriber held until its own lease ended.
const SEEN_BEYOND_LEASE: Duration = Duration::from_secs(600);

/// Whether the source runs.
#[derive(Debug, Clone)]
enum Phase {
    Running,
    /// Finishes what was committed and gives the rest back, until the deadline if there is one: a
    /// time beyond all clocks is none.
    Closing {
        cause: Cause,
        deadline: Option<Instant>,
    },
    Closed {
        cause: Cause,
    },
}

/// The source.
#[derive(Debug)]
pub(crate) struct Machine {
    subscription: SubscriptionName,
    instance: Arc<str>,
    settings: Settings,
    phase: Phase,
    /// The terminal error, until the reader has had it.
    error: Option<SourceError>,
    /// Whether it ends because of an error, and not because its host closes it.
    failed: bool,
    deliveries: Deliveries,
    leases: Leases,
    /// The length of new leases.
    lease: Duration,
    acks: Acks,
    /// A turn looked at as much as it may for acknowledgements, and found nothing to send.
    look_again: Option<Instant>,
    releases: BTreeMap<u32, VecDeque<DeliveryId>>,
    calls: Calls,
    streams: Streams,
    seen: Seen,
    partials: Partials,
    /// The ordering keys, where their order is kept.
    runs: Option<Runs>,
    /// Something in the buffer was dropped since it was last looked through.
    unsifted: bool,
    buffer: Buffer,
    need: Need,
    cadence: Cadence,
    /// Whether the host takes what comes.
    flow: Flow,
    /// Whether the source has room for more, as far as this split was told.
    room: Room,
    /// Since when the budget that the source shares is spent, and whether that was told.
    spent: Option<(Instant, bool)>,
    /// Since when responses say that the subscription has exactly-once delivery.
    exactly_once: Option<Instant>,
    effects: VecDeque<Effect>,
    /// Waiting settlements, by the delivery that the host named.
    settles: BTreeMap<DeliveryId, SettleId>,
    next_settle: u64,
    commits: Commits,
    /// Changes whenever something that the handle may have taken must not come out any more.
    revoked: u64,
    /// Since when nothing is read from the streams.
    unread_since: Option<Instant>,
    first_message: Option<Instant>,
    last_checkpoint: Option<Instant>,
    /// Whether the host settles deliveries by itself.
    settles_itself: bool,
    /// When a response last could not be read, and how many tries that makes.
    undecodable: Option<(Instant, u32)>,
    outage: Outage,
    late_told: bool,
    /// The host wants nothing more than what was fetched.
    stopping: bool,
    /// Deliveries say how often they were tried: the subscription has a dead-letter policy.
    counts_attempts: bool,
    /// Batches below were checked against `max_hold`.
    hold_cursor: u64,
    /// Whether it was told that `max_hold` is short for the cadence.
    hold_told: bool,
    restored: RestoredCommit,
    /// The seek after which this source reads, for the states that it gives out.
    sought: Option<SeekId>,
    stats: Stats,
}

impl Machine {
    pub(crate) fn new(
        now: Instant,
        subscription: SubscriptionName,
        instance: Arc<str>,
        settings: Settings,
        restoration: Restoration,
    ) -> Self {
        let cadence = Cadence::new(settings.max_extension);
        let lease = cadence.lease();
        let ledger = match restoration.epoch {
            Some(epoch) => Ledger::restore(epoch, Vec::new()).0,
            None => Ledger::new(),
        };
        let floor = restoration.groups.iter().map(|group| group.published_by);
        let floor = floor.max().unwrap_or(i64::MIN);
        let (runs, acks) = Self::keep_order(&settings, floor, restoration.behind);
        let mut machine = Self {
            deliveries: Deliveries::new(
                ledger,
                settings.saved_deliveries == SavedDeliveries::AckIds,
            ),
            leases: Leases::default(),
            lease,
            acks,
            look_again: None,
            runs,
            unsifted: false,
            releases: BTreeMap::new(),
            calls: Calls::default(),
            streams: Streams::new(now, &settings),
            seen: Seen::new(settings.seen_limit),
            partials: Partials::default(),
            buffer: Buffer::new(settings.buffer),
            need: Need::new(settings.first_outstanding, settings.outstanding),
            cadence,
            flow: Flow::Running,
            room: Room::Free,
            spent: None,
            phase: Phase::Running,
            error: None,
            failed: false,
            exactly_once: None,
            effects: VecDeque::new(),
            settles: BTreeMap::new(),
            next_settle: 0,
            commits: Commits::new(settings.confirm_acks, settings.max_extension),
            revoked: 0,
            unread_since: None,
            first_message: None,
            last_checkpoint: None,
            settles_itself: false,
            undecodable: None,
            outage: Outage::default(),
            late_told: false,
            stopping: false,
            counts_attempts: false,
            hold_cursor: 0,
            hold_told: false,
            restored: RestoredCommit::default(),
            sought: restoration.sought,
            stats: Stats::default(),
            subscription,
            instance,
            settings,
        };
        machine.restore_unfinished(now, restoration.unfinished);
        machine.restore(now, restoration.groups);
        machine
    }

    fn seen_lifetime(&self) -> Duration {
        self.settings.max_extension + SEEN_BEYOND_LEASE
    }

    /// The host is ready to receive: opens the streams. Answers whether they were closed.
    pub(crate) fn start(&mut self, now: Instant) -> bool {
        let first = self.streams.start();
        if first {
            self.commit_restored(now);
            self.handle_timeout(now);
        }
        first
    }

    /// Whether [`start`](Self::start) was called.
    pub(crate) fn is_started(&self) -> bool {
        self.streams.is_started()
    }

    /// Whether there is something to do that no timer announces.
    pub(crate) fn has_work(&self) -> bool {
        !self.effects.is_empty()
            || self.streams.has_effect()
            || !self.acks.is_empty()
            || self.may_release()
    }

    /// The next thing to do at `now`.
    pub(crate) fn poll_effect(&mut self, now: Instant) -> Option<Effect> {
        self.poll_committed(now);
        if let Some(effect) = self.effects.pop_front() {
            return Some(effect);
        }
        if let Some(effect) = self.streams.poll_effect() {
            if let Effect::Open { .. } = effect {
                self.stats.streams_opened += 1;
            }
            return Some(effect);
        }
        if let Phase::Closed { .. } = self.phase {
            return None;
        }
        let effect = self.cut(now);
        // Cutting may give verdicts: to what is gone already.
        if effect.is_none() {
            self.poll_committed(now);
            return self.effects.pop_front();
        }
        effect
    }

    fn poll_committed(&mut self, now: Instant) {
        while let Some((commit, committed)) = self.deliveries.poll_committed() {
            if let Some(since) = self.commits.finish(commit) {
                let took = now.saturating_duration_since(since);
                self.need.handle_committed(took);
                self.stats.commit_seconds = Stats::seconds(took);
            }
            self.stats.commits += 1;
            self.effects
                .push_back(Effect::Committed { commit, committed });
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, if nothing happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if let Phase::Closed { .. } = self.phase {
            return None;
        }
        [
            self.leases.next_end(),
            self.next_extension(),
            self.calls.next_timeout(),
            self.streams.next_timeout(self.need.told()),
            self.seen.next_timeout(),
            self.next_upkeep(),
            self.next_spent_told(),
            self.look_again,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The streams, for a report.
    #[cfg(test)]
    pub(crate) fn streams(&self) -> &impl std::fmt::Debug {
        &self.streams
    }

    /// Whether there is something for the reader: messages, an error or the end.
    pub(crate) fn has_news(&self) -> bool {
        match self.phase {
            Phase::Running => {
                let ready = self.flow.paused_since().is_none() && self.buffer.has_ready();
                ready || self.has_stopped()
            }
            Phase::Closing { .. } | Phase::Closed { .. } => true,
        }
    }

    /// Whether everything is done that a closing source does.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// Why every call is refused, once the source has ended or is ending.
    pub(crate) fn closed(&self) -> Option<&Cause> {
        match &self.phase {
            Phase::Running => None,
            Phase::Closing { cause, .. } | Phase::Closed { cause } => Some(cause),
        }
    }

    /// What it died of, if it did not end in good order.
    pub(crate) fn fallen(&self) -> Option<&Cause> {
        self.closed().filter(|_| self.failed)
    }

    /// The terminal error, once.
    pub(crate) fn take_error(&mut self) -> Option<SourceError> {
        self.error.take()
    }

    /// Changes whenever something that the handle may have taken must not come out any more.
    pub(crate) fn revoked(&self) -> u64 {
        self.revoked
    }

    fn tell(&mut self, notice: Notice) {
        // Bounded by what happens between two turns of the driver: it drains after each.
        self.effects.push_back(Effect::Tell(notice));
    }

    fn note_overflow(&mut self) {
        let ids = self.seen.overflowed() - self.stats.seen_overflowed;
        if ids > 0 {
            self.stats.seen_overflowed += ids;
            let limit = self.settings.seen_limit;
            self.tell(Notice::SeenOverflowed { ids, limit });
        }
    }
}
