//! Whether a queue dispatches.

/// Whether a queue dispatches its tasks. All of them take tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum QueueState {
    /// It was not looked at yet, or may not be.
    #[default]
    Unknown,
    /// It dispatches.
    Running,
    /// Somebody paused it: tasks pile up.
    Paused,
    /// It was left out of an uploaded `queue.yaml`: tasks pile up.
    Disabled,
}

impl QueueState {
    /// Whether tasks pile up in it.
    #[must_use]
    pub const fn is_stopped(self) -> bool {
        match self {
            Self::Paused | Self::Disabled => true,
            Self::Unknown | Self::Running => false,
        }
    }
}
