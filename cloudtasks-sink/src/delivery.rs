//! When tasks are created.

use std::time::Duration;

/// When tasks are created, and how often one task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// As records come in, before their checkpoint: at least once. A record that comes again after
    /// a crash makes a second task, unless tasks are named by key.
    #[default]
    Flush,
    /// After the checkpoint that holds them: once, inside the window in which the service remembers
    /// names.
    ///
    /// A record becomes an encoded task with a name of its own, which is part of the sink's state
    /// and leaves only on `commit`. Whatever crashes in between is made good by asking again under
    /// the same name: the service refuses the second task.
    Staged {
        /// How long the service surely remembers the name of a task that is over.
        ///
        /// There is no default: Google's texts say "about an hour" in one place and "up to 24
        /// hours" in another, and neither is a promise. Measure it for your queues, or rely on no
        /// more than an hour. The window, less the
        /// [margin](crate::SinkBuilder::retention_margin), bounds how late after its seal a task may
        /// still be asked for; after that it is kept aside for the operator and not created. More than
        /// 100 years are refused: a deadline that no clock can count could not be kept.
        name_retention: Duration,
    },
}
