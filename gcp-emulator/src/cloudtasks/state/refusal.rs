//! What the service refuses, and in which words.

use thiserror::Error;

use crate::code::Code;
use crate::page::PageRefusal;

/// A request that was refused. Its text is the status message on the wire, in the service's own
/// words as far as they are on record.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TaskRefusal {
    /// A task or operation that does not exist.
    #[error("Requested entity was not found.")]
    NotFound,
    /// A queue that does not exist.
    #[error(
        "Queue does not exist. If you just created the queue, wait at least a minute for the queue \
         to initialize."
    )]
    QueueMissing,
    /// A queue name that is none.
    #[error(
        "Queue name must be formatted: \
         \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>\""
    )]
    QueueName,
    /// A queue that exists.
    #[error("Queue already exists")]
    QueueExists,
    /// A queue whose name was in use less than a week ago.
    #[error("The queue cannot be created because a queue with this name existed too recently.")]
    QueueExistedRecently,
    /// A setting of a queue outside its range.
    #[error("{rule}")]
    QueueSetting {
        /// The rule that is broken.
        rule: &'static str,
    },
    /// An update mask with a path that is no field of a queue.
    #[error("Invalid mask: {path}")]
    QueueMask {
        /// The path.
        path: String,
    },
    /// A task name that is none.
    #[error(
        "Task name must be formatted: \"projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/\
         <QUEUE_ID>/tasks/<TASK_ID>\""
    )]
    TaskName,
    /// A task named for another queue.
    #[error(
        "The queue name from request ('{parent}') must be the same as the queue name in the named \
         task ('{queue}')."
    )]
    OtherQueue {
        /// The queue of the request.
        parent: String,
        /// The queue of the task's name.
        queue: String,
    },
    /// A task that exists.
    #[error("Requested entity already exists")]
    TaskExists,
    /// A task that is gone, whose name is still taken.
    #[error(
        "The task cannot be created because a task with this name existed too recently. For more \
         information about task de-duplication see \
         https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues.tasks/create"
    )]
    TaskExistedRecently,
    /// A task that is gone, asked for while its name is still taken.
    #[error(
        "The task no longer exists, though a task with this name existed recently. The task either \
         successfully completed or was deleted."
    )]
    TaskGone,
    /// What a rule for single tasks says; see [`Rule::on_task`](crate::Rule::on_task).
    #[error("{message}")]
    Scripted {
        /// The code.
        code: Code,
        /// The text.
        message: String,
    },
    /// A task without a target.
    #[error("Task.payload_type is not set.")]
    NoPayload,
    /// An HTTP target without an address.
    #[error("HttpRequest.url is required.")]
    NoUrl,
    /// An HTTP target whose address is none.
    #[error("HttpTarget.url must start with 'http://' or 'https://'.")]
    Url,
    /// A body where the method allows none.
    #[error("Body can only be set if the http_method is POST, PUT, or PATCH.")]
    Body,
    /// A dispatch deadline outside its range.
    #[error("Task.dispatchDeadline must be between [15s, 30m].")]
    DispatchDeadline,
    /// A schedule time too far ahead.
    #[error(
        "The Task.scheduleTime, {time}, is too far in the future. Schedule time must be no more \
         than 720h in the future."
    )]
    ScheduleTime {
        /// The time, RFC 3339.
        time: String,
    },
    /// A task that is too large.
    #[error("Task size too large")]
    TooLarge,
    /// A token without an account, or with one that is no address.
    #[error("service_account_email must be set.")]
    ServiceAccount,
    /// An access token for a host that is not Google's.
    #[error(
        "Invalid url for HttpRequest.oauth_token. The hostname in the url must end with \
         \".googleapis.com\"."
    )]
    OauthHost,
    /// A retry configuration with a value out of range.
    #[error("{rule}")]
    Retry {
        /// The rule that is broken.
        rule: &'static str,
    },
    /// A page that can not be given.
    #[error(transparent)]
    Page(#[from] PageRefusal),
    /// A batch of more than 100 tasks.
    #[error("A maximum of 100 tasks can be created in a single batch, but got {count} tasks.")]
    BatchTooLong {
        /// How many.
        count: usize,
    },
    /// A batch of none.
    #[error("Request must contain at least one task.")]
    BatchEmpty,
    /// A batch with tasks of several queues.
    #[error(
        "All tasks in a batch request must target the same queue. Found task for queue {found} in \
         batch request for queue {parent}."
    )]
    BatchQueues {
        /// The other queue.
        found: String,
        /// The queue of the batch.
        parent: String,
    },
    /// A batch with one name twice.
    #[error("Duplicate task name in the batch request: {name}")]
    BatchNames {
        /// The name.
        name: String,
    },
    /// A request id that was used before; nothing was created.
    #[error("Duplicate operation id in the batch request: {id}")]
    BatchId {
        /// The id.
        id: String,
    },
    /// A request id with characters it may not have.
    #[error(
        "Operation ID \"{id}\" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), \
         or underscores (_). Operation ID must be between 1 and 100 characters."
    )]
    BatchIdName {
        /// The id.
        id: String,
    },
    /// A call whose client waits longer than the service works.
    #[error("The request deadline cannot be more than 30s in the future.")]
    Deadline,
}

impl TaskRefusal {
    /// The status code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NotFound | Self::QueueMissing | Self::TaskGone => Code::NotFound,
            Self::Scripted { code, .. } => *code,
            Self::QueueExists | Self::TaskExists | Self::TaskExistedRecently => Code::AlreadyExists,
            Self::QueueExistedRecently => Code::FailedPrecondition,
            Self::QueueName
            | Self::QueueSetting { .. }
            | Self::QueueMask { .. }
            | Self::TaskName
            | Self::OtherQueue { .. }
            | Self::NoPayload
            | Self::NoUrl
            | Self::Url
            | Self::Body
            | Self::DispatchDeadline
            | Self::ScheduleTime { .. }
            | Self::TooLarge
            | Self::ServiceAccount
            | Self::OauthHost
            | Self::Retry { .. }
            | Self::Page(_)
            | Self::BatchTooLong { .. }
            | Self::BatchEmpty
            | Self::BatchQueues { .. }
            | Self::BatchNames { .. }
            | Self::BatchId { .. }
            | Self::BatchIdName { .. }
            | Self::Deadline => Code::InvalidArgument,
        }
    }
}
