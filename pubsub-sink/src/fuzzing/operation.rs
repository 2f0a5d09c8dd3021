//! What may happen to a sink.

use arbitrary::Arbitrary;

/// One thing that a host, the service, a failure handler or time does.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Operation {
    Accept {
        topic: u8,
        key: u8,
        size: u16,
        asked: bool,
    },
    Reject {
        topic: u8,
        key: u8,
        what: u8,
        asked: bool,
    },
    Skip {
        asked: bool,
    },
    /// Perform so many effects.
    Perform(u8),
    Answer {
        at: u8,
        reply: Reply,
    },
    Create {
        at: u8,
        outcome: Outcome,
    },
    Decide {
        at: u8,
        verdict: Decision,
    },
    EndFlush(bool),
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
    AwaitRoom(bool),
    Pass {
        millis: u16,
    },
    Sleep {
        minutes: u16,
    },
    Discard(u8),
    StageAgain(u8),
    AskForCheckpoint,
    Close,
}

/// How the service answers a publish request.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Reply {
    Stored,
    /// With another number of ids than there were messages.
    Miscounted(u8),
    Transient {
        retry_after: Option<u16>,
    },
    Exhausted {
        retry_after: Option<u64>,
    },
    Invalid,
    Missing,
    Fatal,
}

/// What comes of creating a topic.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Outcome {
    Made,
    Existed,
    Failed,
    Refused,
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
    pub(super) ordering: bool,
    pub(super) creates_topics: bool,
    pub(super) linger: bool,
    pub(super) tight: bool,
    pub(super) restored: u8,
    pub(super) aside: u8,
}
