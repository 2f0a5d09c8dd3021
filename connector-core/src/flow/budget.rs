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
/// An admission stands for one item until the member charges it or gives it up. So room that is
/// handed to a waiting member cannot be taken by one that asks more often, and a member that is
/// handed room and stands still keeps one item from the others and no more.
///
/// Do not share a budget between a source and the sink it feeds, nor between a sink and its
/// dead-letter sink: the one waits for room that only the other's progress would free.
#[derive(Clone)]
pub struct Budget(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    limits: Limits,
    members: BTreeMap<u64, MemberState>,
    /// Members that wait for room, first come first. None of them is admitted.
    queue: VecDeque<u64>,
    next_member: u64,
}

#[derive(Debug)]
struct MemberState {
    name: Arc<str>,
    held: Limits,
    /// May take one more item, and has not taken it yet.
    admitted: bool,
    waker: Option<Waker>,
}

impl MemberState {
    /// What it holds and what it was promised.
    fn spoken_for(&self) -> Limits {
        self.held.plus(Limits::new(usize::from(self.admitted), 0))
    }
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
                admitted: false,
                waker: None,
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
    // another thread (which could only come from a waker's clone or the assertion in `release`)
    // cannot leave them half-changed.
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

    /// Whether the member is entitled to one more item whatever the others hold.
    fn is_entitled(&self, member: &MemberState) -> bool {
        let reserve = self.limits.split(2 * self.members.len().max(1));
        member.held.is_zero() || reserve.admits(member.held)
    }

    /// Whether there is room for one more item of a member that is not entitled to it.
    fn has_room_for(&self, id: u64) -> bool {
        let reserve = self.limits.split(2 * self.members.len().max(1));
        // Room that others hold in reserve, or were promised, is not free.
        let spoken_for = self
            .members
            .iter()
            .fold(Limits::default(), |sum, (other, member)| {
                let amount = if *other == id {
                    member.held
                } else {
                    member.spoken_for().max(reserve)
                };
                sum.plus(amount)
            });
        self.limits.admits(spoken_for)
    }

    fn admit(&mut self, id: u64) -> bool {
        if self.is_unshared() {
            return self.admit_alone(id);
        }
        let Some(member) = self.members.get(&id) else {
            return false;
        };
        let admitted = member.admitted
            || self.is_entitled(member)
            // Whoever waits and is not admitted comes first.
            || (self.queue.front().is_none_or(|first| *first == id) && self.has_room_for(id));
        if admitted {
            self.queue.retain(|waiting| *waiting != id);
            if let Some(member) = self.members.get_mut(&id) {
                member.admitted = true;
                member.waker = None;
            }
        }
        admitted
    }

    /// Whether nobody has to be asked: one member, which does not wait.
    fn is_unshared(&self) -> bool {
        self.members.len() == 1 && self.queue.is_empty()
    }

    /// As [`admit`](Self::admit), of the only member.
    fn admit_alone(&mut self, id: u64) -> bool {
        let limits = self.limits;
        self.members.get_mut(&id).is_some_and(|member| {
            member.admitted |= member.held.is_zero() || limits.admits(member.held);
            member.admitted
        })
    }

    /// Hands free room to those who wait, in order, and answers their wakers, to be woken outside
    /// the lock. Called after everything that can make room.
    fn hand_over(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        if self.queue.is_empty() {
            return wakers;
        }
        // One pass is enough: an admission makes no room for anybody else. Those behind the first
        // who must wait may still be entitled.
        for id in self.queue.clone() {
            let waker = self
                .members
                .get_mut(&id)
                .and_then(|member| member.waker.take());
            if self.admit(id) {
                wakers.extend(waker);
            } else if let Some(member) = self.members.get_mut(&id) {
                member.waker = waker;
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
    /// Does not take it: [`charge`](Self::charge) does, once its size is known. Until then, or
    /// until [`give_up`](Self::give_up), one item is kept for it, and asking again answers the
    /// same.
    #[must_use]
    pub fn try_admit(&self) -> bool {
        self.budget.lock().admit(self.id)
    }

    /// Waits until the member may take one more item.
    ///
    /// # Cancel safety
    ///
    /// Nothing is taken. The member keeps its place in the queue, and once admitted its admission,
    /// until it charges, gives up with [`give_up`](Self::give_up), or is dropped.
    pub fn poll_admit(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.budget.lock();
        if inner.admit(self.id) {
            return Poll::Ready(());
        }
        if !inner.queue.contains(&self.id) {
            inner.queue.push_back(self.id);
        }
        if let Some(member) = inner.members.get_mut(&self.id) {
            member.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Leaves the queue, and gives an admission that was not used to the next.
    pub fn give_up(&self) {
        self.change(|inner, id| {
            inner.queue.retain(|waiting| *waiting != id);
            if let Some(member) = inner.members.get_mut(&id) {
                member.admitted = false;
                member.waker = None;
            }
        });
    }

    /// Takes items. Never fails: admission came before, and what arrived has arrived.
    pub fn charge(&self, amount: Limits) {
        self.change(|inner, id| {
            if let Some(member) = inner.members.get_mut(&id) {
                member.held = member.held.plus(amount);
                member.admitted = false;
            }
        });
    }

    /// As [`charge`](Self::charge), and answers whether the member may take one more item.
    ///
    /// As [`try_admit`](Self::try_admit) would, in one step with the charge; but never while
    /// others share the budget, since an admission that is not asked for would keep room from them.
    #[must_use]
    pub fn charge_and_admit(&self, amount: Limits) -> bool {
        let mut inner = self.budget.lock();
        if !inner.is_unshared() {
            drop(inner);
            self.charge(amount);
            return false;
        }
        if let Some(member) = inner.members.get_mut(&self.id) {
            member.held = member.held.plus(amount);
            member.admitted = false;
        }
        inner.admit_alone(self.id)
    }

    /// Gives items back, and wakes who may go on.
    ///
    /// # Panics
    ///
    /// In debug builds, when more is given back than is held.
    pub fn release(&self, amount: Limits) {
        self.change(|inner, id| {
            if let Some(member) = inner.members.get_mut(&id) {
                debug_assert!(
                    member.held.items >= amount.items && member.held.bytes >= amount.bytes,
                    "a member gives back only what it holds"
                );
                member.held = member.held.minus(amount);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Inner, u64)) {
        let mut inner = self.budget.lock();
        change(&mut inner, self.id);
        let wakers = inner.hand_over();
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
        self.change(|inner, id| {
            inner.members.remove(&id);
            inner.queue.retain(|waiting| *waiting != id);
        });
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}
