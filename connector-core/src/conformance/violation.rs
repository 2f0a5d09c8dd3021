//! What the suite reports.

use super::Clause;

/// A clause that a connector breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{clause} ({}) is broken: {claim}; seen: {seen}", clause.title())]
#[non_exhaustive]
pub struct Violation {
    /// The clause of the contract.
    pub clause: Clause,
    /// What should have held.
    pub claim: &'static str,
    /// What was there instead.
    pub seen: String,
}
