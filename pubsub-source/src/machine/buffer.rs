//! Messages that were received and not handed out.

use std::{
    collections::{BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use connector_core::Limits;

use crate::message::Message;

/// What is buffered is at most what the host takes in this time: more would only age here while
/// other subscribers are idle.
const TARGET: Duration = Duration::from_secs(5);

/// The hand-out rate is measured over windows of at least this length.
const WINDOW: Duration = Duration::from_secs(1);

/// The target never goes below this many messages: one full response of the service.
const LEAST_TARGET: usize = 1000;

/// The messages of one batch.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// The batch their deliveries belong to.
    pub(crate) batch: u64,
    /// In the order in which they are to be handed out.
    pub(crate) messages: Vec<Message>,
    /// The batches whose leases must be confirmed first: their own, and those of redeliveries that
    /// took over.
    waits: Vec<u64>,
    bytes: usize,
}

/// The hand-over queue, with its bound in messages and bytes.
///
/// What the handle has taken still counts until it says what became of it.
#[derive(Debug)]
pub(super) struct Buffer {
    parcels: VecDeque<Parcel>,
    /// Confirmations that parcels wait for, counted once for each parcel. Mostly none.
    waits: usize,
    bound: Limits,
    held: Limits,
    rate: Option<f64>,
    window: Option<(Instant, usize)>,
    ran_dry: bool,
}

impl Buffer {
    pub(super) fn new(bound: Limits) -> Self {
        Self {
            parcels: VecDeque::new(),
            waits: 0,
            bound,
            held: Limits::default(),
            rate: None,
            window: None,
            ran_dry: false,
        }
    }

    /// Takes the messages of a batch in.
    pub(super) fn push(&mut self, batch: u64, messages: Vec<Message>, withheld: bool) {
        if messages.is_empty() {
            return;
        }
        let bytes = messages.iter().map(Message::size).sum();
        self.held.items += messages.len();
        self.held.bytes += bytes;
        self.waits += usize::from(withheld);
        self.parcels.push_back(Parcel {
            batch,
            messages,
            waits: if withheld { vec![batch] } else { Vec::new() },
            bytes,
        });
    }

    /// The next messages to hand out.
    pub(super) fn take(&mut self) -> Option<Parcel> {
        // In order: what waits for its confirmation holds up what came after it.
        if !self.has_ready() {
            return None;
        }
        self.parcels.pop_front()
    }

    pub(super) fn has_ready(&self) -> bool {
        let first = self.parcels.front();
        first.is_some_and(|parcel| parcel.waits.is_empty())
    }

    /// The lease of a batch was confirmed: its messages may be handed out.
    pub(super) fn confirm(&mut self, batch: u64) {
        // Asked for every batch that goes, and there may be a parcel for each message.
        if self.waits == 0 {
            return;
        }
        for parcel in &mut self.parcels {
            let before = parcel.waits.len();
            parcel.waits.retain(|waited| *waited != batch);
            self.waits -= before - parcel.waits.len();
        }
    }

    /// Whether something waits for the confirmation of a batch.
    pub(super) fn awaits(&self, batch: u64) -> bool {
        let waits = |parcel: &Parcel| parcel.waits.contains(&batch);
        self.waits > 0 && self.parcels.iter().any(waits)
    }

    /// A message of the parcel of `batch` was delivered again in another batch, whose lease must be
    /// confirmed too. Answers whether it was here still.
    pub(super) fn wait_for(&mut self, batch: u64, other: u64) -> bool {
        let parcel = self.parcels.iter_mut().find(|parcel| parcel.batch == batch);
        let Some(parcel) = parcel else { return false };
        if !parcel.waits.contains(&other) {
            parcel.waits.push(other);
            self.waits += 1;
        }
        true
    }

    /// From now on everything waits for the confirmation of its lease, which `leased_in` finds.
    /// Answers the batches that are waited for.
    pub(super) fn withhold(
        &mut self,
        leased_in: impl Fn(&Message) -> Option<u64>,
    ) -> BTreeSet<u64> {
        let mut waited = BTreeSet::new();
        self.waits = 0;
        for parcel in &mut self.parcels {
            let batches: BTreeSet<u64> = parcel.messages.iter().filter_map(&leased_in).collect();
            waited.extend(&batches);
            self.waits += batches.len();
            parcel.waits = batches.into_iter().collect();
        }
        waited
    }

    /// From now on nothing waits for a confirmation.
    pub(super) fn confirm_all(&mut self) {
        self.waits = 0;
        for parcel in &mut self.parcels {
            parcel.waits.clear();
        }
    }

    /// Drops the messages that `keep` does not want to keep.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Message) -> bool) {
        let held = &mut self.held;
        for parcel in &mut self.parcels {
            let bytes = &mut parcel.bytes;
            parcel.messages.retain(|message| {
                let kept = keep(message);
                if !kept {
                    held.items -= 1;
                    held.bytes -= message.size();
                    *bytes -= message.size();
                }
                kept
            });
        }
        let waits = &mut self.waits;
        self.parcels.retain(|parcel| {
            let kept = !parcel.messages.is_empty();
            if !kept {
                *waits -= parcel.waits.len();
            }
            kept
        });
    }

    /// Messages that the handle had taken were handed out, or dropped there.
    pub(super) fn handle_left(&mut self, now: Instant, left: Limits, handed_out: usize) {
        debug_assert!(left.items <= self.held.items && left.bytes <= self.held.bytes);
        self.held.items = self.held.items.saturating_sub(left.items);
        self.held.bytes = self.held.bytes.saturating_sub(left.bytes);
        self.measure(now, handed_out);
    }

    /// Whether one more response may be read.
    pub(super) fn wants_more(&self) -> bool {
        // A rate beyond what fits a usize is no rate; the cast saturates.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a product of two non-negative numbers; `as` saturates"
        )]
        let target = match self.rate {
            Some(_) => (self.target() as usize).max(LEAST_TARGET),
            None => usize::MAX,
        };
        self.has_room() && self.held.items < target
    }

    /// Whether the bound allows one more response.
    pub(super) fn has_room(&self) -> bool {
        self.bound.admits(self.held)
    }

    /// The host takes nothing for a while, which says nothing about how fast it is.
    pub(super) fn rest(&mut self) {
        self.window = None;
    }

    /// What the host takes in the time that is worth buffering for; nothing before a rate is known.
    pub(super) fn target(&self) -> f64 {
        self.rate.unwrap_or_default() * TARGET.as_secs_f64()
    }

    pub(super) fn held(&self) -> Limits {
        self.held
    }

    /// A window that the buffer outlasted measures the host; one in which it ran dry measures the
    /// subscription, and only shows that the host is at least that fast.
    fn measure(&mut self, now: Instant, handed_out: usize) {
        let Some((since, before)) = self.window else {
            self.window = Some((now, 0));
            self.ran_dry = self.held.items == 0;
            return;
        };
        let count = before + handed_out;
        self.ran_dry |= self.held.items == 0;
        let elapsed = now.saturating_duration_since(since);
        if elapsed < WINDOW {
            self.window = Some((since, count));
            return;
        }
        // Exact up to 2^53 messages in a window.
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let seen = count as f64 / elapsed.as_secs_f64();
        self.rate = match (self.rate, self.ran_dry) {
            (Some(rate), true) => Some(rate.max(seen)),
            (None, true) => None,
            (Some(rate), false) => Some((rate + seen) / 2.0),
            (None, false) => Some(seen),
        };
        self.window = Some((now, 0));
        self.ran_dry = self.held.items == 0;
    }

    /// Checks what only this type can break.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        let waits = self.parcels.iter().map(|parcel| parcel.waits.len());
        assert_eq!(waits.sum::<usize>(), self.waits, "waits are counted");
    }

    /// Every message in the queue.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> + '_ {
        self.parcels.iter().flat_map(|parcel| &parcel.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn messages(count: usize) -> Vec<Message> {
        (0..count)
            .map(|number| Message::fake(number as u64, 10))
            .collect()
    }

    #[test]
    fn the_bound_holds_in_messages_and_in_bytes() {
        let mut buffer = Buffer::new(Limits::new(3, 1_000_000));
        buffer.push(0, messages(2), false);
        assert!(buffer.wants_more());
        buffer.push(1, messages(2), false);
        assert!(!buffer.wants_more());

        let mut buffer = Buffer::new(Limits::new(1000, 100));
        buffer.push(0, messages(1), false);
        assert!(buffer.wants_more());
        buffer.push(1, messages(1), false);
        assert!(!buffer.wants_more());
    }

    #[test]
    fn no_more_is_buffered_than_the_host_takes_in_five_seconds() {
        let start = crate::driver::now();
        let mut buffer = Buffer::new(Limits::new(100_000, usize::MAX));
        buffer.push(0, messages(3000), false);
        assert!(buffer.wants_more(), "no rate is known yet");
        for second in 0..4u32 {
            let left = Limits::new(300, 300 * Message::fake(0, 10).size());
            buffer.handle_left(start + SECOND * second, left, 300);
        }
        assert!(buffer.held().items > 5 * 300);
        assert!(!buffer.wants_more());
    }

    #[test]
    fn a_buffer_that_runs_dry_says_nothing_against_the_host() {
        let start = crate::driver::now();
        let mut buffer = Buffer::new(Limits::new(100_000, usize::MAX));
        for second in 0..5u32 {
            buffer.push(u64::from(second), messages(1), false);
            let parcel = buffer.take().unwrap();
            buffer.handle_left(start + SECOND * second, Limits::new(1, parcel.bytes), 1);
        }
        assert_eq!(buffer.rate, None);
        buffer.push(9, messages(50_000), false);
        assert!(buffer.wants_more());
    }

    #[test]
    fn what_waits_for_its_confirmation_holds_up_what_came_after() {
        let mut buffer = Buffer::new(Limits::new(100, usize::MAX));
        buffer.push(0, messages(1), true);
        buffer.push(1, messages(1), false);
        assert!(buffer.take().is_none());
        buffer.confirm(0);
        assert_eq!(buffer.take().unwrap().batch, 0);
        assert_eq!(buffer.take().unwrap().batch, 1);
    }

    #[test]
    fn what_is_waited_for_is_known_whatever_becomes_of_the_parcels() {
        let mut buffer = Buffer::new(Limits::new(100, usize::MAX));
        buffer.push(0, messages(1), true);
        buffer.push(1, messages(1), true);
        buffer.push(2, messages(1), false);
        buffer.check_invariants();
        assert!(buffer.awaits(0) && buffer.awaits(1) && !buffer.awaits(2));
        assert!(buffer.wait_for(0, 2) && buffer.wait_for(1, 2) && buffer.wait_for(1, 2));
        buffer.check_invariants();
        buffer.confirm(2);
        buffer.check_invariants();
        assert!(!buffer.awaits(2) && !buffer.has_ready());
        buffer.confirm(0);
        assert!(buffer.take().is_some());
        buffer.check_invariants();
        buffer.withhold(|message| Some(message.delivery.batch() + 7));
        buffer.check_invariants();
        assert!(buffer.awaits(7) && !buffer.awaits(1));
        buffer.retain(|_| false);
        buffer.check_invariants();
        assert!(!buffer.awaits(7));
        buffer.push(3, messages(1), true);
        buffer.confirm_all();
        buffer.check_invariants();
        assert!(buffer.has_ready());
    }
}
