//! One call that creates many tasks.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use gcp_wire::proto::longrunning::Operation;
use gcp_wire::{QueueName, RpcError};
use prost::encoding::{bytes as length_delimited, string};

use super::Item;
use super::lane::AROUND;

/// `parent`, `requests` and `request_id` of `BatchCreateTasksRequest`.
const PARENT: u32 = 1;
const REQUESTS: u32 = 2;
const REQUEST_ID: u32 = 3;

/// Names a call. Ascending, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallId(u64);

impl CallId {
    pub(super) const fn new(number: u64) -> Self {
        Self(number)
    }

    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// To be sent, now or when it is due.
    Create,
    /// Sent, not answered.
    Creating,
    /// Its operation is to be read, now or when it is due.
    Read,
    /// Its operation is being read.
    Reading,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) queue: QueueName,
    pub(super) items: Vec<Item>,
    /// The encoded request: every attempt sends these bytes, request id included, so that the
    /// service carries out one of them at most.
    pub(super) request: Bytes,
    pub(super) step: Step,
    /// The full name of the operation.
    operation: String,
    sends: u32,
    /// Attempts, and reads of the operation, that may go better next time.
    pub(super) failures: u32,
    /// How often the operation was not done.
    pub(super) polls: u32,
    /// When it was first seen not to be.
    pub(super) running_since: Option<Instant>,
    /// How often the call was refused without an operation to show for it.
    pub(super) unexplained: u32,
    /// Whether an attempt may have arrived without an answer.
    pub(super) may_have_arrived: bool,
    /// Why the last attempt was refused, while the operation is read for it.
    pub(super) refusal: Option<RpcError>,
}

impl Call {
    pub(super) fn new(queue: QueueName, items: Vec<Item>, request_id: String) -> Self {
        let parent = queue.as_str().to_owned();
        let requests: usize = items.iter().map(|item| item.request.len() + AROUND).sum();
        let mut request =
            BytesMut::with_capacity(requests + parent.len() + request_id.len() + 2 * AROUND);
        string::encode(PARENT, &parent, &mut request);
        for item in &items {
            length_delimited::encode(REQUESTS, &item.request, &mut request);
        }
        string::encode(REQUEST_ID, &request_id, &mut request);
        // A queue's name is its location's, "/queues/" and its id.
        let location = parent.split("/queues/").next().unwrap_or_default();
        let operation = format!("{location}/operations/{request_id}");
        Self {
            queue,
            items,
            request: request.freeze(),
            step: Step::Create,
            operation,
            sends: 0,
            failures: 0,
            polls: 0,
            running_since: None,
            unexplained: 0,
            may_have_arrived: false,
            refusal: None,
        }
    }

    pub(super) fn operation(&self) -> String {
        self.operation.clone()
    }

    /// The service's own name for the operation is the one to ask for.
    pub(super) fn named_by(&mut self, operation: &Operation) {
        if !operation.name.is_empty() {
            self.operation.clone_from(&operation.name);
        }
    }

    /// Counts a send; answers how many tasks it asks for again, and how many of those may make a
    /// second task. The same request id makes none, so that only tasks of earlier calls can.
    pub(super) fn count_send(&mut self) -> (usize, usize) {
        let is_first = self.sends == 0;
        self.sends = self.sends.saturating_add(1);
        let again = self.items.iter().filter(|item| !is_first || item.again);
        let doubtful = |item: &&Item| is_first && item.may_exist && item.name.is_none();
        (again.count(), self.items.iter().filter(doubtful).count())
    }

    /// The tasks leave this call. Where an attempt may have arrived, each may exist.
    pub(super) fn mark_unknown(&mut self) {
        for item in &mut self.items {
            item.again = true;
            item.may_exist |= self.may_have_arrived;
        }
    }
}
