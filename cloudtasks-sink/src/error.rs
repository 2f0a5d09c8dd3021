//! Why the sink was not built, and why it ended.

use std::time::Duration;

use connector_core::{Cause, CheckpointError, Limits, RejectedReason, StateError};
use gcp_wire::{QueueName, RpcError, WireError};

/// Why a sink ended, or why one call had no effect.
///
/// A sink retries by itself whatever may go better next time, so every error but
/// [`NoRoom`](Self::NotReady) and [`HandlerFlush`](Self::HandlerFlush) is its last word: rebuild it
/// from the last saved state. The first call after the end gets the error itself, every later one
/// [`Closed`](Self::Closed) with the error as its cause.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A queue does not exist, or was deleted, and stayed so over the retries for that case.
    #[error(
        "queue {queue} does not exist or was deleted (asked {attempts} times); {pending} accepted records are not known to be tasks and stay owed, create the queue and rebuild from the last saved state"
    )]
    QueueMissing {
        /// The full name of the queue.
        queue: QueueName,
        /// How often the service said so for this record, the first attempt included.
        attempts: u32,
        /// Records that were accepted and have no verdict.
        pending: usize,
        /// The last answer.
        source: RpcError,
    },
    /// A task could not be created although it was tried as often as the retry budget allows.
    #[error(
        "a task for queue {queue} could not be created in {attempts} attempts; {pending} accepted records are not known to be tasks and stay owed, rebuild from the last saved state once the service answers"
    )]
    RetriesSpent {
        /// The full name of the queue.
        queue: QueueName,
        /// How often it was tried.
        attempts: u32,
        /// Records that were accepted and have no verdict.
        pending: usize,
        /// The last answer.
        source: RpcError,
    },
    /// The service answered in a way that no retry changes, for example that permission is denied.
    #[error(
        "the service does not create tasks in queue {queue}; {pending} accepted records are not known to be tasks and stay owed, remove the cause and rebuild from the last saved state"
    )]
    Refused {
        /// The full name of the queue.
        queue: QueueName,
        /// Records that were accepted and have no verdict.
        pending: usize,
        /// The answer.
        source: RpcError,
    },
    /// A record was rejected, and the failure handler says that this ends the sink.
    #[error(
        "a record whose destination is {destination} was rejected ({reason:?}) and the failure handler ends the sink for it; the record was not created as a task and comes again after a restore"
    )]
    Rejected {
        /// The queue, or what the record named instead of one.
        destination: String,
        /// Which rule the record broke.
        reason: RejectedReason,
        /// What the serializer, the check or the service said.
        source: Option<Cause>,
    },
    /// The service refused so many tasks in a row that the data is not the likely cause.
    #[error(
        "{count} tasks in a row were refused (max_consecutive_rejections), the last for queue {queue}; the failure handler has them, find what is wrong with all of them and rebuild from the last saved state"
    )]
    TooManyRejections {
        /// Refusals without a created task in between.
        count: u32,
        /// The queue of the last one.
        queue: QueueName,
        /// What the service said about the last one.
        source: RpcError,
    },
    /// A queue replaces the URLs of its tasks, whatever their records say.
    #[error(
        "queue {queue} replaces the URL of every task (its uriOverride is enforced always); {pending} accepted records are not known to be tasks and stay owed, take the override away, or accept it by allow_url_overrides, and rebuild from the last saved state"
    )]
    UrlsReplaced {
        /// The full name of the queue.
        queue: QueueName,
        /// Records that were accepted and have no verdict.
        pending: usize,
    },
    /// The failure handler could not take a rejected record.
    #[error(
        "the failure handler could not take a rejected record; the record is in no queue and stays owed, rebuild from the last saved state"
    )]
    Handler {
        /// What the handler said.
        source: CheckpointError,
    },
    /// The failure handler could not make durable what it took. The sink goes on: the next flush
    /// covers it again.
    #[error(
        "the failure handler could not make durable what it took; it stays owed and the next flush covers it again"
    )]
    HandlerFlush {
        /// What the handler said.
        source: CheckpointError,
    },
    /// The failure handler gave no verdict, or did not flush, within the progress timeout.
    #[error(
        "the failure handler did not answer within {}s (progress_timeout); {pending} accepted records stay owed, rebuild from the last saved state", after.as_secs_f64()
    )]
    HandlerStalled {
        /// Records that were accepted and have no verdict.
        pending: usize,
        /// How long it was waited for.
        after: Duration,
    },
    /// No record got a verdict within the progress timeout although some wait for one.
    #[error(
        "no task was created within {}s (progress_timeout), the oldest waits for {destination}; {pending} accepted records are not known to be tasks and stay owed, rebuild from the last saved state", after.as_secs_f64()
    )]
    Stalled {
        /// The queue that the oldest record without a verdict is for.
        destination: String,
        /// Records that were accepted and have no verdict.
        pending: usize,
        /// How long nothing moved.
        after: Duration,
    },
    /// The resolver named no queue for a record. That is a mistake in the configuration: a handler
    /// that drops rejected records would otherwise drop the whole stream.
    #[error(
        "no queue was resolved for a record; the record was not accepted and no task was created for it, make the resolver name a queue for every record (an encoder may skip it)"
    )]
    NoDestination,
    /// Tasks are named by key, and a record has none.
    #[error(
        "a record for queue {queue} has no key although tasks are named by one; the record was not accepted, give every record a key (task_id) or leave names to the service"
    )]
    NoKey {
        /// The full name of the queue.
        queue: QueueName,
    },
    /// The stage is full of records that the host has not committed, and it neither takes a
    /// checkpoint nor commits one.
    #[error(
        "the stage is full ({items} tasks of {bytes} bytes) and no checkpoint was taken within {}s (progress_timeout); what is sealed is in the last saved state and the rest stays owed, take checkpoints more often or raise stage", after.as_secs_f64()
    )]
    StageFull {
        /// Tasks without a verdict.
        items: usize,
        /// Their bytes, as encoded requests.
        bytes: usize,
        /// How long the host waited for room.
        after: Duration,
    },
    /// More committed tasks would have to be kept aside than the quarantine takes.
    #[error(
        "{kept} committed tasks are kept aside, which is all that the quarantine takes ({limit:?}); nothing was lost, the last saved state names every task, resolve what is kept aside (expired, refused) or raise quarantine"
    )]
    QuarantineFull {
        /// Tasks that are kept aside.
        kept: usize,
        /// The limit.
        limit: Limits,
    },
    /// The sink was closed with records in its stage that the host had not committed.
    #[error(
        "the sink was closed with {staged} staged records that were not committed; no task was made of them, the last saved state names those it covers and the others come again from the source, end a run with finish()"
    )]
    Uncommitted {
        /// Records whose epoch was not committed.
        staged: usize,
    },
    /// The clock here and the service's are so far apart that deadlines mean nothing.
    #[error(
        "the clock here and the service's are {}s apart, and tasks are sent by the clock; everything without a verdict is in the last saved state or stays owed, set the clock right and rebuild", apart.as_secs()
    )]
    ClockApart {
        /// How far.
        apart: Duration,
    },
    /// Closing took longer than its budget.
    #[error(
        "closing took longer than {}s (close_timeout); {pending} accepted records are not known to be tasks, they come again after a restore from the last saved state", after.as_secs_f64()
    )]
    CloseExpired {
        /// Records that were accepted and have no verdict.
        pending: usize,
        /// The budget.
        after: Duration,
    },
    /// A record was given to the sink without asking for room first. The sink goes on.
    #[error(
        "the sink has no room; the record was not accepted, wait for poll_ready before each record"
    )]
    NotReady,
    /// The driver, or code of the host that it called, panicked.
    #[error(
        "the sink's driver panicked: {message}; what had no verdict is not known to be a task, rebuild from the last saved state"
    )]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The sink has ended.
    #[error("the sink is closed; the record or request had no effect")]
    Closed {
        /// The error that ended it, or [`ClosedByHost`](Self::ClosedByHost).
        #[source]
        cause: Cause,
    },
    /// The host closed the sink. Only ever the cause of [`Closed`](Self::Closed).
    #[error("the host closed the sink; everything accepted before has its verdict")]
    ClosedByHost,
}

impl SinkError {
    /// The error as a cause; of one that says no more than "closed", what closed the sink.
    pub(crate) fn into_cause(self) -> Cause {
        if let Self::Closed { cause } = self {
            cause
        } else {
            Cause::new(self)
        }
    }
}

/// Why a sink was not built. Nothing was connected to and nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// `build` spawns the driver, and there is no tokio runtime to spawn it on.
    #[error(
        "build() needs a tokio runtime to spawn the driver on; call it inside one, or use build_with_driver() and poll the driver yourself"
    )]
    NoRuntime,
    /// Neither `queue` nor `resolve` was called.
    #[error("no queue is set; call queue(name) or resolve(closure)")]
    NoDestination,
    /// Two settings exclude each other.
    #[error("{first} and {second} exclude each other; set one of them")]
    Conflict {
        /// One setting.
        first: &'static str,
        /// The other setting.
        second: &'static str,
    },
    /// A setting is outside its range.
    #[error("{setting} is {value}, it must be {range}")]
    Range {
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: String,
        /// What is possible.
        range: &'static str,
    },
    /// The first delay of a retry budget is longer than its longest.
    #[error("the first delay of {setting} ({first:?}) is longer than its cap ({cap:?})")]
    Delays {
        /// The setting.
        setting: &'static str,
        /// The first delay.
        first: Duration,
        /// The longest delay.
        cap: Duration,
    },
    /// The progress timeout ends the sink before one attempt can end.
    #[error(
        "progress_timeout ({progress_timeout:?}) is not longer than attempt_deadline ({attempt_deadline:?}), so one slow answer would end the sink"
    )]
    Progress {
        /// The progress timeout.
        progress_timeout: Duration,
        /// The deadline of one attempt.
        attempt_deadline: Duration,
    },
    /// A queue's pace lets the sink stand still for longer than it may.
    #[error(
        "{setting} lets less than one task leave within progress_timeout ({progress_timeout:?}), so that waiting for a turn would end the sink"
    )]
    Pace {
        /// The setting: `queue_rate` or `ramp`.
        setting: &'static str,
        /// The progress timeout.
        progress_timeout: Duration,
    },
    /// An entry of the list of allowed hosts is no host.
    #[error(
        "{host:?} in allow_hosts is no host; give a DNS name or an IP address, without scheme, port or path (IPv6 in brackets)"
    )]
    Host {
        /// The entry.
        host: String,
    },
    /// The window in which a staged task may be sent is empty.
    #[error(
        "name_retention ({name_retention:?}) is not longer than retention_margin ({margin:?}), so that no task could ever be sent again safely"
    )]
    Window {
        /// How long the service remembers names.
        name_retention: Duration,
        /// What is taken off for clocks and late requests.
        margin: Duration,
    },
    /// The restored state names tasks whose recovery deadline has passed: they may have been
    /// created and forgotten, so that they are not created now.
    #[error(
        "{expired} of {tasks} committed tasks in the restored state are past their recovery deadline, the oldest by {}s; nothing was created and the state is as it was: build with keep_expired() to keep them aside and resolve each one (force, discard, mark committed), or restore with settled(true) if all of the epoch is known to be created, or with a longer name_retention if your queues keep names that long",
        .late.as_secs()
    )]
    Expired {
        /// Tasks past their deadline.
        expired: usize,
        /// Tasks that the state names as owed.
        tasks: usize,
        /// How long the oldest is past its deadline; zero where its seal lies ahead of the clock,
        /// so that its age is unknown.
        late: Duration,
    },
    /// The restored state names tasks that only a staging sink may create.
    #[error(
        "the restored state names {tasks} staged tasks ({kept} kept aside) and the sink is not to stage; nothing was created, build with Delivery::Staged until they are, then change the delivery"
    )]
    StagedState {
        /// Tasks that the state names as owed.
        tasks: usize,
        /// Tasks that are kept aside.
        kept: usize,
    },
    /// A saved state cannot be restored.
    #[error("the sink cannot be restored")]
    State {
        /// Why.
        #[from]
        source: StateError,
    },
    /// The endpoint, the credentials and the connection's options do not go together.
    #[error("the connection cannot be set up")]
    Wire {
        /// Why.
        #[from]
        source: WireError,
    },
}
