//! Mistakes that the laws must find.

/// A mistake of the host, of what it keeps its checkpoints on, or of a connector, as it would show in
/// this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The source is committed when it is cut, before the state is durable.
    AckBeforeDurable,
    /// The sinks are committed when they are cut, before the state is durable.
    SentBeforeDurable,
    /// A restored sink for topics knows nothing of the saved state.
    PublishForgotten,
    /// A restored sink for tasks knows nothing of the saved state.
    TasksForgotten,
    /// A restored source knows nothing of the saved state.
    SourceForgotten,
    /// The settled mark is written when the commit begins.
    MarkedEarly,
    /// The settled mark waits for the source's receipt alone.
    MarkedForSource,
    /// The settled mark waits for the sinks' receipts, but names the newest epoch.
    MarkedNewest,
    /// A record goes to the sinks between their cut and the source's.
    SinksCutFirst,
    /// A record goes to the sinks between the source's cut and theirs.
    SourceCutFirst,
    /// The host holds a record over a cut.
    HeldOverCut,
    /// A state that cannot be read is dropped, and the one before it restored.
    DamagedDropped,
    /// The disk reports syncs that it has not done.
    SyncsLie,
    /// A save that failed counts as done.
    FailedSaveCounts,
    /// The host says of every restored state that no commit was begun for it.
    NeverCommitted,
    /// The state's sink for topics is of the epoch before.
    StaleSink,
}

impl Bug {
    pub(crate) const ALL: [Self; 16] = [
        Self::AckBeforeDurable,
        Self::SentBeforeDurable,
        Self::PublishForgotten,
        Self::TasksForgotten,
        Self::SourceForgotten,
        Self::MarkedEarly,
        Self::MarkedForSource,
        Self::MarkedNewest,
        Self::SinksCutFirst,
        Self::SourceCutFirst,
        Self::HeldOverCut,
        Self::DamagedDropped,
        Self::SyncsLie,
        Self::FailedSaveCounts,
        Self::NeverCommitted,
        Self::StaleSink,
    ];
}
