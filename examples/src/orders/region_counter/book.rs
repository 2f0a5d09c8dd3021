//! What has been seen in the region topics.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::order::{EnrichedOrder, Region};

/// How many answers without a message each region had.
pub(super) type EmptyAnswers = BTreeMap<Region, u64>;

/// The messages of the region topics, each once however often it is delivered.
#[derive(Debug, Default)]
pub(crate) struct RegionBook {
    /// Message ids are unique within a topic.
    messages: HashSet<(Region, String)>,
    /// How many messages carry each order, in the topic of its region.
    orders: HashMap<String, u64>,
    /// Messages that are no order of their region.
    strays: u64,
    empty: EmptyAnswers,
}

/// The figures of a [`RegionBook`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RegionTally {
    /// Distinct messages.
    pub(crate) messages: u64,
    /// Distinct orders, each in the topic of its region.
    pub(crate) orders: u64,
    /// Messages beyond the first of each order.
    pub(crate) duplicates: u64,
    /// Messages that are no order, or are one of another region.
    pub(crate) strays: u64,
}

impl RegionBook {
    /// Writes down one delivery.
    pub(super) fn enter(&mut self, region: Region, message_id: String, data: &[u8]) {
        if !self.messages.insert((region, message_id)) {
            return;
        }
        match serde_json::from_slice::<EnrichedOrder>(data) {
            Ok(enriched) if enriched.order.region == region => {
                *self.orders.entry(enriched.order.event_id).or_default() += 1;
            }
            Ok(_) | Err(_) => self.strays += 1,
        }
    }

    pub(super) fn note_empty(&mut self, region: Region) {
        *self.empty.entry(region).or_default() += 1;
    }

    pub(super) fn empty_answers(&self) -> EmptyAnswers {
        self.empty.clone()
    }

    /// The fewest empty answers that any region had since `before`.
    pub(super) fn empty_answers_since(&self, before: &EmptyAnswers) -> u64 {
        let count = |counts: &EmptyAnswers, region| counts.get(region).copied().unwrap_or(0);
        let since = |region| count(&self.empty, region) - count(before, region);
        Region::ALL.iter().map(since).min().unwrap_or(0)
    }

    /// Whether the order of this event is in the topic of its region.
    pub(crate) fn knows(&self, event_id: &str) -> bool {
        self.orders.contains_key(event_id)
    }

    pub(crate) fn tally(&self) -> RegionTally {
        let (messages, orders) = (self.messages.len() as u64, self.orders.len() as u64);
        RegionTally {
            messages,
            orders,
            duplicates: messages - self.strays - orders,
            strays: self.strays,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::super::{order::Order, workload};
    use super::*;

    fn message(order: &Order) -> Vec<u8> {
        serde_json::to_vec(&EnrichedOrder {
            order: order.clone(),
            route: None,
        })
        .unwrap()
    }

    #[test]
    fn a_message_delivered_twice_is_one_and_an_order_published_twice_is_a_duplicate() {
        let order = workload::orders(1, 1, SystemTime::UNIX_EPOCH)
            .next()
            .unwrap();
        let mut book = RegionBook::default();
        book.enter(order.region, "1".to_owned(), &message(&order));
        book.enter(order.region, "1".to_owned(), &message(&order));
        book.enter(order.region, "2".to_owned(), &message(&order));
        let expected = RegionTally {
            messages: 2,
            orders: 1,
            duplicates: 1,
            strays: 0,
        };
        assert_eq!(book.tally(), expected);
        assert!(book.knows(&order.event_id));
    }

    #[test]
    fn an_order_in_the_topic_of_another_region_has_not_arrived() {
        let order = workload::orders(1, 1, SystemTime::UNIX_EPOCH)
            .next()
            .unwrap();
        let elsewhere = Region::ALL
            .into_iter()
            .find(|region| *region != order.region)
            .unwrap();
        let mut book = RegionBook::default();
        book.enter(elsewhere, "1".to_owned(), &message(&order));
        book.enter(elsewhere, "2".to_owned(), b"no order");
        let expected = RegionTally {
            messages: 2,
            orders: 0,
            duplicates: 0,
            strays: 2,
        };
        assert_eq!(book.tally(), expected);
        assert!(!book.knows(&order.event_id));
    }

    #[test]
    fn the_drain_waits_for_the_slowest_region() {
        let mut book = RegionBook::default();
        book.note_empty(Region::Asia);
        let before = book.empty_answers();
        for region in Region::ALL {
            assert_eq!(book.empty_answers_since(&before), 0);
            book.note_empty(region);
        }
        assert_eq!(book.empty_answers_since(&before), 1);
    }
}
