//! What can go wrong at a step.

/// What a [`SimulatedDisk`](crate::SimulatedDisk) does at a step instead of what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiskFault {
    /// The step fails. A file that was being made is there, with half of its content.
    Refused,
    /// The step is done and reports an error. A sync that fails so has synced.
    Unreported,
    /// The disk is full: this step and all later ones that make files fail, until it heals.
    Full,
    /// The process dies before the step: it and all later ones of the process fail.
    Death,
}

/// The error of a step that went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("simulated: {0:?}")]
pub(super) struct Simulated(pub(super) DiskFault);
