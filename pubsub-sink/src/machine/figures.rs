//! What is counted for each topic.

use std::collections::BTreeMap;

use gcp_wire::{Code, TopicName};

use super::Machine;
use crate::DestinationStats;

/// Numbers of each topic, and of each kind of failure.
pub(super) type Figures = connector_core::figures::Figures<TopicName, DestinationStats, Code>;

/// `destination` is that of a rejected record; without a topic it counts nowhere.
pub(super) fn count_rejected(figures: &mut Figures, destination: &str) {
    if figures.are_kept()
        && let Ok(topic) = destination.parse()
    {
        figures.count(&topic, |stats| stats.records_rejected += 1);
    }
}

impl Machine {
    /// What the sink did for each topic, as far as that was asked for.
    pub(crate) const fn destination_stats(&self) -> &BTreeMap<TopicName, DestinationStats> {
        self.figures.by_destination()
    }

    /// What changed of it since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed_destinations(&mut self) -> Vec<(TopicName, DestinationStats)> {
        self.figures.take_changed()
    }

    /// How often requests failed, by code.
    pub(crate) const fn failures(&self) -> &BTreeMap<Code, u64> {
        self.figures.failures()
    }

    /// What changed of it since the last call.
    #[cfg(feature = "metrics")]
    pub(crate) fn take_changed_failures(&mut self) -> Vec<(Code, u64)> {
        self.figures.take_changed_failures()
    }
}
