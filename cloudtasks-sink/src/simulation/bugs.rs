//! Mistakes that the invariants must find.

/// A mistake, planted between the machine and the world: the machine itself stays as it is, what
/// goes in and comes out is falsified as if it had made the mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// A snapshot is saved when it is cut, whatever its receipt waits for.
    SavedAtCut,
    /// An epoch is committed when it is sealed, before it is durable.
    CommitAtSeal,
    /// An aborted epoch leaves like a committed one.
    AbortCommits,
    /// The state leaves out what is committed and not confirmed.
    StateWithoutSettling,
    /// A restored sink knows of no task.
    RestoreForgets,
    /// A restored task gets a new name.
    NamesRemade,
    /// The settled mark is written when the commit begins.
    MarkedEarly,
    /// The mark before a commit is never written, and its absence believed.
    NoMarkBeforeCommits,
    /// Time stands still for the deadlines, and nobody looks again before a call.
    ClockStands,
    /// A call without an answer counts as a created task.
    SilenceCountsAsCreated,
    /// An outage counts as a refusal of the task.
    OutageCountsAsRefusal,
    /// A failed flush of the handler counts as done.
    FailedFlushCounts,
    /// What is kept aside is not restored.
    QuarantineForgotten,
    /// Room is given back twice.
    ReleasedTwice,
    /// A receipt resolves twice.
    ResolvesTwice,
}

impl Bug {
    pub(super) const ALL: [Self; 15] = [
        Self::SavedAtCut,
        Self::CommitAtSeal,
        Self::AbortCommits,
        Self::StateWithoutSettling,
        Self::RestoreForgets,
        Self::NamesRemade,
        Self::MarkedEarly,
        Self::NoMarkBeforeCommits,
        Self::ClockStands,
        Self::SilenceCountsAsCreated,
        Self::OutageCountsAsRefusal,
        Self::FailedFlushCounts,
        Self::QuarantineForgotten,
        Self::ReleasedTwice,
        Self::ResolvesTwice,
    ];
}
