//! What happens by itself as time passes.

use std::{collections::BTreeSet, time::Instant};

use connector_core::ledger::Outcome;

use super::{
    Machine, Notice, Phase,
    batch::{Marks, Stage},
};
use crate::{delivery::DeliveryId, error::SourceError};

/// Streams that were not read for this part of the lease are closed: what waits in them is leased
/// to us and ages unseen, while another subscriber could have it.
const UNREAD: u32 = 4;

impl Machine {
    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Phase::Closed { .. } = self.phase {
            return;
        }
        self.look_again = None;
        self.lapse(now);
        if let Some(runs) = &mut self.runs {
            runs.handle_timeout(now);
        }
        self.seen.expire(now);
        self.release_overdue(now);
        self.check_checkpoints(now);
        self.check_commits(now);
        self.check_outage(now);
        self.check_unread(now);
        self.tell_spent(now);
        self.streams.advance(now, self.need.told(), self.lease);
        self.note_open(now);
        self.tidy();
        self.watch_reading(now);
        self.advance_closing(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something of this file to do.
    pub(super) fn next_upkeep(&self) -> Option<Instant> {
        let hold = match self.deliveries.oldest_from(self.hold_cursor) {
            Some((_, received)) => received.checked_add(self.settings.max_hold),
            None => None,
        };
        let closing = match self.phase {
            Phase::Running => None,
            Phase::Closing { deadline, .. } => return deadline,
            Phase::Closed { .. } => return None,
        };
        let unread = self.unread_since.map(|since| since + self.lease / UNREAD);
        [
            hold,
            closing,
            unread,
            self.checkpoint_deadline(),
            self.commits.next_timeout(),
            self.outage_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Forgets the leases of batches that are gone.
    pub(super) fn tidy(&mut self) {
        if std::mem::take(&mut self.unsifted) {
            self.drop_lapsed(0);
        }
        for batch in self.deliveries.take_emptied() {
            self.leases.forget(batch);
            // No confirmation comes for it any more; what it still has in the buffer was delivered
            // again, and is leased as that delivery.
            self.buffer.confirm(batch);
        }
    }

    /// Gives up the leases that are over.
    pub(crate) fn lapse(&mut self, now: Instant) {
        let (mut handed_out, mut buffered) = (0, 0);
        let mut batches = Vec::new();
        while let Some(batch) = self.leases.poll_lapsed(now) {
            batches.push(batch);
            let (out, waiting) = self.lapse_each(self.deliveries.ids_of(batch));
            handed_out += out;
            buffered += waiting;
        }
        if buffered > 0 {
            self.drop_lapsed(buffered);
        }
        for batch in batches {
            self.let_unleased_out(batch);
        }
        if handed_out + buffered > 0 {
            self.tell(Notice::Lapsed {
                handed_out,
                buffered,
            });
        }
        if handed_out + buffered > 0 || self.unsifted {
            self.tidy();
            self.watch_reading(now);
        }
    }

    /// Gives up the leases of single deliveries, which the service says are over.
    pub(super) fn lapse_deliveries(&mut self, ids: &[DeliveryId]) {
        let (handed_out, buffered) = self.lapse_each(ids.iter().copied());
        if buffered > 0 {
            self.drop_lapsed(buffered);
        }
        for ids in ids.chunk_by(|one, next| one.batch() == next.batch()) {
            if let Some(id) = ids.first() {
                self.let_unleased_out(id.batch());
            }
        }
        if handed_out + buffered > 0 {
            self.tell(Notice::Lapsed {
                handed_out,
                buffered,
            });
        }
    }

    /// Gives these up, and answers how many of them were handed out and how many were buffered.
    fn lapse_each(&mut self, ids: impl IntoIterator<Item = DeliveryId>) -> (usize, usize) {
        let (mut handed_out, mut buffered) = (0, 0);
        for id in ids {
            match self.lapse_one(id) {
                Stage::Out => handed_out += 1,
                Stage::Buffered => buffered += 1,
                Stage::Acking
                | Stage::HostAcking
                | Stage::ReAcking
                | Stage::Superseded
                | Stage::Releasing
                | Stage::Gone => {}
            }
        }
        (handed_out, buffered)
    }

    fn lapse_one(&mut self, id: DeliveryId) -> Stage {
        let stage = self.deliveries.lapse(id);
        if stage == Stage::Releasing {
            // Whether or not the release arrived, the message is available again.
            self.stats.released += 1;
            self.resolve_settle(id, false);
            self.deliveries.settle(id, Outcome::Lapsed);
        } else if stage != Stage::Superseded && stage != Stage::Gone {
            self.break_run(id, false);
        }
        stage
    }

    /// Drops buffered messages whose lease is over; those the handle has taken are revoked.
    pub(super) fn drop_lapsed(&mut self, lapsed: usize) {
        let mut dropped = Vec::new();
        let mut buffer = std::mem::replace(
            &mut self.buffer,
            super::buffer::Buffer::new(self.settings.buffer),
        );
        buffer.retain(|message| {
            let keep = self.is_deliverable(message.delivery);
            if !keep {
                dropped.push(message.delivery);
            }
            keep
        });
        self.buffer = buffer;
        if dropped.len() < lapsed {
            self.revoked += 1;
        }
        for delivery in dropped {
            let id = self.deliveries.current(delivery);
            self.withdraw_one(delivery);
            let (stage, marks) = self.deliveries.stage_and_marks(id);
            if marks.has(Marks::LAPSED) {
                self.drop_buffered(id);
            } else if marks.has(Marks::REVOKED) && stage != Stage::Releasing {
                self.deliveries.settle(id, Outcome::Lapsed);
            }
        }
    }

    /// Gives up a delivery whose message cannot come again: another one came under its id.
    pub(super) fn abandon(&mut self, id: DeliveryId) {
        match self.deliveries.stage(id) {
            Stage::Buffered => {
                self.lapse_deliveries(&[id]);
                // Still there when the handle has taken it, which is told by the revocation.
                self.drop_buffered(id);
            }
            Stage::Out => {
                self.stats.lapsed += 1;
                self.deliveries.settle(id, Outcome::Lapsed);
            }
            // The key is not remembered: under it comes a message that nobody has seen.
            Stage::Acking | Stage::HostAcking | Stage::ReAcking => drop(self.lose(id)),
            Stage::Superseded | Stage::Releasing | Stage::Gone => {}
        }
    }

    pub(super) fn drop_buffered(&mut self, id: DeliveryId) {
        if self.deliveries.settle(id, Outcome::Lapsed).is_some() {
            self.stats.lapsed_in_buffer += 1;
        }
    }

    /// Gives back what was held for too long, handed out or not. An epoch keeps the item, so that
    /// its commit reports it; the lease, the room and the ack id go.
    fn release_overdue(&mut self, now: Instant) {
        let before = self.deliveries.releasing();
        let (mut waiting, mut in_hand) = (None, Vec::new());
        while let Some((batch, received)) = self.deliveries.oldest_from(self.hold_cursor) {
            let over = received.checked_add(self.settings.max_hold);
            if over.is_none_or(|over| over > now) {
                break;
            }
            self.hold_cursor = batch + 1;
            for id in self.deliveries.ids_of(batch) {
                match self.deliveries.stage(id) {
                    Stage::Out => {
                        let message = self.deliveries.key(id).cloned();
                        if self.deliveries.start_expiry(id) {
                            self.releases.entry(0).or_default().push_back(id);
                            if let Some(message) = message {
                                self.note_release(id, &message);
                            }
                            self.break_run(id, false);
                        }
                    }
                    Stage::Buffered if self.deliveries.marks(id).has(Marks::LAPSED) => {}
                    // A host that stands still keeps nothing from other subscribers either.
                    Stage::Buffered => {
                        let waiting = waiting.get_or_insert_with(|| self.waiting());
                        if waiting.contains(&id) {
                            self.give_back(id, 0);
                            self.unsifted = true;
                        } else {
                            in_hand.push(id);
                        }
                    }
                    Stage::Acking
                    | Stage::HostAcking
                    | Stage::ReAcking
                    | Stage::Superseded
                    | Stage::Releasing
                    | Stage::Gone => {}
                }
            }
            self.let_unleased_out(batch);
        }
        // What the handle has taken it may have handed out, and not told yet: its epoch keeps it, as it
        // keeps what lapses.
        self.lapse_deliveries(&in_hand);
        // With those that wait behind one of them in the order of its key.
        let overdue = in_hand.len() + (self.deliveries.releasing() - before);
        if overdue > 0 {
            self.stats.held_too_long += overdue as u64;
            self.tell(Notice::HeldTooLong {
                deliveries: overdue,
                limit: self.settings.max_hold,
            });
        }
    }

    /// The deliveries that the handle has not taken.
    fn waiting(&self) -> BTreeSet<DeliveryId> {
        let messages = self.buffer.messages();
        messages
            .map(|message| self.deliveries.current(message.delivery))
            .collect()
    }

    /// Since when a checkpoint is awaited, and until when.
    fn checkpoint_deadline(&self) -> Option<Instant> {
        if self.late_told || self.settings.stall_after.is_zero() {
            return None;
        }
        let since = match (self.last_checkpoint, self.settles_itself) {
            // Late is only a checkpoint that something waits for.
            (Some(last), _) => last.max(self.deliveries.oldest_from(0)?.1),
            (None, true) => return None,
            (None, false) => self.first_message?,
        };
        since.checked_add(self.settings.stall_after)
    }

    fn check_checkpoints(&mut self, now: Instant) {
        if self.checkpoint_deadline().is_none_or(|at| at > now) {
            return;
        }
        let held = self.deliveries.leased();
        match self.last_checkpoint {
            Some(last) => {
                self.late_told = true;
                let waited = now.saturating_duration_since(last);
                self.tell(Notice::CheckpointLate { waited });
            }
            None if held > 0 => self.fail(
                now,
                SourceError::Stalled {
                    after: self.settings.stall_after,
                    held,
                },
            ),
            // Everything lapsed: what comes next counts as the first.
            None => self.first_message = None,
        }
    }

    /// A delivery is held for up to an interval and the time its commit takes; beyond half of
    /// `max_hold` one late checkpoint is enough to give deliveries back.
    pub(super) fn compare_interval_with_hold(&mut self) {
        let Some(interval) = self.cadence.interval() else {
            return;
        };
        let max_hold = self.settings.max_hold;
        let short = interval.saturating_mul(2) > max_hold;
        if short && !self.hold_told {
            self.tell(Notice::HoldTooShort { interval, max_hold });
        }
        self.hold_told = short;
    }

    /// Keeps track of whether anything is read.
    pub(super) fn watch_reading(&mut self, now: Instant) {
        let reads = self.reads();
        self.streams.set_reading(now, reads);
        if reads {
            self.unread_since = None;
        } else {
            self.unread_since.get_or_insert(now);
            self.outage.over();
        }
    }

    fn check_unread(&mut self, now: Instant) {
        let Some(since) = self.unread_since else {
            return;
        };
        if now < since + self.lease / UNREAD {
            return;
        }
        self.unread_since = None;
        if self.streams.close_unread(now) {
            let waited = now.saturating_duration_since(since);
            self.tell(Notice::StreamsUnread { waited });
        }
    }
}
