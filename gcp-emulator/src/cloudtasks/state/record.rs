//! What happened on a queue, kept for assertions.

use std::collections::VecDeque;
use std::sync::Arc;

use prost::Message;

use crate::cloudtasks::proto::Task;
use crate::pubsub::state::History;
use crate::time::Time;

/// What happened on a queue.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueueRecord {
    /// The tasks created, oldest first.
    pub created: VecDeque<Arc<CreatedTask>>,
    /// How many tasks were ever created.
    pub tasks: u64,
    /// How many creations were refused because the name was taken.
    pub taken: u64,
    /// How many creations were refused for another reason.
    pub refused: u64,
    /// How many tasks were dispatched by RunTask.
    pub run: u64,
    /// How many tasks the history dropped.
    pub forgotten: u64,
    bytes: usize,
}

/// A task that was created.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CreatedTask {
    /// Its full name, given or minted.
    pub name: String,
    /// The task as the client sent it.
    pub sent: Task,
    /// The task as it was stored: defaults filled in, headers as the service leaves them.
    pub stored: Task,
    /// When.
    pub at: Time,
}

impl QueueRecord {
    pub(super) fn created(&mut self, task: CreatedTask, history: History) {
        self.tasks += 1;
        self.bytes += task.sent.encoded_len();
        self.created.push_back(Arc::new(task));
        while self.created.len() > history.entries || self.bytes > history.bytes {
            let Some(oldest) = self.created.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(oldest.sent.encoded_len());
            self.forgotten += 1;
        }
    }
}
