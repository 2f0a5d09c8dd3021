//! Mistakes that the invariants must find.

/// A mistake, planted between the machine and the world: the machine itself stays as it is, what
/// goes in and comes out is falsified as if it had made the mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// Everything is acknowledged when it is handed out.
    AckOnHandOut,
    /// An epoch is committed when it is sealed, before it is durable.
    CommitAtSeal,
    /// A cut counts what is fetched and not handed out.
    CutCountsBuffered,
    /// The state leaves out what is committed and not confirmed.
    StateWithoutSettling,
    /// A restored source knows nothing.
    RestoreForgets,
    /// The seen window does not look at publish times.
    GuardIgnored,
    /// An aborted epoch is settled like a committed one.
    AbortCommits,
    /// An acknowledgement that failed counts as done.
    FailedAckCounts,
    /// A redelivery of a held message is handed out as a new one.
    RedeliveryIsNew,
    /// Acknowledgements go out under the first ack id of a message, not the newest.
    FirstAckIdKept,
    /// Leases are never extended, though the machine believes they are.
    ExtensionsSkipped,
    /// A commit resolves twice.
    ResolvesTwice,
    /// What is given back at the end is acknowledged instead.
    ReleaseAcknowledges,
    /// The order of keys is not kept at all.
    OrderNotKept,
    /// What is held is not handed out again, whatever came again before it.
    HeldNeverComesAgain,
    /// The responses of a stream are read in another order than they came.
    ResponsesReordered,
    /// A state does not say in which keys its host is behind.
    BehindForgotten,
    /// What the stream says about exactly-once delivery is not followed.
    ExactlyOnceIgnored,
    /// A restored source does not know which messages were handed out in part.
    UnfinishedForgotten,
    /// A message is part of the epoch of its first record.
    FinishedTooEarly,
    /// A message that comes again goes on one record too far.
    OneRecordTooFar,
}

impl Bug {
    pub(super) const ALL: [Self; 21] = [
        Self::AckOnHandOut,
        Self::CommitAtSeal,
        Self::CutCountsBuffered,
        Self::StateWithoutSettling,
        Self::RestoreForgets,
        Self::GuardIgnored,
        Self::AbortCommits,
        Self::FailedAckCounts,
        Self::RedeliveryIsNew,
        Self::FirstAckIdKept,
        Self::ExtensionsSkipped,
        Self::ResolvesTwice,
        Self::ReleaseAcknowledges,
        Self::OrderNotKept,
        Self::HeldNeverComesAgain,
        Self::ResponsesReordered,
        Self::BehindForgotten,
        Self::ExactlyOnceIgnored,
        Self::UnfinishedForgotten,
        Self::FinishedTooEarly,
        Self::OneRecordTooFar,
    ];
}
