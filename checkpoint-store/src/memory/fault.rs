//! What can go wrong with a store in memory.

/// A fault that a [`MemoryPlace`](crate::MemoryPlace) plays on the next call it concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryFault {
    /// The next `save` fails, and its state is not durable.
    SaveRefused,
    /// The next `save` fails, although its state is durable.
    SaveUnreported,
    /// The next `save` fails, and its state becomes durable later, when
    /// [`MemoryPlace::land`](crate::MemoryPlace::land) is called.
    SaveLate,
    /// The next `settled` or `committing` mark fails and is not kept.
    MarkRefused,
    /// The next `settled` or `committing` mark answers `Ok` and is not kept.
    MarkLost,
}

/// The error inside a [`StoreError`](crate::StoreError) that a scripted fault caused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("scripted fault {0:?}")]
pub(super) struct Scripted(pub(super) MemoryFault);
