//! Creating many tasks in one call.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use prost_types::Any;

use super::{TaskRefusal, TasksState, name};
use crate::cloudtasks::proto::batch_create_tasks_metadata::State;
use crate::cloudtasks::proto::{
    BatchCreateTasksMetadata, BatchCreateTasksRequest, BatchCreateTasksResponse, CreateTaskRequest,
    Operation, RpcStatus, Task, operation,
};
use crate::code::Code;
use crate::time::Time;

/// The most tasks of one batch (recorded from the service).
const TASKS: usize = 100;

/// The longest request id (recorded).
const REQUEST_ID: usize = 100;

const METADATA: &str = "type.googleapis.com/google.cloud.tasks.v2.BatchCreateTasksMetadata";
const RESPONSE: &str = "type.googleapis.com/google.cloud.tasks.v2.BatchCreateTasksResponse";

/// What a rule for single tasks makes of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Judged {
    /// It is created, or refused by the service's own rules.
    Pass,
    /// It is refused with this status and has no effect.
    Refused {
        /// The code.
        code: Code,
        /// The text.
        message: String,
    },
    /// It is created, and the answer says that it was refused.
    CreatedYetRefused {
        /// The code.
        code: Code,
        /// The text.
        message: String,
    },
}

/// A batch that was carried out.
#[derive(Debug)]
pub(super) struct Batch {
    operation: Operation,
    started_at: Time,
    done_at: Time,
}

impl Batch {
    /// The operation as it shows at `now`.
    fn seen(&self, now: Time) -> Operation {
        if now >= self.done_at {
            return self.operation.clone();
        }
        let metadata = BatchCreateTasksMetadata {
            start_time: Some(self.started_at.to_timestamp()),
            end_time: None,
            state: State::Running.into(),
            failed_requests: BTreeMap::new(),
        };
        Operation {
            name: self.operation.name.clone(),
            metadata: Some(any(&metadata)),
            done: false,
            result: None,
        }
    }
}

impl TasksState {
    /// Creates tasks and returns the operation, with a verdict per task once it is done: at once,
    /// unless operations [take](Self::operations_take) a while.
    ///
    /// # Errors
    ///
    /// Nothing was created when the call as a whole is refused: more than 100 tasks, none, two with
    /// one name, one of another queue, a malformed name, or a request id that is malformed or was
    /// used before.
    pub fn batch_create(
        &mut self,
        now: Time,
        request: BatchCreateTasksRequest,
    ) -> Result<Operation, TaskRefusal> {
        self.batch_create_judged(now, request, |_| Judged::Pass)
    }

    /// As [`batch_create`](Self::batch_create), with a word about each task.
    ///
    /// # Errors
    ///
    /// As [`batch_create`](Self::batch_create).
    pub fn batch_create_judged(
        &mut self,
        now: Time,
        request: BatchCreateTasksRequest,
        mut judge: impl FnMut(&CreateTaskRequest) -> Judged,
    ) -> Result<Operation, TaskRefusal> {
        let now = self.clock(now);
        check(&request)?;
        let location = name::location_of(&request.parent).ok_or(TaskRefusal::QueueName)?;
        let id = if request.request_id.is_empty() {
            self.next_operation += 1;
            format!("batch-{}", self.next_operation)
        } else {
            request.request_id
        };
        let operation_name = format!("{location}/operations/{id}");
        if self.operations.contains_key(&operation_name) {
            return Err(TaskRefusal::BatchId { id });
        }
        let mut tasks = Vec::new();
        let mut failed_requests = BTreeMap::new();
        for (index, one) in (0_i32..).zip(request.requests) {
            let judged = judge(&one);
            match self.create_task_judged(now, one, judged) {
                Ok(task) => tasks.push(task),
                Err(refusal) => {
                    let status = RpcStatus {
                        code: refusal.code().number(),
                        message: refusal.to_string(),
                        details: Vec::new(),
                    };
                    failed_requests.insert(index, status);
                }
            }
        }
        let done_at = now + self.operation_time;
        let batch = Batch {
            operation: operation(now, done_at, operation_name.clone(), tasks, failed_requests),
            started_at: now,
            done_at,
        };
        let seen = batch.seen(now);
        self.operations.insert(operation_name, batch);
        Ok(seen)
    }

    /// The operation of an earlier batch.
    ///
    /// # Errors
    ///
    /// When there is none of that name.
    pub fn operation(&mut self, now: Time, name: &str) -> Result<Operation, TaskRefusal> {
        let now = self.clock(now);
        self.operations
            .get(name)
            .map(|batch| batch.seen(now))
            .ok_or(TaskRefusal::NotFound)
    }
}

fn operation(
    started_at: Time,
    done_at: Time,
    name: String,
    tasks: Vec<Task>,
    failed_requests: BTreeMap<i32, RpcStatus>,
) -> Operation {
    let state = match (tasks.is_empty(), failed_requests.is_empty()) {
        (_, true) => State::Succeeded,
        (true, false) => State::Failed,
        (false, false) => State::PartiallySucceeded,
    };
    let result = if tasks.is_empty() {
        let first = failed_requests.values().next();
        operation::Result::Error(RpcStatus {
            code: first.map_or(Code::Unknown.number(), |status| status.code),
            message: "No task of the batch was created.".to_owned(),
            details: Vec::new(),
        })
    } else {
        let value = BatchCreateTasksResponse { tasks }.encode_to_vec();
        operation::Result::Response(Any {
            type_url: RESPONSE.to_owned(),
            value,
        })
    };
    let metadata = BatchCreateTasksMetadata {
        start_time: Some(started_at.to_timestamp()),
        end_time: Some(done_at.to_timestamp()),
        state: state.into(),
        failed_requests,
    };
    Operation {
        name,
        metadata: Some(any(&metadata)),
        done: true,
        result: Some(result),
    }
}

fn any(metadata: &BatchCreateTasksMetadata) -> Any {
    Any {
        type_url: METADATA.to_owned(),
        value: metadata.encode_to_vec(),
    }
}

/// What refuses a batch as a whole.
fn check(request: &BatchCreateTasksRequest) -> Result<(), TaskRefusal> {
    name::check_queue(&request.parent)?;
    if request.requests.is_empty() {
        return Err(TaskRefusal::BatchEmpty);
    }
    if request.requests.len() > TASKS {
        return Err(TaskRefusal::BatchTooLong {
            count: request.requests.len(),
        });
    }
    let id = &request.request_id;
    let id_is_valid = id.len() <= REQUEST_ID
        && id
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if !id_is_valid {
        return Err(TaskRefusal::BatchIdName { id: id.clone() });
    }
    let mut names = BTreeSet::new();
    for one in &request.requests {
        if one.parent != request.parent {
            let (found, parent) = (one.parent.clone(), request.parent.clone());
            return Err(TaskRefusal::BatchQueues { found, parent });
        }
        let name = one.task.as_ref().map_or("", |task| task.name.as_str());
        name::check_task(&request.parent, name)?;
        if !name.is_empty() && !names.insert(name) {
            return Err(TaskRefusal::BatchNames {
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}
