//! The scene of the small examples: a shop on an embedded server publishes orders.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use connector_core::BoxError;
use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_emulator::pubsub::state::OnStreamClose;
use gcp_emulator::{Emulator, FaultPlan, Observation};
use gcp_wire::Endpoint;
use serde::{Deserialize, Serialize};

/// The project of everything in the shop.
pub const PROJECT: &str = "shop";

/// The topic that the shop publishes to.
pub const ORDERS: &str = "projects/shop/topics/orders";

/// What the examples read.
pub const SUBSCRIPTION: &str = "projects/shop/subscriptions/orders-job";

/// Where the examples that create tasks create them; some have more.
pub const QUEUE: &str = "projects/shop/locations/europe-west1/queues/partner-0";

/// How long an example waits for something that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Order {
    /// Counts up from zero.
    pub id: u32,
    /// One of ten.
    pub customer: String,
    /// `eu`, `us` or `asia`.
    pub region: String,
    /// The price.
    pub cents: u64,
}

impl Order {
    /// The order of this number; the same in every run.
    #[must_use]
    pub fn numbered(id: u32) -> Self {
        let regions = ["eu", "us", "asia"];
        Self {
            id,
            customer: format!("shopper-{}", id % 10),
            region: regions
                .into_iter()
                .cycle()
                .nth((id % 3) as usize)
                .map_or_else(String::new, str::to_owned),
            cents: 100 + u64::from(id) % 50,
        }
    }
}

/// The server, and the shop's side of it.
#[derive(Debug)]
pub struct Shop {
    emulator: Emulator,
}

impl Shop {
    /// A server with the topic, the subscription and four queues.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub fn open() -> Result<Self, BoxError> {
        Self::open_with(FaultPlan::new(), false)
    }

    /// As [`open`](Self::open), with faults, and with per-key order or without.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub fn open_with(faults: FaultPlan, ordered: bool) -> Result<Self, BoxError> {
        let mut emulator = Emulator::builder()
            .faults(faults)
            // What a killed process had in hand comes again at once, so that nobody has to wait for
            // its leases to end.
            .on_stream_close(OnStreamClose::RedeliverAtOnce);
        for queue in queues() {
            emulator = emulator.queue(queue);
        }
        Self::on(emulator.start(), ordered)
    }

    /// A shop on a server that the caller has set up.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub fn on(emulator: Emulator, ordered: bool) -> Result<Self, BoxError> {
        emulator.create_topic(ORDERS)?;
        emulator.create_subscription(SUBSCRIPTION, ORDERS, |subscription| {
            subscription.enable_message_ordering = ordered;
            // Acknowledged messages can be had again by a seek.
            subscription.retain_acked_messages = true;
        })?;
        Ok(Self { emulator })
    }

    /// Where the connectors find the server.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    /// The server itself.
    #[must_use]
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Publishes the orders of these numbers, each under its customer's ordering key.
    ///
    /// # Errors
    ///
    /// What the server answers.
    pub fn sell(&self, numbers: impl IntoIterator<Item = u32>) -> Result<(), BoxError> {
        // A request has messages of one key.
        let mut requests: BTreeMap<String, Vec<PubsubMessage>> = BTreeMap::new();
        for order in numbers.into_iter().map(Order::numbered) {
            let message = PubsubMessage {
                data: serde_json::to_vec(&order)?.into(),
                ordering_key: order.customer.clone(),
                ..PubsubMessage::default()
            };
            requests.entry(order.customer).or_default().push(message);
        }
        for messages in requests.into_values() {
            self.emulator.publish(ORDERS, messages)?;
        }
        Ok(())
    }

    /// Waits until the server has seen what is asked for.
    ///
    /// # Errors
    ///
    /// When it has not within a minute.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait(
        &self,
        what: &'static str,
        seen: impl FnMut(&Observation) -> bool + Send,
    ) -> Result<(), BoxError> {
        if self.emulator.wait_until(seen, PATIENCE).await {
            return Ok(());
        }
        Err(format!("waited a minute in vain until {what}").into())
    }

    /// Orders that are not acknowledged.
    #[must_use]
    pub fn left(&self) -> usize {
        self.emulator.observe().subscription(SUBSCRIPTION).backlog
    }

    /// The orders that are in a topic, each with how often it is there.
    ///
    /// # Errors
    ///
    /// When something else is there.
    pub fn orders_in(&self, topic: &str) -> Result<BTreeMap<u32, u32>, BoxError> {
        let mut counts = BTreeMap::new();
        for payload in self.emulator.observe().topic(topic).payloads() {
            let order: Order = serde_json::from_slice(payload)?;
            *counts.entry(order.id).or_default() += 1;
        }
        Ok(counts)
    }
}

/// The names of the four queues.
pub fn queues() -> impl Iterator<Item = String> {
    (0..4).map(|number| format!("projects/shop/locations/europe-west1/queues/partner-{number}"))
}

/// The distinct orders in a topic so far; for conditions to wait for.
#[must_use]
pub fn distinct(seen: &Observation, topic: &str) -> usize {
    let topic = seen.topic(topic);
    let payloads: BTreeSet<&[u8]> = topic.payloads().collect();
    payloads.len()
}

/// How many of these were counted more than once.
#[must_use]
pub fn repeated(counts: &BTreeMap<u32, u32>) -> usize {
    counts.values().filter(|count| **count > 1).count()
}
