//! What decoding did, in numbers.

use crate::stats::Stats;

/// What decoding did since the machine was last told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) records: u64,
    pub(crate) skipped: u64,
    pub(crate) without_records: u64,
    pub(crate) failures: u64,
    pub(crate) dropped: u64,
    pub(crate) nacked: u64,
}

impl Tally {
    pub(crate) fn add_to(self, stats: &mut Stats) {
        stats.records += self.records;
        stats.skipped_records += self.skipped;
        stats.without_records += self.without_records;
        stats.decode_failures += self.failures;
        stats.decode_dropped += self.dropped;
        stats.decode_nacked += self.nacked;
    }
}
