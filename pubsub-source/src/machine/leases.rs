//! When leases end, and which must be extended before.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use crate::delivery::DeliveryId;

/// A lease is extended when at least this part of it is left, however fast requests are answered.
const LEAST_MARGIN: u32 = 6;

/// A lease is extended when at most this part of it is left, however slow requests are answered.
const MOST_MARGIN: u32 = 2;

/// The margin covers this many times the latency seen: one failed try and its successor.
const LATENCIES: u32 = 4;

/// Due times are spread over this part of the lease, so that what arrived together is not
/// extended together for ever.
const JITTER: f64 = 0.1;

/// What becomes due this much later goes along now, in the same requests.
const AHEAD: Duration = Duration::from_secs(1);

/// How much of its last value the latency keeps with each faster answer.
const DECAY: f64 = 0.9;

/// The lease of one batch.
#[derive(Debug)]
struct Lease {
    ends: Instant,
    due: Instant,
    /// Deliveries whose extension is queued or in flight.
    owed: usize,
    /// The end that the answers so far allow, while extensions are owed.
    confirmed: Option<Instant>,
}

/// All leases, by batch: what arrived in one response was leased at one instant.
///
/// Extending splits a batch over requests; its lease counts as longer only when all of them were
/// confirmed, so a lease never seems longer than it is for any delivery.
#[derive(Debug, Default)]
pub(super) struct Leases {
    leases: BTreeMap<u64, Lease>,
    due: BTreeSet<(Instant, u64)>,
    ends: BTreeSet<(Instant, u64)>,
    queue: VecDeque<DeliveryId>,
    latency: Duration,
}

impl Leases {
    /// A batch's lease began at `started`.
    pub(super) fn start(&mut self, batch: u64, started: Instant, length: Duration, random: f64) {
        let ends = started + length;
        let due = self.due_time(ends, length, random);
        self.due.insert((due, batch));
        self.ends.insert((ends, batch));
        let lease = Lease {
            ends,
            due,
            owed: 0,
            confirmed: None,
        };
        self.leases.insert(batch, lease);
    }

    /// Extends a batch's lease now, whatever is left of it.
    pub(super) fn hurry(&mut self, batch: u64, now: Instant) {
        if let Some(lease) = self.leases.get_mut(&batch)
            && lease.owed == 0
        {
            self.due.remove(&(lease.due, batch));
            lease.due = lease.due.min(now);
            self.due.insert((lease.due, batch));
        }
    }

    /// A batch has no delivery left, or its lease ended.
    pub(super) fn forget(&mut self, batch: u64) {
        if let Some(lease) = self.leases.remove(&batch) {
            self.due.remove(&(lease.due, batch));
            self.ends.remove(&(lease.ends, batch));
        }
    }

    /// When a batch's lease ends.
    pub(super) fn ends(&self, batch: u64) -> Option<Instant> {
        self.leases.get(&batch).map(|lease| lease.ends)
    }

    /// A batch whose lease is over. It is forgotten.
    pub(super) fn poll_lapsed(&mut self, now: Instant) -> Option<u64> {
        let (ends, batch) = *self.ends.first()?;
        if ends > now {
            return None;
        }
        self.forget(batch);
        Some(batch)
    }

    /// A batch whose lease must be extended. Its deliveries go to [`enqueue`](Self::enqueue).
    pub(super) fn poll_due(&mut self, now: Instant) -> Option<u64> {
        let (due, batch) = *self.due.first()?;
        // Once there is a request to send anyway, what is nearly due shares it.
        let horizon = if self.queue.is_empty() {
            now
        } else {
            now + AHEAD
        };
        if due > horizon {
            return None;
        }
        self.due.pop_first();
        Some(batch)
    }

    /// Queues the extension of a batch's deliveries.
    pub(super) fn enqueue(&mut self, batch: u64, ids: impl IntoIterator<Item = DeliveryId>) {
        let before = self.queue.len();
        self.queue.extend(ids);
        if let Some(lease) = self.leases.get_mut(&batch) {
            lease.owed += self.queue.len() - before;
            lease.confirmed = None;
        }
    }

    /// The next delivery to extend.
    pub(super) fn pop(&mut self) -> Option<DeliveryId> {
        self.queue.pop_front()
    }

    /// Puts a delivery back that did not fit into the request.
    pub(super) fn unpop(&mut self, id: DeliveryId) {
        self.queue.push_front(id);
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// So many deliveries of a batch need no extension any more, or have got one until `ends`.
    pub(super) fn handle_extended(
        &mut self,
        batch: u64,
        deliveries: usize,
        ends: Option<Instant>,
        length: Duration,
        random: f64,
    ) -> bool {
        let Some(lease) = self.leases.get_mut(&batch) else {
            return false;
        };
        lease.owed = lease.owed.saturating_sub(deliveries);
        if let Some(ends) = ends {
            lease.confirmed = Some(lease.confirmed.map_or(ends, |other| other.min(ends)));
        }
        if lease.owed > 0 {
            return false;
        }
        // Without a confirmation every delivery went meanwhile; the lease runs out unheeded.
        let Some(confirmed) = lease.confirmed.take() else {
            return false;
        };
        self.ends.remove(&(lease.ends, batch));
        lease.ends = lease.ends.max(confirmed);
        let ends = lease.ends;
        self.ends.insert((ends, batch));
        let due = self.due_time(ends, length, random);
        if let Some(lease) = self.leases.get_mut(&batch) {
            self.due.remove(&(lease.due, batch));
            lease.due = due;
            self.due.insert((due, batch));
        }
        true
    }

    /// A request was answered after `latency`.
    pub(super) fn handle_latency(&mut self, latency: Duration) {
        self.latency = self.latency.mul_f64(DECAY).max(latency);
    }

    /// When the next lease ends.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// When the next extension is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn due_time(&self, ends: Instant, length: Duration, random: f64) -> Instant {
        let margin = (self.latency * LATENCIES).clamp(length / LEAST_MARGIN, length / MOST_MARGIN);
        let early = margin + length.mul_f64(JITTER * random.clamp(0.0, 1.0));
        ends.checked_sub(early).unwrap_or(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(12);

    fn leases(now: Instant) -> Leases {
        let mut leases = Leases::default();
        leases.start(1, now, LEASE, 0.0);
        leases
    }

    #[test]
    fn a_lease_of_any_allowed_length_is_extended_well_before_its_end() {
        let now = crate::driver::now();
        for seconds in [10, 12, 14, 15, 60, 600] {
            let length = Duration::from_secs(seconds);
            for (random, latency) in [(0.0, 0), (1.0, 0), (0.0, 1000), (1.0, 1000)] {
                let mut leases = Leases::default();
                leases.handle_latency(Duration::from_secs(latency));
                leases.start(1, now, length, random);
                let due = leases.next_due().unwrap();
                assert!(due > now, "{seconds} s leave time to hold something");
                assert!(due <= now + length - length / LEAST_MARGIN);
            }
        }
    }

    #[test]
    fn slow_answers_widen_the_margin_and_fast_ones_narrow_it_again() {
        let now = crate::driver::now();
        let mut leases = Leases::default();
        leases.handle_latency(Duration::from_secs(1));
        leases.start(1, now, LEASE, 0.0);
        assert_eq!(
            leases.next_due(),
            Some(now + LEASE - Duration::from_secs(4))
        );
        for _ in 0..100 {
            leases.handle_latency(Duration::from_millis(1));
        }
        leases.start(2, now, LEASE, 0.0);
        leases.forget(1);
        assert_eq!(
            leases.next_due(),
            Some(now + LEASE - Duration::from_secs(2))
        );
    }

    #[test]
    fn a_batch_is_longer_leased_only_when_every_part_was_confirmed() {
        let now = crate::driver::now();
        let mut leases = leases(now);
        let late = now + Duration::from_secs(10);
        assert_eq!(leases.poll_due(late), Some(1));
        leases.enqueue(1, (0..2).map(|index| DeliveryId::new(1, index)));
        assert!(leases.pop().is_some() && leases.pop().is_some());
        assert!(!leases.handle_extended(1, 1, Some(late + LEASE), LEASE, 0.0));
        assert_eq!(leases.ends(1), Some(now + LEASE));
        assert!(leases.handle_extended(1, 1, Some(late + LEASE / 2), LEASE, 0.0));
        assert_eq!(
            leases.ends(1),
            Some(late + LEASE / 2),
            "the shorter one counts"
        );
    }

    #[test]
    fn what_is_nearly_due_goes_along() {
        let now = crate::driver::now();
        let mut leases = leases(now);
        leases.start(2, now + AHEAD / 2, LEASE, 0.0);
        let due = leases.next_due().unwrap();
        assert_eq!(leases.poll_due(due), Some(1));
        leases.enqueue(1, [DeliveryId::new(1, 0)]);
        assert_eq!(leases.poll_due(due), Some(2));
        assert_eq!(leases.poll_due(due), None);
    }

    #[test]
    fn a_lapsed_batch_is_told_once() {
        let now = crate::driver::now();
        let mut leases = leases(now);
        assert_eq!(
            leases.poll_lapsed(now + LEASE - Duration::from_nanos(1)),
            None
        );
        assert_eq!(leases.poll_lapsed(now + LEASE), Some(1));
        assert_eq!(leases.poll_lapsed(now + LEASE), None);
        assert_eq!((leases.next_due(), leases.next_end()), (None, None));
    }
    #[test]
    fn an_extension_behind_another_batch_counts_its_own_deliveries_only() {
        let now = crate::driver::now();
        let mut leases = leases(now);
        leases.start(2, now, LEASE, 0.0);
        let late = now + Duration::from_secs(10);
        assert_eq!(leases.next_end(), Some(now + LEASE));
        for batch in [1, 2] {
            assert_eq!(leases.poll_due(late), Some(batch));
            leases.enqueue(batch, [DeliveryId::new(batch, 0)]);
        }
        assert!(leases.handle_extended(2, 1, Some(late + LEASE), LEASE, 0.0));
        assert_eq!(leases.ends(2), Some(late + LEASE));
    }
}
