//! Tasks that are part of the state until their epoch is committed.
//!
//! A record is *staged* until its commit, then *released*: from there on it is sent like any other,
//! under its own name, for as long as the service surely remembers that name. What the service
//! refuses, and what is not confirmed in time, is *kept* aside.

mod commit;
mod deadline;
mod holds;
#[cfg(any(test, fuzzing))]
mod invariants;
mod operator;
mod owed;
mod quarantine;
mod retaining;
mod saving;
mod stage;

pub(crate) use commit::RestoredTasks;
pub(super) use commit::is_denied;
pub(super) use deadline::Deadline;
pub(crate) use deadline::Release;

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use connector_core::Limits;

use super::inflight::{Record, Stage as RecordStage};
use super::throttle::Throttle;
use super::{Machine, RecordId};
use holds::Holds;
use quarantine::Quarantine;
use stage::Stage;

/// What a staging sink is told once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StagedSettings {
    /// How long after its seal a task may be sent.
    pub(crate) window: Duration,
    pub(crate) stage: Limits,
    pub(crate) quarantine: Limits,
}

/// What a staging sink knows beside its records.
#[derive(Debug)]
pub(super) struct Staged {
    settings: StagedSettings,
    /// The time of day, as last told.
    wall: SystemTime,
    /// The last cut: nothing that was uncommitted then was ever sent before.
    cut: Release,
    stage: Stage,
    holds: Holds,
    quarantine: Quarantine,
    /// Records rejected before they were staged, which the cut of their epoch waits for.
    unhandled: BTreeSet<RecordId>,
    /// When to ask the failure handler for a flush again, and how often that failed.
    flush_again: Option<Instant>,
    flush_failures: u32,
    refusals: Throttle,
    expiries: Throttle,
    holding: Throttle,
}

impl Staged {
    fn new(settings: StagedSettings, now: Instant, wall: SystemTime) -> Self {
        Self {
            settings,
            wall,
            cut: Release::at(now, wall, settings.window),
            stage: Stage::new(settings.stage),
            holds: Holds::default(),
            quarantine: Quarantine::new(settings.quarantine),
            unhandled: BTreeSet::new(),
            flush_again: None,
            flush_failures: 0,
            refusals: Throttle::default(),
            expiries: Throttle::default(),
            holding: Throttle::default(),
        }
    }

    /// A new record waits for its commit, unless it was rejected.
    pub(super) fn take_in(&mut self, record: &mut Record) {
        if record.stage == RecordStage::Waiting {
            record.stage = RecordStage::Staged;
            self.stage.add(record.held);
        }
    }
}

impl Machine {
    /// What the time of day is. A machine that stages has to hear of it before it is asked for
    /// effects, and before a cut.
    pub(crate) fn handle_time_of_day(&mut self, wall: SystemTime) {
        if let Some(staged) = &mut self.staged {
            staged.wall = wall;
        }
    }

    /// Whether records wait in the state for their commit.
    pub(crate) const fn stages(&self) -> bool {
        self.staged.is_some()
    }

    /// Records that wait in the state for their commit; nothing where none ever do.
    pub(crate) fn uncommitted(&self) -> Option<usize> {
        self.staged.as_ref().map(|_| self.inflight.staged())
    }

    /// The host waits for room, or has got it.
    pub(super) fn host_waits(&mut self, now: Instant) {
        if let Some(staged) = &mut self.staged {
            staged.stage.host_waits(now);
        }
    }

    pub(super) fn host_goes_on(&mut self) {
        if let Some(staged) = &mut self.staged {
            staged.stage.host_goes_on();
        }
    }

    /// A record was rejected before it was staged: the cut of its epoch waits for its verdict.
    pub(super) fn await_handler(&mut self, id: RecordId) {
        if let Some(staged) = &mut self.staged {
            staged.unhandled.insert(id);
        }
    }

    /// A record got its verdict.
    pub(super) fn stage_moved(&mut self, now: Instant, id: RecordId) {
        if let Some(staged) = &mut self.staged {
            staged.unhandled.remove(&id);
            staged.stage.moved(now);
        }
    }

    /// How many tasks wait for their queue, and how many are kept aside.
    pub(super) fn held_and_kept(&self) -> (usize, usize) {
        let staged = self.staged.as_ref();
        staged.map_or((0, 0), |staged| {
            (staged.holds.len(), staged.quarantine.held().items)
        })
    }

    /// Until when the first of the committed tasks may be sent.
    pub(crate) fn next_deadline(&self) -> Option<SystemTime> {
        self.inflight.nearest_deadline()
    }

    /// How much of the time from a seal to its deadline is over, in hundredths, by the first of the
    /// committed tasks.
    pub(super) fn window_used(&self) -> u64 {
        let (Some(staged), Some(deadline)) = (&self.staged, self.next_deadline()) else {
            return 0;
        };
        let left = deadline.duration_since(staged.wall).unwrap_or_default();
        let window = staged.settings.window.as_millis();
        let used = window.saturating_sub(left.as_millis()).saturating_mul(100);
        u64::try_from(used / window.max(1)).unwrap_or(100)
    }

    /// Forgets everything but what is kept aside, which may still be looked at.
    pub(super) fn clear_stage(&mut self) {
        if let Some(staged) = &mut self.staged {
            staged.holds.clear();
            staged.unhandled.clear();
            staged.flush_again = None;
            staged.stage.host_goes_on();
        }
    }

    /// Nothing is owed but what the host has not committed.
    pub(super) fn owes_only_uncommitted(&self) -> bool {
        self.staged.is_none() || self.inflight.len() == self.inflight.staged()
    }

    /// The oldest record without which no earlier cut is complete.
    pub(super) fn oldest_for_cut(&self) -> Option<RecordId> {
        match &self.staged {
            None => self.inflight.oldest().map(|(id, _)| id),
            Some(staged) => staged.unhandled.first().copied(),
        }
    }

    /// When `handle_staged_timeout` has something to do.
    pub(super) fn staged_timeout(&self) -> Option<Instant> {
        let staged = self.staged.as_ref()?;
        let limit = self.settings.progress_timeout;
        [
            staged.holds.next_due(),
            staged.flush_again,
            staged.quarantine.deadline(limit),
            staged.stage.deadline(limit),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
