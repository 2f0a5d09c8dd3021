//! What goes into the machine and what comes out of it.

use std::time::Duration;

use bytes::Bytes;
use connector_core::{Cause, CheckpointError, Committed, Rejected, ledger::CommitId};
use gcp_wire::{Code, PublishedIds, TopicName};

use crate::{Published, staged::Identity, state::Named};

/// Names a request between its [`Effect::Publish`] and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId(pub(super) u64);

/// Names a rejected record between its [`Effect::Handle`] and its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RejectionId(pub(super) u64);

/// Names a cut that someone waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CutId(pub(super) u64);

/// Names a record whose submitter waits for what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReplyId(pub(super) u64);

/// What the driver does next.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Send this request, and feed its answer back.
    Publish {
        id: RequestId,
        topic: TopicName,
        /// The request's first bytes: its topic.
        header: Bytes,
        /// The rest: its messages.
        frames: Bytes,
        deadline: Duration,
    },
    /// Give this record to the failure handler, and feed its verdict back.
    Handle { id: RejectionId, rejected: Rejected },
    /// Create this topic, and feed what came of it back.
    CreateTopic(TopicName),
    /// Let the failure handler flush, and feed the outcome back.
    FlushHandler,
    /// A cut is complete, or was given up. A staged sink's snapshot names messages.
    Resolve(CutId, Result<Named, CheckpointError>),
    /// Everything a commit released has its verdict; or it is told that this takes the host.
    Committed(CommitId, Result<Committed, CheckpointError>),
    /// It is known what became of a submitted record.
    Answer(ReplyId, Published),
    /// Tell the operator.
    Tell(Notice),
}

/// What is worth an operator's attention.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A request failed and is sent again.
    Retrying {
        topic: TopicName,
        attempt: u32,
        cause: Cause,
    },
    /// Requests to a topic keep failing.
    Failing {
        topic: TopicName,
        attempts: u32,
        cause: Cause,
    },
    /// A topic that kept failing takes messages again.
    Recovered { topic: TopicName },
    /// A missing topic was created. Nobody subscribes to it yet.
    TopicCreated { topic: TopicName },
    /// A request was refused; its messages are tried in smaller groups.
    Dividing { topic: TopicName, messages: usize },
    /// The host has waited for room for a while.
    WaitingForRoom { waited: Duration },
    /// A staged message was refused and is kept aside.
    Quarantined {
        topic: TopicName,
        identity: Identity,
        reason: String,
    },
    /// The stage has been full for a while, and no checkpoint was taken.
    StageFull {
        waited: Duration,
        limit: Duration,
        items: usize,
    },
    /// The failure handler could not make durable what it took over.
    HandlerUnflushed { items: usize, cause: Cause },
    /// The sink is closed with messages that no commit released.
    LeftStaged { items: usize },
    /// Nothing has completed for a while, and the host waits.
    Slow {
        idle: Duration,
        limit: Duration,
        items: usize,
    },
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Stored, under these ids.
    Stored(PublishedIds),
    Failed(Failure),
}

/// Why a request was not stored, or not known to be.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) code: Code,
    /// When the service asked to be tried again.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) cause: Cause,
}

/// What a failure means for a publish request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// It may pass: outage, time-out, broken connection.
    Transient,
    /// A quota is used up.
    Exhausted,
    /// Something in the request is wrong: one of its messages.
    Invalid,
    /// The topic does not exist.
    Missing,
    /// It will not pass: permission, configuration, a broken peer.
    Fatal,
}
