//! What the machine wants done.

use std::time::Duration;

use bytes::Bytes;
use connector_core::ledger::CommitId;
use connector_core::{CheckpointError, Committed, Epoch, Limits, Rejected};
use gcp_wire::{QueueName, RpcError};

use super::{CallId, JobId, RecordId};
use crate::queue_state::QueueState;
use crate::submitted::Submitted;

/// One thing for the driver to do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Call CreateTask, and give the answer to `handle_answer`.
    Create {
        record: RecordId,
        queue: QueueName,
        request: Bytes,
    },
    /// Call BatchCreateTasks, and give the answer to `handle_batch_created`.
    CreateBatch {
        call: CallId,
        queue: QueueName,
        request: Bytes,
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
