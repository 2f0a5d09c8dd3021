//! The resources of one run.

use std::collections::BTreeMap;

use gcp_wire::names::{NameError, QueueName, SubscriptionName, TopicName};

use super::order::Region;

/// Queues the tasks are spread over: one queue dispatches at most 500 tasks a second (the service's
/// limit on `max_dispatches_per_second`).
pub(crate) const QUEUES: usize = 4;

/// The names a run uses, in a project of its own: a server that is already running can serve any
/// number of runs, and none meets what another left behind.
#[derive(Debug, Clone)]
pub(crate) struct RunNames {
    /// Where the shop publishes its orders.
    pub(crate) orders: TopicName,
    /// What the pipeline reads.
    pub(crate) subscription: SubscriptionName,
    /// Where the pipeline publishes.
    pub(crate) regions: BTreeMap<Region, TopicName>,
    /// What the parent counts by.
    pub(crate) counting: BTreeMap<Region, SubscriptionName>,
    pub(crate) queues: Vec<QueueName>,
}

impl RunNames {
    /// Names that no run had before.
    pub(crate) fn fresh() -> Result<Self, NameError> {
        Self::in_project(&format!("orders-{:016x}", fastrand::u64(..)))
    }

    fn in_project(project: &str) -> Result<Self, NameError> {
        let mut regions = BTreeMap::new();
        let mut counting = BTreeMap::new();
        for region in Region::ALL {
            regions.insert(
                region,
                TopicName::new(project, &format!("orders-{region}"))?,
            );
            let counted = SubscriptionName::new(project, &format!("count-{region}"))?;
            counting.insert(region, counted);
        }
        let queues = (0..QUEUES)
            .map(|shard| QueueName::new(project, "us-central1", &format!("partners-{shard}")));
        Ok(Self {
            orders: TopicName::new(project, "orders")?,
            subscription: SubscriptionName::new(project, "orders-pipeline")?,
            regions,
            counting,
            queues: queues.collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_share_no_name() {
        let (one, other) = (RunNames::fresh().unwrap(), RunNames::fresh().unwrap());
        assert_ne!(one.orders.project(), other.orders.project());
        assert_eq!(one.orders.project(), one.queues[3].project());
        assert_eq!(one.regions[&Region::Europe].id(), "orders-europe");
    }
}
