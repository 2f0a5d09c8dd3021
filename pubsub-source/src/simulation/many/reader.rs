//! A reader: one source of several splits, and what its host knows.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use connector_core::{Epoch, ledger::CommitId};
use futures::FutureExt;
use gcp_emulator::pubsub::proto::StreamingPullResponse;
use tokio::sync::Notify;

use super::event::{Address, Delivered, Place};
use crate::{
    handout::HandOut,
    machine::{Machine, StreamId},
    shared::Seat,
};

/// A stream as the client sees it.
#[derive(Default)]
pub(super) struct Stream {
    /// Responses, with what was not acknowledged when they were sent.
    pub(super) inbox: VecDeque<(Box<StreamingPullResponse>, Vec<Delivered>)>,
    /// The last instant at which nothing was left to read.
    pub(super) drained: Duration,
    pub(super) opened: bool,
}

/// One split.
pub(super) struct Split {
    pub(super) subscription: usize,
    pub(super) machine: Machine,
    pub(super) out: HandOut,
    pub(super) streams: BTreeMap<StreamId, Stream>,
    pub(super) seat: Seat,
    pub(super) bell: Arc<Notify>,
    pub(super) paused: bool,
    /// When its driver has something to do next.
    pub(super) due: Option<Instant>,
    /// Handed out since the last cut.
    pub(super) open: BTreeSet<u64>,
    /// Sealed and not committed.
    pub(super) sealed: BTreeMap<Epoch, BTreeSet<u64>>,
    pub(super) commits: BTreeSet<CommitId>,
}

impl Split {
    pub(super) fn new(subscription: usize, machine: Machine, seat: Seat) -> Self {
        Self {
            subscription,
            machine,
            out: HandOut::default(),
            streams: BTreeMap::new(),
            bell: seat.pool.bell(seat.split),
            seat,
            paused: false,
            due: None,
            open: BTreeSet::new(),
            sealed: BTreeMap::new(),
            commits: BTreeSet::new(),
        }
    }

    /// Whether a message is handed out and its epoch is not committed.
    pub(super) fn holds(&self, number: u64) -> bool {
        let mut sealed = self.sealed.values();
        self.open.contains(&number) || sealed.any(|epoch| epoch.contains(&number))
    }

    /// Whether it would read on and may not.
    pub(super) fn starves(&self) -> bool {
        let standing = self.machine.standing();
        standing.wants && !standing.paused && !self.machine.reads()
    }

    /// Whether another split has called its driver.
    pub(super) fn is_called(&self) -> bool {
        self.bell.notified().now_or_never().is_some()
    }

    fn is_drained(&self, now: Instant) -> bool {
        let stats = self.machine.stats(now);
        stats.leased == 0
            && stats.buffered == 0
            && self.commits.is_empty()
            && self.open.is_empty()
            && self.sealed.is_empty()
    }
}

/// One reader.
pub(super) struct Reader {
    pub(super) splits: Vec<Split>,
    /// Nothing of the process runs before this time.
    pub(super) suspended_until: Duration,
    /// The host polls nothing before this time.
    pub(super) still_until: Duration,
    /// Whose turn it is to hand out.
    pub(super) turn: usize,
    /// All that this reader has handed out.
    pub(super) handed: BTreeSet<Delivered>,
    pub(super) closing: bool,
}

impl Reader {
    pub(super) fn new(splits: Vec<Split>) -> Self {
        Self {
            splits,
            suspended_until: Duration::ZERO,
            still_until: Duration::ZERO,
            turn: 0,
            handed: BTreeSet::new(),
            closing: false,
        }
    }

    pub(super) fn split(&mut self, subscription: usize) -> Option<&mut Split> {
        let mut splits = self.splits.iter_mut();
        splits.find(|split| split.subscription == subscription)
    }

    /// Where each split is found.
    pub(super) fn addresses(&self, place: Place) -> Vec<Address> {
        let splits = self.splits.iter().map(|split| Address {
            place,
            subscription: split.subscription,
        });
        splits.collect()
    }

    /// Drops the source, as its handle does when it is dropped or closed.
    pub(super) fn close(&mut self, at: Instant) {
        self.closing = true;
        for split in &mut self.splits {
            split.out.clear(&mut split.machine, at);
            split.machine.close(at);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.splits.iter().all(|split| split.machine.is_closed())
    }

    /// Whether all that it held is gone.
    pub(super) fn is_drained(&self, now: Instant) -> bool {
        self.splits.iter().all(|split| split.is_drained(now))
    }
}
