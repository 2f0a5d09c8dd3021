//! Records that may not be sent yet, by their queue.
//!
//! A queue is looked at before its first record is sent, and may have a pace. What has to wait for
//! either is set aside, so that it holds up no record of another queue.

mod look;
mod pace;

pub(crate) use look::Found;
pub(super) use look::Look;
pub use pace::Ramp;
pub(crate) use pace::{Pace, Pacing};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use gcp_wire::QueueName;

use super::RecordId;
use crate::queue_state::QueueState;

/// How often a queue is looked at: soon enough to tell an operator what they changed, and a load
/// that no quota notices.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// Queues that are looked at, the first of a run: a resolver may name any number.
const MOST_LOOKED_AT: usize = 100;

/// Queues with a pace beyond which idle ones are forgotten.
const MANY: usize = 1_000;

/// Whether a record may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// At once.
    Free,
    /// At once, but the queue replaces the URL of its HTTP tasks.
    Replaced,
    /// Later: it is to be set aside.
    Later,
}

#[derive(Debug)]
pub(super) struct Gate {
    looks: bool,
    pacing: Pacing,
    lanes: BTreeMap<QueueName, Lane>,
    /// Queues with records that need nothing but this time.
    due: BTreeSet<(Instant, QueueName)>,
    to_look: VecDeque<QueueName>,
    looks_due: BTreeSet<(Instant, QueueName)>,
    looked_at: usize,
    aside: usize,
    /// Queues whose state changed since it was published.
    #[cfg(feature = "metrics")]
    changed: BTreeSet<QueueName>,
}

/// What is known of a queue.
#[derive(Debug)]
struct Lane {
    look: Look,
    pace: Option<Pace>,
    aside: VecDeque<RecordId>,
    due: Option<Instant>,
}

impl Lane {
    /// When its next record may be sent; nothing while that is not a question of time.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        if self.look == Look::First {
            return None;
        }
        Some(self.pace.as_mut().map_or(now, |pace| pace.due(now)))
    }
}

impl Gate {
    pub(super) const fn new(looks: bool, pacing: Pacing) -> Self {
        Self {
            looks,
            pacing,
            lanes: BTreeMap::new(),
            due: BTreeSet::new(),
            to_look: VecDeque::new(),
            looks_due: BTreeSet::new(),
            looked_at: 0,
            aside: 0,
            #[cfg(feature = "metrics")]
            changed: BTreeSet::new(),
        }
    }

    /// A queue that is known before any record names it.
    pub(super) fn expect(&mut self, now: Instant, queue: &QueueName) {
        if self.looks {
            let _known = self.lane(now, queue);
        }
    }

    /// Whether a record of the queue may be sent. One that may has taken its place in the pace.
    pub(super) fn passes(&mut self, now: Instant, queue: &QueueName) -> Passage {
        if !self.looks && self.pacing.is_none() {
            return Passage::Free;
        }
        let Some(lane) = self.lane(now, queue) else {
            return Passage::Free;
        };
        if !lane.aside.is_empty() || lane.next(now).is_none_or(|due| due > now) {
            return Passage::Later;
        }
        if let Some(pace) = &mut lane.pace {
            pace.take(now);
        }
        lane.look.passage()
    }

    /// Keeps a record until its queue has been looked at and its turn has come. A record that was
    /// sent before is older than the others.
    pub(super) fn set_aside(&mut self, now: Instant, queue: &QueueName, id: RecordId, again: bool) {
        let Some(lane) = self.lanes.get_mut(queue) else {
            return;
        };
        if again {
            lane.aside.push_front(id);
        } else {
            lane.aside.push_back(id);
        }
        self.aside += 1;
        self.renew(now, queue);
    }

    /// The next record whose turn has come.
    pub(super) fn next(&mut self, now: Instant) -> Option<(RecordId, Passage)> {
        let (due, _) = self.due.first()?;
        if *due > now {
            return None;
        }
        let (_, queue) = self.due.pop_first()?;
        let lane = self.lanes.get_mut(&queue)?;
        lane.due = None;
        let id = lane.aside.pop_front()?;
        self.aside -= 1;
        if let Some(pace) = &mut lane.pace {
            pace.take(now);
        }
        let passage = lane.look.passage();
        self.renew(now, &queue);
        Some((id, passage))
    }

    /// When the turn of the next record comes.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Records set aside.
    pub(super) const fn aside(&self) -> usize {
        self.aside
    }

    /// The records set aside, by queue.
    pub(super) fn records(&self) -> Vec<RecordId> {
        let lanes = self.lanes.values();
        lanes.flat_map(|lane| lane.aside.iter().copied()).collect()
    }

    /// Takes records out that are not to be sent any more.
    pub(super) fn withdraw(&mut self, now: Instant, records: &BTreeSet<RecordId>) {
        if records.is_empty() {
            return;
        }
        let queues: Vec<QueueName> = self.lanes.keys().cloned().collect();
        for queue in queues {
            if let Some(lane) = self.lanes.get_mut(&queue) {
                let before = lane.aside.len();
                lane.aside.retain(|id| !records.contains(id));
                self.aside -= before - lane.aside.len();
            }
            self.renew(now, &queue);
        }
    }

    pub(super) fn clear(&mut self) {
        for lane in self.lanes.values_mut() {
            lane.aside.clear();
            lane.due = None;
        }
        self.due.clear();
        self.to_look.clear();
        self.looks_due.clear();
        self.aside = 0;
    }

    fn lane(&mut self, now: Instant, queue: &QueueName) -> Option<&mut Lane> {
        if !self.lanes.contains_key(queue) {
            let looks = self.looks && self.looked_at < MOST_LOOKED_AT;
            let pace = self.pacing.pace(now);
            if !looks && pace.is_none() {
                return None;
            }
            let look = if looks {
                self.looked_at += 1;
                self.to_look.push_back(queue.clone());
                Look::First
            } else {
                Look::Never
            };
            if self.lanes.len() >= MANY {
                self.forget_idle(now);
            }
            let lane = Lane {
                look,
                pace,
                aside: VecDeque::new(),
                due: None,
            };
            self.lanes.insert(queue.clone(), lane);
        }
        self.lanes.get_mut(queue)
    }

    fn forget_idle(&mut self, now: Instant) {
        self.lanes.retain(|_, lane| {
            let is_idle = lane.aside.is_empty()
                && lane.look == Look::Never
                && lane.pace.as_mut().is_none_or(|pace| pace.is_fresh(now));
            !is_idle
        });
    }

    /// Puts the queue in line for the time of its next record.
    fn renew(&mut self, now: Instant, queue: &QueueName) {
        let Some(lane) = self.lanes.get_mut(queue) else {
            return;
        };
        if let Some(due) = lane.due.take() {
            self.due.remove(&(due, queue.clone()));
        }
        if !lane.aside.is_empty()
            && let Some(due) = lane.next(now)
        {
            lane.due = Some(due);
            self.due.insert((due, queue.clone()));
        }
    }
}

/// Looking at queues.
impl Gate {
    /// The next queue to look at.
    pub(super) fn next_look(&mut self) -> Option<QueueName> {
        self.to_look.pop_front()
    }

    /// When to look again.
    pub(super) fn next_look_due(&self) -> Option<Instant> {
        self.looks_due.first().map(|(due, _)| *due)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, _)) = self.looks_due.first()
            && *due <= now
            && let Some((_, queue)) = self.looks_due.pop_first()
        {
            self.to_look.push_back(queue);
        }
    }

    /// The queue was looked at, or could not be. Answers what was known before.
    pub(super) fn handle_look(
        &mut self,
        now: Instant,
        queue: &QueueName,
        found: Option<Found>,
    ) -> Look {
        let Some(lane) = self.lanes.get_mut(queue) else {
            return Look::Never;
        };
        let before = lane.look;
        lane.look = match (found, before) {
            (Some(found), _) => Look::Found(found),
            (None, Look::Found(found)) => Look::Found(found),
            (None, Look::First | Look::Unseen | Look::Never) => Look::Unseen,
        };
        #[cfg(feature = "metrics")]
        if lane.look != before {
            self.changed.insert(queue.clone());
        }
        if let Some(due) = now.checked_add(LOOK_AGAIN) {
            self.looks_due.insert((due, queue.clone()));
        }
        self.renew(now, queue);
        before
    }

    /// The state of every queue that is looked at.
    pub(super) fn states(&self) -> impl Iterator<Item = (&QueueName, QueueState)> {
        let looked_at = self
            .lanes
            .iter()
            .filter(|(_, lane)| lane.look != Look::Never);
        looked_at.map(|(queue, lane)| (queue, lane.look.state()))
    }

    /// The states that changed since the last call.
    #[cfg(feature = "metrics")]
    pub(super) fn take_changed(&mut self) -> Vec<(QueueName, QueueState)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed
            .filter_map(|queue| {
                let state = self.lanes.get(&queue)?.look.state();
                Some((queue, state))
            })
            .collect()
    }
}

#[cfg(any(test, fuzzing))]
impl Gate {
    pub(super) fn check_invariants(&self) {
        let aside: usize = self.lanes.values().map(|lane| lane.aside.len()).sum();
        assert_eq!(aside, self.aside, "records set aside are counted");
        for (queue, lane) in &self.lanes {
            let is_due = !lane.aside.is_empty() && lane.look != Look::First;
            assert_eq!(lane.due.is_some(), is_due, "{queue} comes up by itself");
            if let Some(due) = lane.due {
                assert!(self.due.contains(&(due, queue.clone())));
            }
        }
        let due = self.lanes.values().filter(|lane| lane.due.is_some());
        assert_eq!(due.count(), self.due.len());
    }
}

#[cfg(test)]
mod tests;
