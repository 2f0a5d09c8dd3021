//! The stats, published through the `metrics` facade.

use std::time::{Duration, Instant};

use gcp_wire::SubscriptionName;

use crate::stats::{Figure, Stats};

/// How often the figures are published: more often than they are scraped.
const EVERY: Duration = Duration::from_secs(1);

/// Publishes the stats now and then.
#[derive(Debug)]
pub(super) struct Figures {
    subscription: String,
    last: Option<Instant>,
}

impl Figures {
    pub(super) fn new(subscription: &SubscriptionName) -> Self {
        Self {
            subscription: subscription.as_str().to_owned(),
            last: None,
        }
    }

    pub(super) fn publish(&mut self, now: Instant, stats: impl FnOnce() -> Stats) {
        if self.last.is_some_and(|last| now < last + EVERY) {
            return;
        }
        self.last = Some(now);
        for (name, figure) in stats().figures() {
            let name = format!("pubsub_source_{name}");
            let subscription = self.subscription.clone();
            match figure {
                Figure::Counter(value) => {
                    metrics::counter!(name, "subscription" => subscription).absolute(value);
                }
                Figure::Gauge(value) => {
                    metrics::gauge!(name, "subscription" => subscription).set(value);
                }
            }
        }
    }
}
