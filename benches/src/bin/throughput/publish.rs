//! Publishing.

use bytes::Bytes;
use clap::Args;
use connector_core::{Limits, Receipt};
use measure::{Failure, Flags, Usage};
use pubsub_sink::{Endpoint, PublishMessage, Published, PubsubSink, TopicName};

use crate::{
    drive::{Driven, drive},
    flood::FloodServer,
};

/// One record in so many is published with a receipt, to see how long it takes.
const SAMPLED: u64 = 1000;

/// Options of `publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The topic; with several destinations, the beginning of their names.
    #[arg(long, default_value = "projects/demo-project/topics/flood")]
    topic: String,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 1024)]
    payload_bytes: usize,
    /// Messages per request.
    #[arg(long, default_value_t = 1000)]
    batch: usize,
    /// Requests under way per destination.
    #[arg(long, default_value_t = 10)]
    in_flight: usize,
    /// Topics, taken in turn.
    #[arg(long, default_value_t = 1)]
    destinations: usize,
    /// Ordering keys, taken in turn; 0 for messages without.
    #[arg(long, default_value_t = 0)]
    ordering_keys: usize,
}

impl Publish {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let base = Usage::now()?;
        let (_server, address) = FloodServer::default().unless(&self.flags.endpoint).await?;
        drive("publish", &self.flags, self.sink(&address)?, SAMPLED, base).await
    }

    fn sink(&self, address: &str) -> Result<PubsubSink<u64>, Failure> {
        let payload = Bytes::from(vec![b'x'; self.payload_bytes]);
        let keys = self.ordering_keys as u64;
        let encode = move |record: &u64| {
            let message = PublishMessage::new(payload.clone());
            Ok::<_, Failure>(Some(match keys {
                0 => message,
                keys => message.ordering_key(format!("key-{}", record % keys)),
            }))
        };
        let topics: Vec<TopicName> = if self.destinations <= 1 {
            vec![self.topic.parse()?]
        } else {
            (0..self.destinations)
                .map(|number| format!("{}{number}", self.topic).parse())
                .collect::<Result<_, _>>()?
        };
        let most = self.batch * self.in_flight * topics.len().min(100);
        let resolve = move |record: &u64| {
            let index = usize::try_from(*record).unwrap_or(0) % topics.len();
            Ok::<_, Failure>(topics[index].clone())
        };
        let sink = PubsubSink::builder(encode)
            .resolve(resolve)
            .endpoint(Endpoint::emulator(address)?)
            .limits(Limits::new(most.max(1000), 256 << 20))
            .batch_messages(self.batch)
            .in_flight(self.in_flight)
            .max_destinations(self.destinations.max(100))
            .message_ordering(self.ordering_keys > 0)
            .build()?;
        Ok(sink)
    }
}

impl Driven for PubsubSink<u64> {
    type Outcome = Published;

    fn submit(&mut self, record: u64) -> Receipt<Published> {
        Self::submit(self, record)
    }

    fn is_done(outcome: &Published) -> bool {
        matches!(outcome, Published::Stored { .. })
    }

    fn done(&self) -> u64 {
        self.stats().records_published
    }

    fn unanswered(&self) -> u64 {
        self.stats().in_flight_records
    }
}
