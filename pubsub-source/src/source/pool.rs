//! What the splits of one source share while they run.

use std::sync::{Arc, Mutex, PoisonError};

use connector_core::{Budget, Limits};
use tokio::sync::Notify;

use super::{
    purse::{Bells, Purse},
    shares::{Shares, Standing},
};

/// What a split finds when it wants to read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// The source's other splits have it.
    Taken,
    /// The budget that the source shares with other connectors is spent.
    Spent,
}

/// What a split is to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Whether it may read on.
    pub(crate) room: Room,
    /// Whether it is to give back what it holds.
    pub(crate) park: bool,
}

/// The shares of a source's splits, and how to reach each split's driver.
///
/// Its lock is taken with a split's own lock held, and never the other way round: what follows for
/// another split is told to its driver, which comes and asks.
#[derive(Debug)]
pub(crate) struct Pool {
    books: Mutex<Books>,
    bells: Arc<Bells>,
    /// A budget that the source shares with other connectors, and its name there.
    budget: Option<(Budget, Arc<str>)>,
}

#[derive(Debug)]
struct Books {
    shares: Shares,
    /// The source's part in a budget that it shares with other connectors.
    purse: Option<Purse>,
    /// Who wants room, and was told that there is none.
    waiting: Vec<bool>,
    /// How many they are.
    queue: usize,
}

impl Books {
    fn wait(&mut self, split: usize, waits: bool) {
        let before = std::mem::replace(&mut self.waiting[split], waits);
        self.queue = self.queue + usize::from(waits) - usize::from(before);
    }
}

impl Pool {
    /// A pool of so many splits.
    pub(crate) fn new(bound: Limits, paused_limit: Limits, splits: usize) -> Arc<Self> {
        Arc::new(Self::of(bound, paused_limit, splits))
    }

    /// A pool whose source shares a budget, as a member of this name.
    pub(crate) fn sharing(
        bound: Limits,
        paused_limit: Limits,
        splits: usize,
        budget: Budget,
        name: Arc<str>,
    ) -> Arc<Self> {
        let mut pool = Self::of(bound, paused_limit, splits);
        let member = budget.join(Arc::clone(&name));
        let purse = Purse::new(member, Arc::clone(&pool.bells));
        let books = pool.books.get_mut().unwrap_or_else(PoisonError::into_inner);
        books.purse = Some(purse);
        pool.budget = Some((budget, name));
        Arc::new(pool)
    }

    fn of(bound: Limits, paused_limit: Limits, splits: usize) -> Self {
        Self {
            books: Mutex::new(Books {
                shares: Shares::new(bound, paused_limit, splits),
                purse: None,
                waiting: vec![false; splits],
                queue: 0,
            }),
            bells: Arc::new(Bells::new(splits)),
            budget: None,
        }
    }

    /// What wakes a split's driver.
    pub(crate) fn bell(&self, split: usize) -> Arc<Notify> {
        self.bells.of(split)
    }

    /// The budget that the source shares, and its name there.
    pub(crate) fn budget(&self) -> Option<&(Budget, Arc<str>)> {
        self.budget.as_ref()
    }

    /// A split tells how it stands, and is told what to do.
    pub(crate) fn report(&self, split: usize, standing: Standing) -> Order {
        // Each number is whole after each step, whoever panicked.
        let mut guard = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let books = &mut *guard;
        books.shares.report(split, standing);
        let free = match &mut books.purse {
            Some(purse) => purse.settle(books.shares.held(), books.shares.wants()),
            None => true,
        };
        let room = if !books.shares.may_read(split) {
            Room::Taken
        } else if free || !standing.wants {
            Room::Free
        } else {
            Room::Spent
        };
        books.wait(split, standing.wants && room != Room::Free);
        let park = books.shares.to_park(free);
        if let Some(other) = park.filter(|other| *other != split) {
            self.bells.ring(other);
        }
        if books.queue > 0 && free {
            for other in 0..books.waiting.len() {
                if other != split && books.waiting[other] && books.shares.may_read(other) {
                    self.bells.ring(other);
                }
            }
        }
        Order {
            room,
            park: park == Some(split),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn wants(items: usize) -> Standing {
        Standing {
            held: Limits::new(items, items),
            wants: true,
            ..Standing::default()
        }
    }

    fn rang(bell: &Notify) -> bool {
        bell.notified().now_or_never().is_some()
    }

    #[test]
    fn whoever_found_no_room_is_called_as_soon_as_another_hands_out() {
        let pool = Pool::new(Limits::new(100, 100), Limits::new(25, 25), 2);
        let bells = [pool.bell(0), pool.bell(1)];
        assert_eq!(pool.report(0, wants(70)).room, Room::Free);
        assert_eq!(pool.report(1, wants(30)).room, Room::Taken);
        assert!(!rang(&bells[1]));
        pool.report(0, wants(60));
        assert!(rang(&bells[1]));
        assert_eq!(pool.report(1, wants(30)).room, Room::Free);
        assert!(!rang(&bells[0]), "who does not wait is not called");
        pool.report(0, wants(10));
        assert!(!rang(&bells[1]));
    }

    #[test]
    fn a_split_that_is_to_be_parked_is_called_when_another_starves() {
        let pool = Pool::new(Limits::new(100, 100), Limits::new(25, 25), 2);
        let bell = pool.bell(1);
        let paused = Standing {
            paused: true,
            ..wants(20)
        };
        assert!(!pool.report(1, paused).park);
        pool.report(0, wants(70));
        assert!(!rang(&bell));
        let order = pool.report(0, wants(80));
        assert_eq!((order.room, order.park), (Room::Taken, false));
        assert!(rang(&bell));
        assert!(pool.report(1, paused).park);
    }
}
