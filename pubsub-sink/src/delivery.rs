//! When messages leave: as they come, or with the host's commit.

/// When a sink's messages leave, and what its saved state holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// Messages leave as they come, and a snapshot waits until everything before it is stored.
    /// The state names nothing. The default: the lowest latency, and no message in the state. What
    /// was published since the last durable checkpoint is published again after a crash.
    #[default]
    Flush,
    /// Messages are held in the state and leave when the host commits the checkpoint that names
    /// them, so nothing of an epoch that is given up is ever visible, and nothing is published
    /// again after a crash but what the crash left unconfirmed.
    ///
    /// Costs a delay of up to a checkpoint's interval, and a state that holds whole messages, with
    /// whatever secrets they carry. A host that writes the settled mark has only unconfirmed
    /// messages repeated after a crash; one that does not, the whole last epoch.
    Staged,
}

impl Delivery {
    pub(crate) const fn is_staged(self) -> bool {
        match self {
            Self::Flush => false,
            Self::Staged => true,
        }
    }
}
