//! What the partner has written down.

use std::collections::{HashMap, HashSet};

use super::call::{Call, TaskLabel};

/// The orders that arrived, by event id, and the tasks that brought them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// How often each order arrived.
    orders: HashMap<String, u64>,
    tasks: HashSet<TaskLabel>,
    calls: u64,
    refused: u64,
}

/// The figures of a [`Book`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PartnerTally {
    /// Calls that were taken, repeated ones included.
    pub(crate) calls: u64,
    /// Calls that were refused as wrong.
    pub(crate) refused: u64,
    /// Distinct orders.
    pub(crate) orders: u64,
    /// Distinct tasks that brought them.
    pub(crate) tasks: u64,
}

impl Book {
    /// Writes a call down; true when it brought a new order.
    pub(super) fn enter(&mut self, call: Call) -> bool {
        self.calls += 1;
        self.tasks.insert(call.task);
        let times = self.orders.entry(call.event_id).or_default();
        *times += 1;
        *times == 1
    }

    pub(super) const fn refuse(&mut self) {
        self.refused += 1;
    }

    /// Whether the order of this event has arrived.
    pub(crate) fn knows(&self, event_id: &str) -> bool {
        self.orders.contains_key(event_id)
    }

    /// Whether this task has called.
    pub(crate) fn was_called_by(&self, task: &TaskLabel) -> bool {
        self.tasks.contains(task)
    }

    pub(crate) fn tally(&self) -> PartnerTally {
        PartnerTally {
            calls: self.calls,
            refused: self.refused,
            orders: self.orders.len() as u64,
            tasks: self.tasks.len() as u64,
        }
    }
}
