//! The number of a checkpoint.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a checkpoint, chosen by the host.
///
/// Epochs strictly increase over a run and over restores; a number that was aborted is not used
/// again. `Epoch::default()` is zero, "before the first": a host that starts from nothing takes
/// its first checkpoint as `Epoch::default().next()`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(u64);

impl Epoch {
    /// Makes an epoch from its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch after this one.
    ///
    /// Saturates at `u64::MAX`, which a connector then refuses as out of order: at a thousand
    /// checkpoints a second that is half a billion years away.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for Epoch {
    fn from(number: u64) -> Self {
        Self(number)
    }
}
