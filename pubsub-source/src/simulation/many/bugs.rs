//! Mistakes that the invariants must find.

/// A mistake, planted between the machines, the store and the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bug {
    /// The store takes the saves of an owner that has a successor.
    OldOwnerSaves,
    /// A host takes a save that was refused for its owner as done.
    RefusalIgnored,
    /// A host that has lost its store acknowledges what it gives back.
    DropAcknowledges,
    /// A checkpoint is saved without the state of the last reader.
    ReaderLeftOut,
    /// A reader is restored from the state of the reader in its place only.
    OwnStateOnly,
    /// Of more readers than before, the new ones know nothing.
    NewReadersKnowNothing,
    /// Of fewer readers than before, the states of those that are gone are left out.
    GoneReadersForgotten,
    /// Ids count for every subscription, whichever they are saved for.
    SubscriptionsMixedUp,
    /// A split does not tell the others that it is paused.
    PauseUntold,
    /// A split does not hear that there is room again, or that it is to be parked.
    BellUnheard,
    /// A split reads on where it was told that there is no room.
    RoomIgnored,
    /// A split that was parked does not open its streams again.
    ResumeForgotten,
}

impl Bug {
    pub(super) const ALL: [Self; 12] = [
        Self::OldOwnerSaves,
        Self::RefusalIgnored,
        Self::DropAcknowledges,
        Self::ReaderLeftOut,
        Self::OwnStateOnly,
        Self::NewReadersKnowNothing,
        Self::GoneReadersForgotten,
        Self::SubscriptionsMixedUp,
        Self::PauseUntold,
        Self::BellUnheard,
        Self::RoomIgnored,
        Self::ResumeForgotten,
    ];
}
