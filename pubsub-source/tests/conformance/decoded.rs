//! The same clauses for a decoded source: messages of several numbers, a record each.

use bytes::Bytes;
use connector_core::{
    BoxError, Committed, Receipt, Restored,
    conformance::{Harness, Hold, SourceHarness},
};
use gcp_emulator::pubsub::proto::PubsubMessage;
use pubsub_source::{Decoded, Message, SourceError, SourceState};

use crate::{SourceWorld, world};

/// The numbers that a message was published with.
pub fn numbers(data: &Bytes) -> Vec<u64> {
    let text = std::str::from_utf8(data).unwrap();
    let numbers = text.split(',').map(str::parse);
    numbers.collect::<Result<_, _>>().unwrap()
}

type Numbers = fn(Message) -> Result<Vec<u64>, BoxError>;

struct DecodedWorld(SourceWorld);

impl DecodedWorld {
    fn new() -> Self {
        Self(SourceWorld::with(&[(world::TOPIC, world::SUBSCRIPTION)]))
    }
}

impl Harness for DecodedWorld {
    type Connector = Decoded<Numbers>;

    async fn make(&mut self, restored: Vec<Restored<SourceState>>) -> Decoded<Numbers> {
        let decoder: Numbers = |message| Ok(numbers(message.data()));
        self.0.make(restored).await.decode(decoder)
    }

    fn restored(connector: &mut Decoded<Numbers>) -> Receipt<Committed> {
        connector.restored()
    }

    async fn crash(&mut self, connector: Decoded<Numbers>) {
        self.0.crash_with(connector).await;
    }

    async fn close(mut connector: Decoded<Numbers>) {
        connector.close().await.unwrap();
    }

    async fn bounded<F: Future>(&mut self, future: F) -> Option<F::Output> {
        self.0.bounded(future).await
    }

    async fn let_time_pass(&mut self) {
        self.0.let_time_pass().await;
    }

    async fn outside(&mut self) -> Vec<u64> {
        self.0.outside().await
    }

    async fn hold(&mut self, hold: Hold) {
        self.0.hold(hold).await;
    }

    async fn broken(&mut self, broken: bool) {
        self.0.broken(broken).await;
    }
}

impl SourceHarness for DecodedWorld {
    type Message = u64;
    type Error = SourceError;

    const SPLITS_MESSAGES: bool = true;

    fn number(number: &u64) -> u64 {
        *number
    }

    async fn publish(&mut self, numbers: &[u64]) {
        self.0.publish(numbers).await;
    }

    async fn publish_group(&mut self, numbers: &[u64]) {
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let message = PubsubMessage {
            data: texts.join(",").into(),
            ..PubsubMessage::default()
        };
        let published = self.0.world.emulator.publish(world::TOPIC, vec![message]);
        assert_eq!(published.unwrap().len(), 1);
    }

    async fn lapse(&mut self) {
        self.0.lapse().await;
    }
}

connector_core::conformance_tests! {
    #[tokio::test(start_paused = true)]
    source: DecodedWorld::new()
}
