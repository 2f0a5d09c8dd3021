//! How full the stage is, and when the host has to hear of it.

use std::time::{Duration, Instant};

use connector_core::Limits;

/// The bound on what is staged or committed and has no verdict.
#[derive(Debug)]
pub(super) struct Stage {
    limit: Limits,
    /// What was staged since the last cut.
    open: Limits,
    /// The host was told that a checkpoint is wanted, for the open epoch.
    told: bool,
    /// Since when the host waits for room, and neither cuts nor gets any.
    standing_since: Option<Instant>,
}

impl Stage {
    pub(super) const fn new(limit: Limits) -> Self {
        Self {
            limit,
            open: Limits::new(0, 0),
            told: false,
            standing_since: None,
        }
    }

    pub(super) const fn limit(&self) -> Limits {
        self.limit
    }

    pub(super) const fn add(&mut self, held: Limits) {
        self.open.items = self.open.items.saturating_add(held.items);
        self.open.bytes = self.open.bytes.saturating_add(held.bytes);
    }

    /// The host cut: the open epoch is empty.
    pub(super) fn cut(&mut self, now: Instant) {
        self.open = Limits::new(0, 0);
        self.told = false;
        self.moved(now);
    }

    /// An aborted epoch may have come back into the open one.
    pub(super) const fn reopen(&mut self, open: Limits) {
        self.open = open;
        self.told = false;
    }

    /// Something was cut, committed or confirmed.
    pub(super) fn moved(&mut self, now: Instant) {
        if let Some(since) = &mut self.standing_since {
            *since = now;
        }
    }

    pub(super) fn host_waits(&mut self, now: Instant) {
        self.standing_since.get_or_insert(now);
    }

    pub(super) const fn host_goes_on(&mut self) {
        self.standing_since = None;
    }

    pub(super) fn deadline(&self, limit: Duration) -> Option<Instant> {
        self.standing_since?.checked_add(limit)
    }

    /// How long the host has stood before a full stage.
    pub(super) fn standing(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.standing_since?))
    }

    /// Whether to ask the host for a checkpoint, which is done once for each open epoch. `held` is
    /// all that is staged or committed; `moving` says whether some of it is on its way out, which is
    /// asked of a full stage only, since this is called for each record; `waiting` that something
    /// else needs a checkpoint.
    pub(super) fn wants_checkpoint(
        &mut self,
        held: Limits,
        moving: impl FnOnce() -> bool,
        waiting: bool,
    ) -> bool {
        if self.told {
            return false;
        }
        // A limit is never nothing, so that nothing is never half of it.
        let half = self.open.items.saturating_mul(2) >= self.limit.items
            || self.open.bytes.saturating_mul(2) >= self.limit.bytes;
        // A stage full of what cannot leave: only what the host has not committed can make room.
        let stuck = || self.open.items > 0 && !self.limit.admits(held) && !moving();
        self.told = waiting || half || stuck();
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_wanted_at_half_a_stage_once_for_each_epoch() {
        let now = crate::driver::clock::now();
        let mut stage = Stage::new(Limits::new(10, 1_000));
        let wants = |stage: &mut Stage| stage.wants_checkpoint(Limits::default(), || true, false);
        stage.add(Limits::new(4, 4));
        assert!(!wants(&mut stage));
        stage.add(Limits::new(1, 1));
        assert!(wants(&mut stage));
        assert!(!wants(&mut stage), "told once");
        stage.cut(now);
        assert!(!wants(&mut stage));
        stage.add(Limits::new(1, 500));
        assert!(wants(&mut stage), "bytes count as well");
        stage.reopen(Limits::new(6, 6));
        assert!(wants(&mut stage), "an abort gave the epoch more");
    }

    #[test]
    fn a_stage_full_of_what_cannot_leave_wants_a_checkpoint_of_the_rest() {
        let mut stage = Stage::new(Limits::items(10));
        let full = Limits::items(10);
        stage.add(Limits::new(1, 1));
        assert!(
            !stage.wants_checkpoint(full, || true, false),
            "what leaves makes room"
        );
        assert!(stage.wants_checkpoint(full, || false, false));
        let mut empty = Stage::new(Limits::items(10));
        assert!(!empty.wants_checkpoint(full, || false, false));
        assert!(empty.wants_checkpoint(full, || false, true));
    }

    #[test]
    fn the_host_stands_for_as_long_as_nothing_moves() {
        const SECOND: Duration = Duration::from_secs(1);
        let now = crate::driver::clock::now();
        let mut stage = Stage::new(Limits::items(10));
        let stands = |stage: &Stage, at| (stage.standing(now + at), stage.deadline(SECOND * 10));
        stage.moved(now);
        assert_eq!(stands(&stage, SECOND), (None, None), "it does not wait");
        stage.host_waits(now);
        stage.host_waits(now + SECOND);
        let since_now = (Some(SECOND * 3), Some(now + SECOND * 10));
        assert_eq!(stands(&stage, SECOND * 3), since_now);
        stage.moved(now + SECOND * 4);
        let since_then = (Some(SECOND), Some(now + SECOND * 14));
        assert_eq!(stands(&stage, SECOND * 5), since_then);
        stage.cut(now + SECOND * 6);
        assert_eq!(stage.standing(now + SECOND * 6), Some(Duration::ZERO));
        stage.host_goes_on();
        assert_eq!(stands(&stage, SECOND * 7), (None, None));
        assert_eq!(stage.limit(), Limits::items(10));
    }
}
