//! What may happen to a sink.

use arbitrary::Arbitrary;

/// One thing that a host, the service, a failure handler or time does.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Operation {
    Accept {
        queue: u8,
        named: u8,
        size: u16,
        asked: bool,
    },
    Reject {
        asked: bool,
    },
    Skip,
    /// Perform so many effects.
    Perform(u8),
    Answer {
        at: u8,
        reply: Reply,
    },
    AnswerBatch {
        at: u8,
        reply: Reply,
        outcome: Outcome,
    },
    AnswerRead {
        at: u8,
        reply: Reply,
        outcome: Outcome,
    },
    /// A call was not sent, since its deadline passed first.
    Late {
        at: u8,
        batch: bool,
    },
    Look {
        at: u8,
        queue: Look,
    },
    Decide {
        at: u8,
        verdict: Decision,
    },
    EndFlush {
        at: u8,
        works: bool,
    },
    Snapshot {
        ahead: u8,
    },
    SnapshotAt(u64),
    Commit {
        back: u8,
    },
    CommitAt(u64),
    Abort {
        back: u8,
    },
    AbortAt(u64),
    Flush,
    CancelFlush,
    AwaitRoom(bool),
    Pass {
        millis: u16,
    },
    Sleep {
        minutes: u16,
    },
    /// The time of day is set anew, forwards or backwards.
    Step {
        minutes: i16,
    },
    Resolve {
        at: u8,
        again: bool,
    },
    Close,
}

/// How the service answers a call.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Reply {
    Done,
    Failed(u8),
}

/// What an operation says of its tasks.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) struct Outcome {
    pub(super) done: bool,
    /// How many tasks it says that it created, where it does not say one for each that has not
    /// failed.
    pub(super) created: Option<u8>,
    /// Which of its tasks failed, by bits, and with which code.
    pub(super) failed: u8,
    pub(super) code: u8,
    /// An index that may be that of no task.
    pub(super) stray: Option<i32>,
    pub(super) whole: bool,
    pub(super) state: u8,
    pub(super) garbled: bool,
}

/// What a look at a queue finds.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Look {
    Fine { state: i32 },
    Overriding,
    Failed(u8),
}

/// What the failure handler says.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Decision {
    Drop,
    Fail,
    Broken,
}

/// How the sink is set up.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) struct Setup {
    pub(super) staged: bool,
    pub(super) batch: Option<u8>,
    pub(super) looks: bool,
    pub(super) paced: bool,
    pub(super) tight: bool,
    pub(super) restored: u8,
    pub(super) kept: u8,
}
