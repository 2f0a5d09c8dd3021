//! The calls of the service.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt;
use gcp_wire::proto::longrunning::GetOperationRequest;
use gcp_wire::proto::tasks::GetQueueRequest;
use gcp_wire::{EncodedBody, QueueName, method};

use super::{Answered, Driver, skew};
use crate::event;
use crate::machine::{Answer, CallId, RecordId};

/// How long the first look at a queue may hold up the queue's records.
const LOOK_DEADLINE: Duration = Duration::from_secs(5);

impl Driver {
    pub(super) fn create(
        &self,
        record: RecordId,
        queue: &QueueName,
        request: Bytes,
        not_after: Option<SystemTime>,
    ) {
        let connection = self.connection.clone();
        let (queue, deadline) = (queue.clone(), self.attempt_deadline);
        let wall = self.shared.wall().clone();
        let span = event::creating(self.shared.instance(), &queue, record);
        let call = async move {
            // The last look at the clock: the machine may have slept since it decided.
            let sent = wall.now();
            if not_after.is_some_and(|until| sent > until) {
                return Answered::Late(record);
            }
            let body = EncodedBody::from(request);
            let call =
                connection.call_encoded(&method::CREATE_TASK, queue.as_str(), body, deadline);
            match event::within(span, call).await {
                Ok(task) => {
                    let judged = not_after.and(Some(&task));
                    let apart = judged.and_then(|task| skew::of_task(task, sent, wall.now()));
                    Answered::Create(record, Answer::Created(task.name), apart)
                }
                Err(error) => Answered::Create(record, Answer::Failed(error), None),
            }
        };
        self.calls.push(call.boxed());
    }

    pub(super) fn create_batch(
        &self,
        id: CallId,
        queue: &QueueName,
        request: Bytes,
        not_after: Option<SystemTime>,
    ) {
        let connection = self.connection.clone();
        let (queue, deadline) = (queue.clone(), self.attempt_deadline);
        let wall = self.shared.wall().clone();
        let span = event::creating_batch(self.shared.instance(), &queue, id);
        let call = async move {
            let sent = wall.now();
            if not_after.is_some_and(|until| sent > until) {
                return Answered::LateBatch(id);
            }
            let body = EncodedBody::from(request);
            let method = &method::BATCH_CREATE_TASKS;
            let call = connection.call_encoded(method, queue.as_str(), body, deadline);
            let outcome = event::within(span, call).await;
            let judged = not_after.and(outcome.as_ref().ok());
            let apart = judged.and_then(|made| skew::of_batch(made, sent, wall.now()));
            Answered::Batch(id, outcome, apart)
        };
        self.calls.push(call.boxed());
    }

    pub(super) fn read_operation(&self, id: CallId, operation: String) {
        let connection = self.connection.clone();
        let deadline = self.attempt_deadline;
        let call = async move {
            let request = GetOperationRequest {
                name: operation.clone(),
            };
            let outcome = connection
                .call(&method::GET_OPERATION, &operation, request, deadline)
                .await;
            Answered::Operation(id, outcome)
        };
        self.calls.push(call.boxed());
    }

    pub(super) fn read_queue(&self, queue: QueueName) {
        let connection = self.connection.clone();
        let deadline = self.attempt_deadline.min(LOOK_DEADLINE);
        let call = async move {
            let request = GetQueueRequest {
                name: queue.as_str().to_owned(),
            };
            let outcome = connection
                .call(&method::GET_QUEUE, queue.as_str(), request, deadline)
                .await;
            Answered::Queue(queue, outcome.map(Box::new))
        };
        self.calls.push(call.boxed());
    }
}
