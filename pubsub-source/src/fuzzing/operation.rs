//! What may happen to a source.

use arbitrary::Arbitrary;

/// One thing that a host, the service or time does.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Operation {
    Receive {
        stream: u8,
        first: u8,
        count: u8,
        key: u8,
        odd: Odd,
        stale: u8,
    },
    StreamOpens {
        stream: u8,
    },
    StreamEnds {
        stream: u8,
        pause: Option<u64>,
    },
    Undecodable {
        stream: u8,
    },
    /// Perform so many effects.
    Perform(u8),
    Answer {
        at: u8,
        reply: Reply,
    },
    /// Hand out so many messages.
    Read(u8),
    /// Hand out so many records of the next message, and finish it or not.
    ReadRecords {
        records: u8,
        end: End,
    },
    Refresh,
    Settle {
        at: u8,
        how: u8,
        seconds: u16,
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
    Pause,
    Resume,
    Park,
    Room(u8),
    Pass {
        millis: u16,
    },
    Sleep {
        minutes: u16,
    },
    ForgetSeen,
    ExpectNoCheckpoint,
    Stop,
    Close,
    Fail,
}

/// What is odd about a response.
#[derive(Debug, Clone, Copy, Default, Arbitrary)]
pub(super) struct Odd {
    pub(super) exactly_once: Option<bool>,
    pub(super) ordered: Option<bool>,
    /// Ids that are no numbers.
    pub(super) texts: bool,
    /// Every delivery under one ack id, or an empty one.
    pub(super) ack_id: Option<bool>,
    /// Seconds of the publish time.
    pub(super) published: Option<i64>,
    /// Deliveries say how often they were tried.
    pub(super) attempt: i8,
    /// Deliveries without a message.
    pub(super) empty: bool,
}

/// What becomes of a message of which some records were handed out.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum End {
    Finished,
    TurnedDown,
    /// It stays in hand.
    Open,
}

/// How the service answers a request.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Reply {
    Done,
    /// Ids have verdicts of their own, by bits; and some that were not asked about.
    Mixed {
        named: u8,
        worthless: u8,
        others_done: bool,
        stray: bool,
    },
    Again {
        pause: Option<u64>,
    },
    Refused,
}

/// How the source is set up.
#[derive(Debug, Clone, Copy, Default, Arbitrary)]
pub(super) struct Setup {
    pub(super) ordering: bool,
    pub(super) two_streams: bool,
    pub(super) tight: bool,
    pub(super) saves_ack_ids: bool,
    pub(super) saves_nothing: bool,
    pub(super) confirms: bool,
    pub(super) on_drop: u8,
    pub(super) restored: u8,
    pub(super) held: bool,
    pub(super) unfinished: u8,
}
