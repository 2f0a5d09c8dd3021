//! What is counted for each queue.

use gcp_wire::{Code, QueueName};

use crate::DestinationStats;

/// Numbers of each queue, and of each kind of failure.
pub(crate) type Figures = connector_core::figures::Figures<QueueName, DestinationStats, Code>;

/// `destination` is that of a rejected record; without a queue it counts nowhere.
pub(super) fn count_rejected(figures: &mut Figures, destination: &str) {
    if figures.are_kept()
        && let Ok(queue) = destination.parse()
    {
        figures.count(&queue, |stats| stats.rejected += 1);
    }
}
