//! What the service answers.

use std::collections::BTreeMap;

use gcp_wire::proto::Any;
use gcp_wire::proto::longrunning::{Operation, operation};
use gcp_wire::proto::rpc::Status;
use gcp_wire::proto::tasks::{
    BatchCreateTasksMetadata, BatchCreateTasksResponse, HttpTarget, Queue, Task, UriOverride,
};
use gcp_wire::{Code, RpcError};
use prost::Message as _;

use super::{Host, pick};
use crate::fuzzing::operation::{Look, Outcome, Reply};
use crate::machine::Answer;

fn failed(method: &'static str, code: u8) -> RpcError {
    // Two numbers beyond the codes that there are.
    RpcError::status(
        method,
        Code::from_number(1 + i32::from(code % 18)),
        "fuzzed",
    )
}

/// What an operation of so many tasks says.
fn said(outcome: Outcome, tasks: usize) -> Operation {
    let status = Status {
        code: i32::from(outcome.code % 18),
        message: "fuzzed".to_owned(),
        ..Status::default()
    };
    let tasks = i32::try_from(tasks).expect("a call has at most 100 tasks");
    let mut failed: BTreeMap<i32, Status> = (0..tasks)
        .filter(|index| outcome.failed >> (index % 8) & 1 == 1)
        .map(|index| (index, status.clone()))
        .collect();
    failed.extend(outcome.stray.map(|index| (index, status.clone())));
    let created = match outcome.created {
        Some(count) => i32::from(count),
        None => (0..tasks)
            .filter(|index| !failed.contains_key(index))
            .count()
            .try_into()
            .expect("a call has at most 100 tasks"),
    };
    let response = BatchCreateTasksResponse {
        tasks: (0..created).map(|_| Task::default()).collect(),
    };
    let metadata = BatchCreateTasksMetadata {
        state: i32::from(outcome.state % 6),
        failed_requests: failed,
        ..BatchCreateTasksMetadata::default()
    };
    let any = |type_url: &str, mut value: Vec<u8>| {
        if outcome.garbled {
            value.truncate(value.len() / 2);
        }
        Any {
            type_url: type_url.to_owned(),
            value,
        }
    };
    let result = if outcome.whole {
        operation::Result::Error(status)
    } else {
        let value = response.encode_to_vec();
        operation::Result::Response(any(BatchCreateTasksResponse::TYPE_URL, value))
    };
    let value = metadata.encode_to_vec();
    Operation {
        name: "projects/demo/locations/l/operations/1".to_owned(),
        metadata: Some(any(BatchCreateTasksMetadata::TYPE_URL, value)),
        done: outcome.done,
        result: outcome.done.then_some(result),
    }
}

impl Host {
    pub(super) fn answer_one(&mut self, at: u8, reply: Reply) {
        let Some(record) = pick(&mut self.records, at) else {
            return;
        };
        let answer = match reply {
            Reply::Done => Answer::Created("fuzzed".to_owned()),
            Reply::Failed(code) => Answer::Failed(failed("CreateTask", code)),
        };
        self.machine.handle_answer(self.now, record, answer, 0.5);
    }

    pub(super) fn answer_call(&mut self, at: u8, reply: Reply, outcome: Outcome) {
        if let Some(call) = pick(&mut self.calls, at) {
            let tasks = self.sizes.get(&call).copied().unwrap_or_default();
            let answer = match reply {
                Reply::Done => Ok(said(outcome, tasks)),
                Reply::Failed(code) => Err(failed("BatchCreateTasks", code)),
            };
            self.machine
                .handle_batch_created(self.now, call, answer, || 0.5);
        }
    }

    pub(super) fn answer_read(&mut self, at: u8, reply: Reply, outcome: Outcome) {
        if let Some(call) = pick(&mut self.reads, at) {
            let tasks = self.sizes.get(&call).copied().unwrap_or_default();
            let answer = match reply {
                Reply::Done => Ok(said(outcome, tasks)),
                Reply::Failed(code) => Err(failed("GetOperation", code)),
            };
            self.machine
                .handle_operation(self.now, call, answer, || 0.5);
        }
    }

    /// The driver found that it is too late to send a call.
    pub(super) fn come_late(&mut self, at: u8, batch: bool) {
        if !self.machine.stages() {
            return;
        }
        if batch {
            if let Some(call) = pick(&mut self.calls, at) {
                self.machine.handle_late_batch(self.now, call);
            }
        } else if let Some(record) = pick(&mut self.records, at) {
            self.machine.handle_late(self.now, record);
        }
    }

    pub(super) fn look(&mut self, at: u8, look: Look) {
        let Some(queue) = pick(&mut self.looks, at) else {
            return;
        };
        let answer = match look {
            Look::Fine { state } => Ok(Queue {
                state,
                ..Queue::default()
            }),
            Look::Overriding => Ok(Queue {
                http_target: Some(HttpTarget {
                    uri_override: Some(UriOverride::default()),
                    ..HttpTarget::default()
                }),
                ..Queue::default()
            }),
            Look::Failed(code) => Err(failed("GetQueue", code)),
        };
        self.machine.handle_queue(self.now, queue, answer);
    }
}
