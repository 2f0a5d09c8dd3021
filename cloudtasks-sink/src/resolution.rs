//! What an operator decides about a task that is kept aside.

use connector_core::Cause;

/// What becomes of a task that is kept aside.
///
/// Each of them shows in the next saved state; a crash before it brings the task back as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resolution {
    /// Create it now, under the name it has, for one more window. Where the service has forgotten
    /// that the task was created and has run, this makes a second one.
    Force,
    /// Drop it: no task shall come of it, or something else took care.
    Discard,
    /// It is known to have been created: count it as such, and drop it.
    MarkCommitted,
}

/// Why a task that is kept aside was not resolved. Nothing changed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No task of this name is kept aside.
    #[error("no task named {name:?} is kept aside; nothing was changed")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// The sink has ended.
    #[error("the sink is closed; the task stays kept aside as the last saved state has it")]
    Closed {
        /// Why.
        #[source]
        cause: Cause,
    },
}
