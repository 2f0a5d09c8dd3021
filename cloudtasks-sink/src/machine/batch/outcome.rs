//! What an operation says of each task of its call.

use gcp_wire::proto::longrunning::{Operation, operation};
use gcp_wire::proto::tasks::BatchCreateTasksMetadata;
use gcp_wire::proto::tasks::batch_create_tasks_metadata::State;
use gcp_wire::{Code, QueueName, RpcError};
use prost::Message;

use super::super::RecordId;
use super::super::answer::Answer;
use super::names;

const METHOD: &str = "BatchCreateTasks";

/// What an answer to a call means for others.
#[derive(Debug, Default)]
pub(in super::super) struct Answered {
    /// The tasks that left the call, each with its answer, and whether it may exist in spite of it.
    pub(in super::super) records: Vec<(RecordId, Answer, bool)>,
    /// The call is tried again for this reason.
    pub(in super::super) retrying: Option<(QueueName, RpcError)>,
}

/// What an operation says.
#[derive(Debug)]
pub(super) enum Verdicts {
    /// It is not done.
    Running,
    /// One answer for each task, in the order of the call.
    Each(Vec<Answer>),
    /// The call as a whole failed.
    Whole(RpcError),
}

/// The answers for `count` tasks.
///
/// A task counts as created only where the operation is done, does not name it among the failed
/// ones, and names as many tasks as have not failed.
pub(super) fn verdicts(operation: &Operation, count: usize) -> Verdicts {
    if !operation.done {
        return Verdicts::Running;
    }
    let created: Vec<String> = match &operation.result {
        Some(operation::Result::Response(response)) => {
            names::of_created(&response.value, count).unwrap_or_default()
        }
        Some(operation::Result::Error(_)) | None => Vec::new(),
    };
    let metadata = operation
        .metadata
        .as_ref()
        .and_then(|metadata| BatchCreateTasksMetadata::decode(metadata.value.as_slice()).ok());
    let failed = metadata
        .as_ref()
        .map(|metadata| &metadata.failed_requests)
        .filter(|failed| !failed.is_empty());
    if let (None, Some(operation::Result::Error(status))) = (failed, &operation.result) {
        let code = Code::from_number(status.code);
        return Verdicts::Whole(RpcError::status(METHOD, code, &status.message));
    }
    let failure = |index: usize| {
        let index = i32::try_from(index).ok()?;
        failed?.get(&index)
    };
    let expected = (0..count).filter(|index| failure(*index).is_none()).count();
    let was_cancelled = metadata
        .as_ref()
        .is_some_and(|metadata| metadata.state == i32::from(State::Cancelled));
    let is_complete = created.len() == expected && !was_cancelled;
    let mut created = created.into_iter();
    let answers = (0..count).map(|index| match failure(index) {
        Some(status) => {
            let code = Code::from_number(status.code);
            Answer::Failed(RpcError::status(METHOD, code, &status.message))
        }
        None if is_complete => Answer::Created(created.next().unwrap_or_default()),
        // Tried again, which counts as one that may make a second task.
        None => Answer::Failed(RpcError::status(
            METHOD,
            Code::Unavailable,
            "the operation says neither that the task was created nor that it failed",
        )),
    });
    Verdicts::Each(answers.collect())
}
