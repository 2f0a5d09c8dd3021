//! The orders of a run, made from a seed.

use std::time::{Duration, SystemTime};

use super::order::{Line, Order, Region};

/// Enough customers for an even spread over the queues, few enough to read the table.
const CUSTOMERS: usize = 200;

/// One order in this many is to be dispatched later.
const SCHEDULED: u64 = 20;

/// How much later, at most. Short, so that the run does not wait for it.
const LATEST: Duration = Duration::from_secs(3);

/// The customers of every run.
pub(crate) fn customers() -> Vec<String> {
    (0..CUSTOMERS).map(customer).collect()
}

fn customer(index: usize) -> String {
    format!("customer-{index:03}")
}

/// `count` orders that depend on nothing but `seed`, except for their dispatch times, which lie
/// after `now`.
pub(crate) fn orders(seed: u64, count: usize, now: SystemTime) -> impl Iterator<Item = Order> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..count).map(move |index| Order {
        event_id: format!("{:032x}", rng.u128(..)),
        order_id: format!("A-{index:07}"),
        customer: customer(rng.usize(..CUSTOMERS)),
        region: Region::ALL[rng.usize(..Region::ALL.len())],
        lines: (0..rng.usize(1..4))
            .map(|_| Line {
                sku: format!("sku-{:04}", rng.u32(..10_000)),
                quantity: rng.u32(1..10),
                unit_cents: rng.u32(50..20_000),
            })
            .collect(),
        dispatch_at: (rng.u64(..SCHEDULED) == 0).then(|| now + LATEST.mul_f64(rng.f64())),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_the_same_orders_again() {
        let now = SystemTime::UNIX_EPOCH;
        let first: Vec<Order> = orders(7, 100, now).collect();
        assert_eq!(first, orders(7, 100, now).collect::<Vec<_>>());
        assert_ne!(first, orders(8, 100, now).collect::<Vec<_>>());
    }

    #[test]
    fn a_run_has_every_region_and_both_kinds_of_dispatch() {
        let orders: Vec<Order> = orders(1, 1000, SystemTime::UNIX_EPOCH).collect();
        let ids: BTreeSet<&str> = orders.iter().map(|order| order.event_id.as_str()).collect();
        assert_eq!(ids.len(), orders.len());
        let regions: BTreeSet<Region> = orders.iter().map(|order| order.region).collect();
        assert_eq!(regions.len(), Region::ALL.len());
        let later = orders
            .iter()
            .filter(|order| order.dispatch_at.is_some())
            .count();
        assert!(
            (10..200).contains(&later),
            "{later} of 1000 are dispatched later"
        );
    }
}
