//! A subscription: what it was told, and what it does with its messages.

mod delivering;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::backlog::{Backlog, Due, Freed, Standing};
use super::filter::Filter;
use super::message::Stored;
use super::ordering::Holder;
use super::record::Ending;
use super::retry::Pauses;
use super::stream::{End, Stream, StreamId};
use super::{AckFailure, LateAcks, OnStreamClose, Refusal, Settings, SubscriptionRecord};
use crate::pubsub::proto;
use crate::time::{Time, from_proto_duration};

/// What a subscription needs of the machine around it.
pub(super) struct Surroundings<'a> {
    pub(super) now: Time,
    pub(super) settings: &'a Settings,
    pub(super) record: &'a mut SubscriptionRecord,
    pub(super) next_lease: &'a mut u64,
    pub(super) woken: &'a mut BTreeSet<StreamId>,
    /// Whether a dead-letter topic is there to take messages.
    pub(super) dead_letters: bool,
    /// Messages that leave for the dead-letter topic.
    pub(super) forwards: Vec<Forward>,
}

/// A message on its way to the dead-letter topic.
#[derive(Debug)]
pub(super) struct Forward {
    pub(super) stored: Arc<Stored>,
    pub(super) attempts: u32,
}

/// What an acknowledgement or an extension came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Success without effect.
    Ignored,
    Failed(AckFailure),
}

#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) number: u32,
    pub(super) config: proto::Subscription,
    pub(super) filter: Option<Filter>,
    pub(super) backlog: Backlog,
    pub(super) streams: BTreeMap<u64, Stream>,
    pub(super) active_at: Time,
    /// How long messages are kept: the longer of the subscription's and its topic's retention.
    pub(super) retention: Duration,
}

/// The default of `ack_deadline_seconds` (interface definition of `Subscription`).
const DEFAULT_DEADLINE: u64 = 10;

/// The default of a dead-letter policy's attempts (interface definition of `DeadLetterPolicy`).
const DEFAULT_ATTEMPTS: u32 = 5;

impl Subscription {
    pub(super) fn deadline(&self) -> Duration {
        let seconds = u64::try_from(self.config.ack_deadline_seconds).unwrap_or(0);
        Duration::from_secs(if seconds == 0 {
            DEFAULT_DEADLINE
        } else {
            seconds
        })
    }

    /// How many deliveries a message gets before it is forwarded; `None` without a policy.
    fn attempts_allowed(&self) -> Option<u32> {
        let policy = self.config.dead_letter_policy.as_ref()?;
        let given = u32::try_from(policy.max_delivery_attempts).unwrap_or(0);
        Some(if given == 0 { DEFAULT_ATTEMPTS } else { given })
    }

    /// How long the subscription lives without use; `None` for ever.
    fn time_to_live(&self) -> Option<Duration> {
        self.config
            .expiration_policy
            .as_ref()?
            .ttl
            .as_ref()
            .and_then(from_proto_duration)
    }

    /// When something happens on the subscription by itself.
    pub(super) fn next_due(&self, settings: &Settings) -> Option<Time> {
        let too_old = self
            .backlog
            .oldest()
            .map(|oldest| oldest.at + self.retention);
        let expires = if self.streams.is_empty() {
            self.time_to_live().map(|ttl| self.active_at + ttl)
        } else {
            None
        };
        let streams = self
            .streams
            .values()
            .filter_map(|s| s.ends_at(settings.idle_stream_limit, settings.stream_lifetime))
            .min();
        [self.backlog.next_due(), too_old, expires, streams]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets what is due happen. True when the subscription itself expired.
    pub(super) fn handle_timeout(&mut self, around: &mut Surroundings<'_>) -> bool {
        while let Some(due) = self.backlog.take_due(around.now) {
            match due {
                Due::Lease(number) => self.lapse(around, number, Ending::Lapsed),
                Due::Retry(seq) => self.backlog.rested(seq),
                Due::Early(seq) => {
                    // Settled meanwhile: then there is nothing to make available.
                    self.redeliver_early(around, seq);
                }
            }
        }
        while let Some(oldest) = self.backlog.oldest()
            && oldest.at + self.retention <= around.now
        {
            let seq = oldest.seq;
            let freed = self.backlog.remove(seq);
            self.free(freed);
        }
        for stream in self.streams.values_mut() {
            let settings = around.settings;
            let ends = stream.ends_at(settings.idle_stream_limit, settings.stream_lifetime);
            if ends.is_some_and(|at| at <= around.now) {
                stream.end = Some(End::Refused(Refusal::StreamClosed));
            }
        }
        self.streams.is_empty()
            && self
                .time_to_live()
                .is_some_and(|ttl| self.active_at + ttl <= around.now)
    }

    /// Takes in a message of the topic, unless the filter says no.
    pub(super) fn offer(&mut self, stored: &Arc<Stored>) {
        if self.wants(stored) {
            self.backlog.add(Arc::clone(stored));
        }
    }

    pub(super) fn wants(&self, stored: &Stored) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.matches(&stored.message.attributes))
    }

    /// Acknowledges what a lease names.
    pub(super) fn ack(&mut self, around: &mut Surroundings<'_>, lease: u64) -> Outcome {
        let exactly_once = self.config.enable_exactly_once_delivery;
        let (standing, lease) = self.backlog.standing(lease);
        let counts = match standing {
            Standing::Live => true,
            Standing::Late => !exactly_once && around.settings.late_acks != LateAcks::Never,
            Standing::Gone => false,
        };
        let Some(lease) = lease.filter(|_| counts) else {
            return missed(around, exactly_once);
        };
        if exactly_once && self.backlog.is_out_of_order(lease.seq) {
            around.record.refused += 1;
            return Outcome::Failed(AckFailure::UnorderedAckId);
        }
        let Some(id) = self
            .backlog
            .entry(lease.seq)
            .map(|entry| Arc::clone(&entry.stored.id))
        else {
            return missed(around, exactly_once);
        };
        let freed = self.backlog.ack(lease.seq);
        self.free(freed);
        let keep = around.settings.history.entries;
        around.record.settled(Ending::Acked, id, around.now, keep);
        Outcome::Done
    }

    /// Moves a lease's end to `span` from now; zero gives the message back.
    pub(super) fn modify(
        &mut self,
        around: &mut Surroundings<'_>,
        lease: u64,
        span: Duration,
    ) -> Outcome {
        if self.backlog.standing(lease).0 != Standing::Live {
            return missed(around, self.config.enable_exactly_once_delivery);
        }
        if span.is_zero() {
            self.lapse(around, lease, Ending::Nacked);
        } else {
            around.record.extensions += 1;
            self.backlog.extend(lease, around.now + span);
        }
        Outcome::Done
    }

    /// A delivery ended without an acknowledgement.
    fn lapse(&mut self, around: &mut Surroundings<'_>, number: u64, ending: Ending) {
        let (Standing::Live, Some(lease)) = self.backlog.standing(number) else {
            return;
        };
        let freed = self.backlog.end_lease(number);
        self.free(freed);
        let Some(entry) = self.backlog.entry(lease.seq) else {
            return;
        };
        let stored = Arc::clone(&entry.stored);
        let failures = entry.failures + 1;
        let keep = around.settings.history.entries;
        around
            .record
            .settled(ending, Arc::clone(&stored.id), around.now, keep);
        let exhausted = self
            .attempts_allowed()
            .is_some_and(|allowed| failures >= allowed);
        if exhausted && around.dead_letters {
            let freed = self.backlog.remove(stored.seq);
            self.free(freed);
            around.forwards.push(Forward {
                stored,
                attempts: failures,
            });
            return;
        }
        let pause = self
            .config
            .retry_policy
            .as_ref()
            .and_then(|policy| Pauses::of(policy).ok())
            .map_or(Duration::ZERO, |pauses| pauses.after(failures));
        for freed in self.backlog.fail(stored.seq, true, around.now, pause) {
            self.free(Some(freed));
        }
        if ending == Ending::Nacked {
            // What was given back is not acknowledged by a late word.
            self.backlog.forget_late(stored.seq);
        }
    }

    /// Makes a leased message available again in spite of its lease. True when it was leased.
    pub(super) fn redeliver_early(&mut self, around: &Surroundings<'_>, seq: u64) -> bool {
        let Some(number) = self.backlog.live_lease(seq) else {
            return false;
        };
        self.give_back(around, number);
        true
    }

    /// Ends a lease and makes its message available at once, without counting a failure.
    fn give_back(&mut self, around: &Surroundings<'_>, number: u64) {
        let (Standing::Live, Some(lease)) = self.backlog.standing(number) else {
            return;
        };
        let freed = self.backlog.end_lease(number);
        self.free(freed);
        for freed in self
            .backlog
            .fail(lease.seq, false, around.now, Duration::ZERO)
        {
            self.free(Some(freed));
        }
    }

    /// A pull stream is gone, however it ended.
    pub(super) fn close(&mut self, around: &Surroundings<'_>, stream: u64) {
        if self.streams.remove(&stream).is_none() {
            return;
        }
        match around.settings.on_stream_close {
            OnStreamClose::WaitForDeadline => {}
            OnStreamClose::RedeliverAtOnce => {
                for number in self.backlog.leases_of(stream) {
                    self.give_back(around, number);
                }
            }
        }
    }

    /// Ends every open stream, for example because the subscription is gone.
    pub(super) fn end_streams(&mut self, refusal: &Refusal) {
        for stream in self.streams.values_mut() {
            stream.end = Some(End::Refused(refusal.clone()));
        }
    }

    pub(super) fn free(&mut self, freed: Option<Freed>) {
        if let Some(Freed {
            holder: Holder::Stream(number),
            bytes,
        }) = freed
            && let Some(stream) = self.streams.get_mut(&number)
        {
            stream.freed(bytes);
        }
    }

    /// Marks the streams that have something to send and whose client waits for it.
    pub(super) fn wake(&self, woken: &mut BTreeSet<StreamId>) {
        for (number, stream) in &self.streams {
            if stream.idle && self.has_something(*number, stream) {
                woken.insert(StreamId(*number));
            }
        }
    }

    fn has_something(&self, number: u64, stream: &Stream) -> bool {
        stream.end.is_some()
            || stream.pings > 0
            || stream.has_confirmations()
            || (stream.has_room() && self.backlog.next_for(Holder::Stream(number)).is_some())
    }

    /// Panics when the parts contradict each other.
    pub(super) fn check_invariants(&self) {
        self.backlog.check_invariants();
        for (number, stream) in &self.streams {
            let leases = self.backlog.leases_of(*number);
            assert_eq!(
                stream.outstanding().0,
                leases.len() as u64,
                "room of stream {number}"
            );
        }
    }
}

fn missed(around: &mut Surroundings<'_>, exactly_once: bool) -> Outcome {
    if exactly_once {
        around.record.refused += 1;
        Outcome::Failed(AckFailure::InvalidAckId)
    } else {
        around.record.ignored += 1;
        Outcome::Ignored
    }
}
