//! Faults to plant.

/// One way to break the contract. The clause it breaks is the first thing its comment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// C1: the cut is made when the driver gets to it.
    CutsLate,
    /// C1: the cut takes in what sits fetched in the buffer.
    CutsTheBuffer,
    /// C1: a message is settled with its first record.
    SettlesWithFirstRecord,
    /// C2: an old number is answered as if it were new.
    AcceptsOldEpochs,
    /// C3: a source's receipt waits for its driver.
    SnapshotWaits,
    /// C3: a sink's receipt is Ok when everything is queued.
    ReadyWhenQueued,
    /// C3: what a failed flush should have covered is forgotten.
    ForgetsFailedFlush,
    /// C3: the receipt is Ok before the handler was flushed.
    NeverFlushes,
    /// C4: only the newest of the swept epochs is settled.
    SweepsNewestOnly,
    /// C4: a commit of what was never taken is Ok.
    UnknownIsOk,
    /// C5: what is sealed gets out.
    SettlesAtSnapshot,
    /// C6: a dropped receipt takes the work with it.
    NeedsReceipt,
    /// C6: epochs leave strictly one after the other.
    SettlesInOrder,
    /// C6: a commit's receipt is Ok at once.
    CommitsBlindly,
    /// C7: an aborted epoch is dropped.
    AbortDrops,
    /// C7: an aborted epoch goes back to the service, or leaves.
    AbortReleases,
    /// C7: the pending receipt of an aborted epoch is forgotten.
    AbortLeavesReceipt,
    /// C8: the state names only what is sealed.
    ForgetsSettling,
    /// C8: a snapshot vouches only for its own epoch.
    VouchesForOwnEpochOnly,
    /// C9: only one of several restored states counts.
    RestoresOneState,
    /// C9: what is restored waits for a commit of the host.
    RestoreDoesNotCommit,
    /// C9: what the host knows as settled is sent again (or forgotten as seen).
    IgnoresSettledMark,
    /// C9: the state names what was delivered, so a restore delivers it again.
    NamesDelivered,
    /// C9: items that two states name are sent twice.
    RepeatsMergedItems,
    /// C10: close leaves committed work undone.
    CloseDropsCommitted,
    /// C10: close keeps its leases.
    CloseKeepsLeases,
    /// C10: close settles everything it holds.
    CloseSettlesAll,
    /// C11: what is not confirmed in time is no longer sent.
    GivesUpCommitted,
    /// C11: a lapsed delivery that comes again is handed out again.
    EmitsLapsed,
    /// C12: the next call after a terminal error works.
    ForgetsItsEnd,
    /// C12: the error comes again and again.
    RepeatsItsError,
    /// C13: dropping settles what was sealed.
    DropSettles,
}
