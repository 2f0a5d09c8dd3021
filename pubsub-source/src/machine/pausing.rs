//! A host that wants nothing of this split for now.

use std::time::{Duration, Instant};

use super::{
    Machine, Notice, Phase,
    batch::{Marks, Stage},
};
use crate::{
    source::{Room, Standing},
    stats::Stats,
};

/// A source that waits for room in a budget for so long says so.
const SPENT_TOLD: Duration = Duration::from_secs(10);

/// Whether the host takes what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Running,
    /// Nothing is handed out. The streams stay open as long as there is room for what comes.
    Paused(Instant),
    /// Paused, with the streams closed and everything given back that was not handed out.
    Parked(Instant),
}

impl Flow {
    /// Since when nothing is handed out.
    pub(super) fn paused_since(self) -> Option<Instant> {
        match self {
            Self::Running => None,
            Self::Paused(since) | Self::Parked(since) => Some(since),
        }
    }

    pub(super) fn is_parked(self) -> bool {
        match self {
            Self::Parked(_) => true,
            Self::Running | Self::Paused(_) => false,
        }
    }
}

impl Machine {
    /// Hands nothing out until [`resume`](Self::resume).
    pub(crate) fn pause(&mut self, now: Instant) {
        if self.flow.paused_since().is_none() {
            self.flow = Flow::Paused(now);
            self.buffer.rest();
            self.watch_reading(now);
        }
    }

    /// Hands out again. A parked split opens its streams first.
    pub(crate) fn resume(&mut self, now: Instant) {
        let Some(since) = self.flow.paused_since() else {
            return;
        };
        if self.flow.is_parked() {
            self.streams.unpark(now);
            let paused = now.saturating_duration_since(since);
            self.tell(Notice::Unparked { paused });
        }
        self.flow = Flow::Running;
        self.buffer.rest();
        self.watch_reading(now);
    }

    /// Gives back what a paused split has not handed out, and closes its streams until it is
    /// resumed. What was handed out keeps its lease.
    pub(crate) fn park(&mut self, now: Instant) {
        let (Flow::Paused(since), Phase::Running) = (self.flow, &self.phase) else {
            debug_assert!(false, "only what is paused is parked");
            return;
        };
        let held = self.buffer.held();
        self.flow = Flow::Parked(since);
        self.release_buffered();
        self.streams.park(now);
        self.stats.parks += 1;
        self.tell(Notice::Parked {
            messages: held.items,
            bytes: held.bytes,
            paused: now.saturating_duration_since(since),
        });
        self.tidy();
        self.watch_reading(now);
    }

    /// Gives back everything that was not handed out.
    pub(super) fn release_buffered(&mut self) {
        // What the handle has taken is given back here too, and must not come out any more.
        self.revoked += 1;
        self.break_all_runs();
        let mut gone = Vec::new();
        self.buffer.retain(|message| {
            gone.push(message.delivery);
            false
        });
        let batches: Vec<u64> = self.deliveries.batches().collect();
        for batch in batches {
            for id in self.deliveries.ids_of(batch) {
                if self.deliveries.stage(id) != Stage::Buffered {
                    continue;
                }
                if self.deliveries.marks(id).has(Marks::LAPSED) {
                    self.drop_buffered(id);
                } else {
                    self.give_back(id, 0);
                }
            }
        }
        for delivery in gone {
            self.leave_queue(delivery);
        }
    }

    /// Whether the source has room for one more response of each stream. Until told otherwise,
    /// there is. Answers whether that is news.
    pub(crate) fn handle_room(&mut self, now: Instant, room: Room) -> bool {
        let news = std::mem::replace(&mut self.room, room) != room;
        if news {
            self.spent = match room {
                Room::Spent => Some((now, false)),
                Room::Free | Room::Taken => None,
            };
            self.watch_reading(now);
        }
        news
    }

    /// When it is to be told that the shared budget stays spent.
    pub(super) fn next_spent_told(&self) -> Option<Instant> {
        let (since, told) = self.spent?;
        (!told).then(|| since + SPENT_TOLD)
    }

    pub(super) fn tell_spent(&mut self, now: Instant) {
        if self.next_spent_told().is_some_and(|at| at <= now)
            && let Some((since, told)) = &mut self.spent
        {
            *told = true;
            let waited = now.saturating_duration_since(*since);
            self.tell(Notice::BudgetSpent { waited });
        }
    }

    /// How this split stands among those of its source.
    pub(crate) fn standing(&self) -> Standing {
        let ending = self.closed().is_some();
        Standing {
            held: self.buffer.held(),
            wants: self.wants_more(),
            paused: self.flow.paused_since().is_some() && !ending,
            parked: self.flow.is_parked() && !ending,
        }
    }

    /// The stats, with what is so about pauses and room.
    pub(super) fn stats_of_pauses(&self, now: Instant) -> Stats {
        Stats {
            budget_wait_seconds: self.spent.map_or(0.0, |(since, _)| {
                Stats::seconds(now.saturating_duration_since(since))
            }),
            paused: usize::from(self.flow.paused_since().is_some()),
            parked: usize::from(self.flow.is_parked()),
            paused_seconds: self.flow.paused_since().map_or(0.0, |since| {
                Stats::seconds(now.saturating_duration_since(since))
            }),
            ..self.stats
        }
    }

    /// Whether responses may be read from the streams.
    pub(crate) fn reads(&self) -> bool {
        match self.phase {
            // What the half-closed streams of a parked split still deliver is given back at once.
            Phase::Running => {
                self.flow.is_parked()
                    || self.stopping
                    || (self.room == Room::Free && self.wants_more())
            }
            // What half-closed streams still deliver is given back at once.
            Phase::Closing { .. } => true,
            Phase::Closed { .. } => false,
        }
    }

    /// Whether one more response would be read if the source has room for it.
    pub(super) fn wants_more(&self) -> bool {
        let Phase::Running = self.phase else {
            return false;
        };
        // At the bound nothing more comes by itself: the server was told no more. To stop reading
        // there would close streams that have just been given room by a commit. Beyond the bound,
        // after reconnects, the server has more out than it was told.
        let below = self.deliveries.leased() <= self.settings.outstanding;
        below
            && match self.flow {
                Flow::Running => self.buffer.wants_more(),
                // How fast the host was says nothing about a host that does not take anything.
                Flow::Paused(_) => self.buffer.has_room(),
                Flow::Parked(_) => false,
            }
    }
}
