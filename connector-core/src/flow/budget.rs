//! One budget, several members.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use super::Limits;

/// A budget of items and bytes over one or several connectors.
///
/// Rules, in this order: a member that holds nothing is always admitted, so that nobody waits for
/// ever behind an item larger than the budget; a member below its reserve (the limit divided by
/// twice the number of members) is always admitted; beyond that, room is handed over first come
/// first served while the whole is below the limit.
///
/// Do not share a budget between a source and the sink it feeds, nor between a sink and its
/// dead-letter sink: the one waits for room that only the other's progress would free.
#[derive(Clone)]
pub struct Budget(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    members: BTreeMap<u64, MemberState>,
    /// Members that wait for room, first come first.
    queue: VecDeque<u64>,
    next_member: u64,
}

#[derive(Debug)]
struct MemberState {
    name: Arc<str>,
    held: Limits,
    waker: Option<Waker>,
    /// Told that there is room and not heard of since. Members behind may pass, so that one host
    /// that stands still does not hold up the others.
    woken: bool,
}

/// What one member of a budget holds: for gauges, and to name the holder when another waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The name the member joined with.
    pub name: Arc<str>,
    /// What it holds.
    pub held: Limits,
    /// Whether it waits for room.
    pub waiting: bool,
}

impl Budget {
    /// A budget with the given limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            limits,
            members: BTreeMap::new(),
            queue: VecDeque::new(),
            next_member: 0,
        })))
    }

    /// Joins a member under a name for gauges and events.
    #[must_use]
    pub fn join(&self, name: impl Into<Arc<str>>) -> Member {
        let mut inner = self.lock();
        let id = inner.next_member;
        inner.next_member += 1;
        inner.members.insert(
            id,
            MemberState {
                name: name.into(),
                held: Limits::default(),
                waker: None,
                woken: false,
            },
        );
        drop(inner);
        Member {
            budget: self.clone(),
            id,
        }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.lock().limits
    }

    /// What all members hold together.
    #[must_use]
    pub fn held(&self) -> Limits {
        self.lock().held()
    }

    /// What each member holds, in the order in which they joined.
    #[must_use]
    pub fn holders(&self) -> Vec<Holder> {
        let inner = self.lock();
        let holder = |(id, member): (&u64, &MemberState)| Holder {
            name: Arc::clone(&member.name),
            held: member.held,
            waiting: inner.queue.contains(id),
        };
        inner.members.iter().map(holder).collect()
    }

    // Every critical section below leaves the numbers consistent at each step, so a panic of
    // another thread (which could only come from a waker's clone) cannot leave them half-changed.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("Budget")
            .field("limits", &inner.limits)
            .field("held", &inner.held())
            .field("members", &inner.members.len())
            .finish()
    }
}

impl Inner {
    fn held(&self) -> Limits {
        self.members
            .values()
            .fold(Limits::default(), |sum, member| sum.plus(member.held))
    }

    fn admits(&self, id: u64) -> bool {
        let reserve = self.limits.split(2 * self.members.len().max(1));
        let Some(member) = self.members.get(&id) else {
            return false;
        };
        if member.held.is_zero() || reserve.admits(member.held) {
            return true;
        }
        // Room that others hold in reserve is not free.
        let spoken_for = self
            .members
            .iter()
            .fold(Limits::default(), |sum, (other, member)| {
                let amount = if *other == id {
                    member.held
                } else {
                    member.held.max(reserve)
                };
                sum.plus(amount)
            });
        self.limits.admits(spoken_for)
    }

    /// Whether someone ahead of `id` waits and has not been told of the room yet.
    fn someone_is_ahead(&self, id: u64) -> bool {
        self.queue
            .iter()
            .take_while(|ahead| **ahead != id)
            .any(|ahead| self.members.get(ahead).is_some_and(|member| !member.woken))
    }

    fn admit(&mut self, id: u64) -> bool {
        let may_skip_the_queue = self.members.get(&id).is_some_and(|member| {
            let reserve = self.limits.split(2 * self.members.len().max(1));
            member.held.is_zero() || reserve.admits(member.held)
        });
        if !self.admits(id) || (!may_skip_the_queue && self.someone_is_ahead(id)) {
            return false;
        }
        self.queue.retain(|waiting| *waiting != id);
        if let Some(member) = self.members.get_mut(&id) {
            member.woken = false;
            member.waker = None;
        }
        true
    }

    /// The wakers of everyone who may go on now, to be woken outside the lock.
    fn wakers(&mut self) -> Vec<Waker> {
        let ready: Vec<u64> = self
            .queue
            .iter()
            .copied()
            .filter(|id| self.admits(*id))
            .collect();
        let mut wakers = Vec::new();
        for id in ready {
            if let Some(member) = self.members.get_mut(&id)
                && let Some(waker) = member.waker.take()
            {
                member.woken = true;
                wakers.push(waker);
            }
        }
        wakers
    }
}

/// One connector's part in a [`Budget`]. Returns what it holds when dropped.
pub struct Member {
    budget: Budget,
    id: u64,
}

impl Member {
    /// Whether the member may take one more item (or one more response) now.
    ///
    /// Does not take it: [`charge`](Self::charge) does, once its size is known.
    #[must_use]
    pub fn try_admit(&self) -> bool {
        self.budget.lock().admit(self.id)
    }

    /// Waits until the member may take one more item.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken; the member keeps its place in the queue until it is admitted, gives up
    /// with [`give_up`](Self::give_up), or is dropped.
    pub fn poll_admit(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.budget.lock();
        if inner.admit(self.id) {
            return Poll::Ready(());
        }
        if !inner.queue.contains(&self.id) {
            inner.queue.push_back(self.id);
        }
        if let Some(member) = inner.members.get_mut(&self.id) {
            member.woken = false;
            member.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Leaves the queue.
    pub fn give_up(&self) {
        let mut inner = self.budget.lock();
        inner.queue.retain(|waiting| *waiting != self.id);
        if let Some(member) = inner.members.get_mut(&self.id) {
            member.waker = None;
            member.woken = false;
        }
        let wakers = inner.wakers();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes items. Never fails: admission came before, and what arrived has arrived.
    pub fn charge(&self, amount: Limits) {
        let mut inner = self.budget.lock();
        if let Some(member) = inner.members.get_mut(&self.id) {
            member.held = member.held.plus(amount);
        }
    }

    /// Gives items back, and wakes who may go on.
    pub fn release(&self, amount: Limits) {
        let mut inner = self.budget.lock();
        if let Some(member) = inner.members.get_mut(&self.id) {
            debug_assert!(
                member.held.items >= amount.items && member.held.bytes >= amount.bytes,
                "a member gives back only what it holds"
            );
            member.held = member.held.minus(amount);
        }
        let wakers = inner.wakers();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What the member holds.
    #[must_use]
    pub fn held(&self) -> Limits {
        self.budget
            .lock()
            .members
            .get(&self.id)
            .map(|member| member.held)
            .unwrap_or_default()
    }

    /// The budget this is a member of.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut inner = self.budget.lock();
        inner.members.remove(&self.id);
        inner.queue.retain(|waiting| *waiting != self.id);
        let wakers = inner.wakers();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}
