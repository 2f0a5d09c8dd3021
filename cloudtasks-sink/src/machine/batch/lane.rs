//! The tasks that wait for one queue.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use super::super::RecordId;
use super::super::settings::Batch;

/// Bytes beside a task's request in a call: a key of one byte and a length of at most five.
pub(super) const AROUND: usize = 6;

/// Bytes beside the requests in a call: the queue's name and the request's id.
const FRAME: usize = 1024;

/// A task to create.
#[derive(Debug, Clone)]
pub(in super::super) struct Item {
    pub(in super::super) record: RecordId,
    /// The encoded CreateTaskRequest.
    pub(in super::super) request: Bytes,
    /// The task's own name, where the service does not give one.
    pub(in super::super) name: Option<String>,
    /// Whether it was asked for before.
    pub(in super::super) again: bool,
    /// Whether it may exist without our learning of it.
    pub(in super::super) may_exist: bool,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) waiting: VecDeque<Item>,
    /// Calls that have not ended.
    pub(super) calls: usize,
    /// Whether it is in line for a call.
    pub(super) is_ready: bool,
}

impl Lane {
    /// Takes out what fits into one call, in order: the first task always does.
    ///
    /// The service refuses a call with two equal names as a whole, so that the second one waits.
    pub(super) fn take(&mut self, size: Batch) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        let mut names = BTreeSet::new();
        let mut bytes = FRAME;
        while let Some(item) = self.waiting.front() {
            let with = bytes
                .saturating_add(item.request.len())
                .saturating_add(AROUND);
            let is_first = items.is_empty();
            if !is_first && (items.len() >= size.tasks || with > size.bytes) {
                break;
            }
            if let Some(name) = &item.name
                && !names.insert(name.clone())
            {
                break;
            }
            bytes = with;
            items.extend(self.waiting.pop_front());
        }
        items
    }
}
