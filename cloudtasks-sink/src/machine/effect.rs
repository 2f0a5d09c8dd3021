//! What the machine wants done.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use connector_core::ledger::CommitId;
use connector_core::{CheckpointError, Committed, Epoch, Limits, Rejected};
use gcp_wire::{QueueName, RpcError};

use super::{CallId, JobId, RecordId};
use crate::queue_state::QueueState;
use crate::state::KeptReason;
use crate::submitted::Submitted;

/// One thing for the driver to do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Call CreateTask, and give the answer to `handle_answer`.
    Create {
        record: RecordId,
        queue: QueueName,
        request: Bytes,
        /// The last moment, by the time of day, at which it may be sent. Beyond it `handle_late`.
        not_after: Option<SystemTime>,
    },
    /// Call BatchCreateTasks, and give the answer to `handle_batch_created`.
    CreateBatch {
        call: CallId,
        queue: QueueName,
        request: Bytes,
        /// As for one task; beyond it `handle_late_batch`.
        not_after: Option<SystemTime>,
    },
    /// Call GetOperation, and give the answer to `handle_operation`.
    ReadOperation { call: CallId, operation: String },
    /// Call GetQueue, and give the answer to `handle_queue`.
    ReadQueue { queue: QueueName },
    /// Give the record to the failure handler, and its verdict to `handle_verdict`.
    Handle { job: JobId, rejected: Box<Rejected> },
    /// Flush the failure handler, and give the outcome to `handle_handler_flushed`.
    FlushHandler { job: JobId },
    /// Give this much back to the budget.
    Release(Limits),
    /// The receipt of a snapshot resolves.
    Snapshot {
        epoch: Epoch,
        outcome: Result<(), CheckpointError>,
    },
    /// The receipt of a commit resolves.
    Committed {
        commit: CommitId,
        committed: Committed,
    },
    /// The receipt of a commit fails: no durable state names what it left aside.
    Unconfirmed {
        commit: CommitId,
        error: CheckpointError,
    },
    /// The receipt of a submitted record resolves.
    Submitted {
        record: RecordId,
        outcome: Submitted,
    },
    /// Whoever waits for a flush or for the end looks again.
    Wake,
    /// Something worth a line in the log.
    Report(Report),
    /// The sink has ended, with or without an error. Comes last and once.
    Ended,
}

/// Something an operator wants to know.
#[derive(Debug, Clone)]
pub(crate) enum Report {
    /// Creates failed and are being tried again; at most one report per interval.
    Retrying {
        queue: QueueName,
        failures: u64,
        error: RpcError,
    },
    /// A queue takes no tasks; those committed for it wait. At most one report per interval.
    Holding {
        queue: QueueName,
        /// Over all queues.
        waiting: usize,
        error: RpcError,
    },
    /// Committed tasks were kept aside; at most one report per interval.
    Kept {
        queue: QueueName,
        why: KeptReason,
        times: u64,
        cause: Option<String>,
    },
    /// The host has waited for room.
    WaitingForRoom { after: Duration },
    /// A name minted at random existed before it was ever sent.
    UnexpectedDuplicate { queue: QueueName, times: u64 },
    /// A queue does not dispatch.
    QueueStopped { queue: QueueName, state: QueueState },
    /// A queue dispatches again.
    QueueRuns { queue: QueueName },
    /// A queue could not be looked at; told once.
    QueueUnseen { queue: QueueName, error: RpcError },
    /// For long there were more tasks than streams.
    FewStreams { streams: usize, waiting: usize },
}
