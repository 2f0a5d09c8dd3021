//! The checkpoint contract, clause by clause, over the embedded server in memory.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test that cannot go on fails, spawns its drivers, and names the variant it means"
)]

#[path = "wire/world.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests over the wire, which use all of it"
)]
mod world;

#[path = "conformance/decoded.rs"]
mod decoded;

use std::time::Duration;

use connector_core::{
    Committed, Receipt, Restored,
    conformance::{Harness, Hold, SourceHarness},
};
use gcp_emulator::{Code, Fault, Method, Rule, RuleId, pubsub::state::LateAcks};
use pubsub_source::{Message, PubsubSource, SavedDeliveries, SourceError, SourceState};
use tokio::task::JoinHandle;

use world::{OTHER, OTHER_TOPIC, SUBSCRIPTION, TOPIC, World, number};

/// Shorter than a lease, which is 60 s here, and longer than anything a healthy service makes a
/// source wait for.
const LIMIT: Duration = Duration::from_secs(20);

struct SourceWorld {
    world: World,
    /// The topics, in turn for one number after the other, and their subscriptions.
    splits: &'static [(&'static str, &'static str)],
    saved: SavedDeliveries,
    drivers: Vec<JoinHandle<()>>,
    holding: Option<RuleId>,
    broken: Option<RuleId>,
}

impl SourceWorld {
    fn with(splits: &'static [(&'static str, &'static str)]) -> Self {
        let world = World::with(|server| server.late_acks(LateAcks::Never), |_| {});
        Self {
            world: world.with_other(|_| {}),
            splits,
            saved: SavedDeliveries::MessageIds,
            drivers: Vec::new(),
            holding: None,
            broken: None,
        }
    }

    async fn crash_with(&mut self, connector: impl Sized) {
        for driver in self.drivers.drain(..) {
            driver.abort();
            drop(driver.await);
        }
        drop(connector);
        // What was on its way is cut off as well, held requests included.
        self.world.emulator.drop_connections();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Harness for SourceWorld {
    type Connector = PubsubSource;

    async fn make(&mut self, restored: Vec<Restored<SourceState>>) -> PubsubSource {
        let subscriptions: Vec<&str> = self.splits.iter().map(|(_, name)| *name).collect();
        let (source, driver) = self
            .world
            .source_of(&subscriptions)
            .restore(restored)
            .saved_deliveries(self.saved)
            .build_with_driver()
            .unwrap();
        self.drivers.push(tokio::spawn(driver));
        source
    }

    fn restored(connector: &mut PubsubSource) -> Receipt<Committed> {
        connector.restored()
    }

    async fn crash(&mut self, connector: PubsubSource) {
        self.crash_with(connector).await;
    }

    async fn close(mut connector: PubsubSource) {
        connector.close().await.unwrap();
    }

    async fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        tokio::time::timeout(LIMIT, future).await.ok()
    }

    async fn let_time_pass(&mut self) {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    async fn outside(&mut self) -> Vec<u64> {
        let seen = self.world.emulator.observe();
        let mut numbers = Vec::new();
        for (topic, subscription) in self.splits {
            let record = seen.subscription(subscription);
            let acked = record.acked_ids();
            numbers.extend(
                seen.topic(topic)
                    .messages
                    .iter()
                    .filter(|message| acked.contains(message.message_id.as_str()))
                    .flat_map(|message| decoded::numbers(&message.data)),
            );
        }
        numbers
    }

    async fn hold(&mut self, hold: Hold) {
        let faults = self.world.emulator.faults();
        match hold {
            Hold::Nothing => {
                if let Some(rule) = self.holding.take() {
                    assert!(faults.remove(rule));
                }
            }
            // Held for good: the source's own time-out ends the wait, and it asks again. That is
            // harder on it than a service that answers late.
            _ => {
                let rule = Rule::on(Method::Acknowledge).then(Fault::Never);
                self.holding = Some(faults.add(rule));
            }
        }
    }

    async fn broken(&mut self, broken: bool) {
        let faults = self.world.emulator.faults();
        if let Some(rule) = self.broken.take() {
            assert!(faults.remove(rule));
        }
        if broken {
            let refusal = Fault::answer(Code::PermissionDenied, "not any more");
            self.broken = Some(faults.add(Rule::on_any().then(refusal)));
            self.world.emulator.drop_connections();
        }
    }
}

impl SourceHarness for SourceWorld {
    type Message = Message;
    type Error = SourceError;

    fn number(message: &Message) -> u64 {
        number(message)
    }

    async fn publish(&mut self, numbers: &[u64]) {
        let splits = self.splits.len() as u64;
        for (at, (topic, _)) in (0..).zip(self.splits) {
            let own = numbers.iter().filter(|number| *number % splits == at);
            self.world.publish_to(topic, own.copied());
        }
    }

    async fn lapse(&mut self) {
        for (topic, subscription) in self.splits {
            let seen = self.world.emulator.observe();
            for message in &seen.topic(topic).messages {
                self.world
                    .emulator
                    .redeliver_early(subscription, &message.message_id);
            }
        }
    }
}

mod one_split {
    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        source: super::SourceWorld::with(&[(super::TOPIC, super::SUBSCRIPTION)])
    }
}

mod saving_ack_ids {
    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        source: super::SourceWorld {
            saved: super::SavedDeliveries::AckIds,
            ..super::SourceWorld::with(&[(super::TOPIC, super::SUBSCRIPTION)])
        }
    }
}

mod two_splits {
    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        source: super::SourceWorld::with(&[
            (super::TOPIC, super::SUBSCRIPTION),
            (super::OTHER_TOPIC, super::OTHER),
        ])
    }
}
