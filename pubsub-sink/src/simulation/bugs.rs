//! Mistakes that the invariants must find.

/// A mistake, planted between the machine and the world: the machine itself stays as it is, what
/// goes in and comes out is falsified as if it had made the mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// A snapshot is saved when it is cut, whatever its receipt waits for.
    SavedAtCut,
    /// A request without an answer counts as stored.
    SilenceCountsAsStored,
    /// An outage counts as a refusal of the messages.
    OutageCountsAsRefusal,
    /// A failed flush of the handler counts as done.
    FailedFlushCounts,
    /// An epoch is committed when it is sealed, before it is durable.
    CommitAtSeal,
    /// The state leaves out what is committed and not confirmed.
    StateWithoutSettling,
    /// A restored sink knows of no message.
    RestoreForgets,
    /// The settled mark is written when the commit begins.
    MarkedEarly,
    /// A restored sink does not look at the mark.
    MarkIgnored,
    /// An aborted epoch leaves like a committed one.
    AbortCommits,
    /// Messages that two states name are taken for different ones.
    TwinsNotRecognised,
    /// What is kept aside is not restored.
    QuarantineForgotten,
    /// Ordering keys are not seen.
    KeysIgnored,
    /// Room is given back twice.
    ReleasedTwice,
    /// A receipt resolves twice.
    ResolvesTwice,
    /// A topic that could not be created counts as created, and what waited for it as stored.
    MissingCountsAsStored,
}

impl Bug {
    pub(super) const ALL: [Self; 16] = [
        Self::SavedAtCut,
        Self::SilenceCountsAsStored,
        Self::OutageCountsAsRefusal,
        Self::FailedFlushCounts,
        Self::CommitAtSeal,
        Self::StateWithoutSettling,
        Self::RestoreForgets,
        Self::MarkedEarly,
        Self::MarkIgnored,
        Self::AbortCommits,
        Self::TwinsNotRecognised,
        Self::QuarantineForgotten,
        Self::KeysIgnored,
        Self::ReleasedTwice,
        Self::ResolvesTwice,
        Self::MissingCountsAsStored,
    ];
}
