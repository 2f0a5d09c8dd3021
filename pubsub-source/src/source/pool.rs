//! What the splits of one source share while they run.

use std::sync::{Arc, Mutex, PoisonError};

use connector_core::Limits;
use tokio::sync::Notify;

use super::shares::{Shares, Standing};

/// What a split is to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Whether it may read on.
    pub(crate) room: bool,
    /// Whether it is to give back what it holds.
    pub(crate) park: bool,
}

/// The shares of a source's splits, and how to reach each split's driver.
///
/// Its lock is taken with a split's own lock held, and never the other way round: what follows for
/// another split is told to its driver, which comes and asks.
#[derive(Debug)]
pub(crate) struct Pool {
    shares: Mutex<Books>,
    bells: Vec<Arc<Notify>>,
}

#[derive(Debug)]
struct Books {
    shares: Shares,
    /// Who wants room, and was told that there is none.
    waiting: Vec<bool>,
}

impl Pool {
    /// A pool of so many splits.
    pub(crate) fn new(bound: Limits, paused_limit: Limits, splits: usize) -> Arc<Self> {
        Arc::new(Self {
            shares: Mutex::new(Books {
                shares: Shares::new(bound, paused_limit, splits),
                waiting: vec![false; splits],
            }),
            bells: (0..splits).map(|_| Arc::default()).collect(),
        })
    }

    /// What wakes a split's driver.
    pub(crate) fn bell(&self, split: usize) -> Arc<Notify> {
        Arc::clone(&self.bells[split])
    }

    /// A split tells how it stands, and is told what to do.
    pub(crate) fn report(&self, split: usize, standing: Standing) -> Order {
        // Each number is whole after each step, whoever panicked.
        let mut books = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        books.shares.report(split, standing);
        let room = books.shares.may_read(split);
        books.waiting[split] = standing.wants && !room;
        let park = books.shares.to_park();
        for (other, bell) in self.bells.iter().enumerate() {
            let due = books.waiting[other] && books.shares.may_read(other);
            if other != split && (due || park == Some(other)) {
                bell.notify_one();
            }
        }
        Order {
            room,
            park: park == Some(split),
        }
    }
}
