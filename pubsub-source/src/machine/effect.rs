//! What the machine wants done.

use std::time::Duration;

use bytes::Bytes;
use connector_core::{CheckpointError, Committed, Epoch, ledger::CommitId};

use super::calls::CallId;

/// Names one opening of a pull stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamId(pub(super) u64);

/// Names a `settle` of the host that waits for its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SettleId(pub(super) u64);

/// Which method a call goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallMethod {
    Acknowledge,
    ModifyAckDeadline,
}

/// Something for the driver to do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Open a pull stream, and tell how it fares: opened, its responses, its end.
    Open {
        stream: StreamId,
        /// The stream takes the place of an earlier one with the same number, and its client id.
        slot: usize,
        /// Length of the leases of what it delivers, in seconds.
        lease_seconds: u32,
        max_messages: u64,
        /// 0 for no limit.
        max_bytes: u64,
    },
    /// Send an empty request.
    Ping { stream: StreamId },
    /// Change the length of the leases of what the stream delivers from now on.
    ChangeLease {
        stream: StreamId,
        lease_seconds: u32,
    },
    /// Send nothing more, read on to the stream's end.
    HalfClose { stream: StreamId },
    /// Take the stream and its connection for dead, and tell its end.
    GiveUp { stream: StreamId },
    /// Drop the stream. Its end need not be told.
    Drop { stream: StreamId },
    /// Send a request that is encoded already, and tell the answer.
    Call {
        call: CallId,
        method: CallMethod,
        body: Bytes,
    },
    /// Everything that a commit covered has its verdict.
    Committed {
        commit: CommitId,
        committed: Committed,
    },
    /// The service did not confirm a commit in the time that the host asked for. Its deliveries are
    /// acknowledged all the same.
    Unconfirmed {
        commit: CommitId,
        error: CheckpointError,
    },
    /// Everything that restored states name has its verdict.
    Restored { committed: Committed },
    /// What the host settled has its verdict.
    Settled {
        settle: SettleId,
        committed: Committed,
    },
    /// Something an operator may want to read.
    Tell(Notice),
}

/// Something an operator may want to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A pull stream ended as streams do, and opens again after `delay`.
    StreamReopens { slot: usize, delay: Duration },
    /// A pull stream could not be opened or kept for so many tries in a row.
    StreamFails {
        slot: usize,
        failures: u32,
        delay: Duration,
    },
    /// A pull stream did not answer a ping and is replaced.
    StreamSilent { slot: usize, silence: Duration },
    /// A pull stream was never answered, not even with headers, and has a successor.
    StreamUnanswered { slot: usize, silence: Duration },
    /// The buffer was full for so long that the streams were closed.
    StreamsUnread { waited: Duration },
    /// A paused split held too much: it gave back what it had not handed out.
    Parked {
        messages: usize,
        bytes: usize,
        paused: Duration,
    },
    /// The budget that the source shares with others is spent, and nothing is read.
    BudgetSpent { waited: Duration },
    /// A parked split was resumed.
    Unparked { paused: Duration },
    /// The limit told to the server changed.
    LimitChanged { messages: u64 },
    /// Leases ended before they could be extended.
    Lapsed { handed_out: usize, buffered: usize },
    /// Deliveries were given back because they were held for too long.
    HeldTooLong { deliveries: usize, limit: Duration },
    /// A checkpoint came late.
    CheckpointLate { waited: Duration },
    /// Checkpoints are taken, and none of them is committed.
    NothingCommitted {
        checkpoints: u64,
        waited: Duration,
        /// Deliveries of theirs without a verdict.
        unacknowledged: usize,
    },
    /// A commit does not finish.
    CommitSlow {
        epoch: Epoch,
        waited: Duration,
        /// Its deliveries without a verdict.
        unconfirmed: usize,
        /// Acknowledge requests that wait for their answer.
        in_flight: usize,
        /// Acknowledge requests that failed and are sent again.
        failed: usize,
        /// How often the most unlucky of them was sent.
        attempts: u32,
    },
    /// Checkpoints are so far apart that deliveries are given back before their commit.
    HoldTooShort {
        interval: Duration,
        max_hold: Duration,
    },
    /// The seen window was full and lost its oldest ids.
    SeenOverflowed { ids: u64, limit: usize },
    /// What a restored state names was recognised and acknowledged for the first time.
    Recognised { ids: usize },
    /// A source ended before everything was confirmed.
    CloseTimedOut {
        acknowledgements: usize,
        releases: usize,
    },
    /// A call failed and is sent again.
    CallFails { method: CallMethod, attempts: u32 },
}
