//! What the host asks.

use std::time::Instant;

use connector_core::{CheckpointError, Epoch, Limits};

use super::{
    Backlog, CutId, Cuts, Destinations, Dismissed, Effect, Machine, Notice, Rejections, Requests,
    Stage, Standing, cuts::Cut,
};
use crate::{SinkError, state::Named};

impl Machine {
    /// The host waits for room: whatever is batched leaves, and the wait is watched.
    pub(crate) fn await_room(&mut self, now: Instant) {
        if self.room_wanted.is_none() {
            self.room_wanted = Some(now);
            self.room_told = false;
            self.hurry(now);
        }
    }

    /// The host's wait for room ended.
    pub(crate) fn stop_awaiting_room(&mut self, now: Instant) {
        self.room_wanted = None;
        self.watch(now);
    }

    /// Cuts the stream of records. The cut is made when this returns.
    pub(crate) fn snapshot(
        &mut self,
        now: Instant,
        epoch: Epoch,
    ) -> Result<CutId, CheckpointError> {
        self.ledger.seal(epoch)?;
        let named = self.named(now, epoch);
        Ok(self.cut(now, Cut::Snapshot(epoch), named))
    }

    /// `epoch` will never be durable: its records count as the next epoch's.
    pub(crate) fn abort(&mut self, now: Instant, epoch: Epoch) {
        if !self.ledger.abort(epoch) {
            return;
        }
        self.stage.abort(epoch);
        if self.quarantine.aborted(epoch) {
            self.stage.quarantined();
        }
        if let Some(id) = self.cuts.abort(epoch) {
            self.effects
                .push_back(Effect::Resolve(id, Err(CheckpointError::Aborted { epoch })));
        }
        self.watch(now);
    }

    /// Waits for everything accepted.
    pub(crate) fn flush(&mut self, now: Instant) -> CutId {
        self.cut(now, Cut::Flush, Named::default())
    }

    /// Waits for everything accepted, at most for `close_timeout`, and ends the sink.
    pub(crate) fn close(&mut self, now: Instant) -> CutId {
        if matches!(self.standing, Standing::Running) {
            self.standing = Standing::Closing(now.checked_add(self.settings.close_timeout));
        }
        let items = self.stage.waiting().items;
        if items > 0 {
            self.effects
                .push_back(Effect::Tell(Notice::LeftStaged { items }));
        }
        self.cut(now, Cut::Close, Named::default())
    }

    /// Ends the sink. The first cause stays.
    pub(crate) fn fail(&mut self, error: SinkError) {
        if matches!(self.standing, Standing::Ended(_)) {
            return;
        }
        // What is known already stays true, and is still told.
        while let Some(effect) = self.next_committed() {
            self.effects.push_back(effect);
        }
        self.standing = Standing::Ended(error);
        // Nothing more leaves, and what others share of the budget goes back at once.
        self.released.items += self.held.items;
        self.released.bytes += self.held.bytes;
        self.held = Limits::default();
        self.ready.clear();
        self.lingering.clear();
        self.requests = Requests::default();
        self.repairs.clear();
        self.rejections = Rejections::default();
        self.cuts = Cuts::default();
        self.backlog = Backlog::default();
        self.stage = Stage::new(self.settings.stage);
        self.dismissed = Dismissed::new(self.settings.retry.delays);
        self.counters.destinations_released += self.destinations.released();
        self.destinations = Destinations::new(
            self.settings.max_destinations,
            self.settings.idle_destinations,
        );
    }
}
