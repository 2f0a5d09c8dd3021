//! What becomes of a message with an ordering key that arrives.

use std::time::Duration;

use super::Passage;

/// What is known of a message that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::machine) enum Known {
    /// Nothing: it is new, or was handed out and is settled and forgotten.
    Nothing,
    /// A durable epoch names it.
    Seen,
    /// It is held, and was last let through then.
    Held(Passage),
    /// The same, and it has not come out.
    Waits(Passage),
}

/// What is to become of a message that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::machine) enum Fate {
    /// It is handed out, again or for the first time.
    HandOut(Passage),
    /// It is a redelivery of something that need not come out again.
    Suppress,
    /// It would leave a gap: what comes before it was dropped and is on its way, or is known to be
    /// gone after this time.
    Drop { wait: Duration },
}
