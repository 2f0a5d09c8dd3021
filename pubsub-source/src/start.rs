//! Where a job begins to read.

mod record;
mod store;
mod target;

pub use record::StartRecord;
pub use store::{StartStore, Unrecorded};

pub(crate) use record::{Seek, SeekId};
pub(crate) use target::SeekTarget;

use std::time::SystemTime;

use gcp_wire::SnapshotName;

/// Where a job begins to read its subscriptions.
///
/// Everything but [`Continue`](Self::Continue) is a *seek*, which changes the subscription itself:
/// it moves **every** consumer of the subscription, not only this job. The service applies it within
/// about a minute; what is under way meanwhile may still be delivered.
///
/// It happens once per job, at its first start, and is remembered in the [`StartRecord`]: a host that
/// loses the record, or keeps none, seeks again at its next start.
///
/// How far back a position reaches is up to the subscription: acknowledged messages come again only
/// if it retains them (`retain_acked_messages`) or its topic does (`message_retention_duration`).
/// Where neither is so, a start that goes back logs a warning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartPosition {
    /// Wherever the subscription stands. The default: nothing is sought.
    #[default]
    Continue,
    /// The oldest message that is retained, acknowledged ones included.
    Earliest,
    /// The moment at which the start-up check began. **Drops the backlog.**
    ///
    /// Not reproducible: another first start is another moment. The moment is this machine's, while
    /// publish times are the service's: a clock that is ahead may drop what is published meanwhile.
    Latest,
    /// A moment, from the Unix epoch to the end of the year 9999: what was published later comes, and
    /// nothing that was published at that moment or earlier.
    Timestamp(SystemTime),
    /// A snapshot of the backlog of one of the topic's subscriptions: what was unacknowledged
    /// when it was taken, and everything published since.
    Snapshot(SnapshotName),
}
