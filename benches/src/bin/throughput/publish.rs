//! Publishing.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use clap::Args;
use connector_core::Limits;
use futures::{FutureExt, Sink, StreamExt as _, future::poll_fn, stream::FuturesUnordered};
use pubsub_sink::{PublishMessage, Published, PubsubSink, TopicName};
use tokio::time::Instant;

use crate::{
    Failure,
    flood::FloodServer,
    latencies::Latencies,
    report::{Common, Measured},
    usage::Usage,
};

/// One record in so many is published with a receipt, to see how long it takes.
const SAMPLED: u64 = 1000;

/// Options of `publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    #[command(flatten)]
    pub(crate) common: Common,
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

/// What is published: where to, and under which key.
#[derive(Debug, Clone, Copy)]
struct Record {
    number: u64,
}

impl Publish {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let base = Usage::now()?;
        let (_server, address) = match self.common.endpoint {
            Some(_) => (None, String::new()),
            None => {
                let (child, address) = FloodServer::default().start().await?;
                (Some(child), address)
            }
        };
        let mut sink = self.sink(&address)?;
        let warm = Duration::from_secs_f64(self.common.warm_up);
        let whole = warm + Duration::from_secs_f64(self.common.secs);
        let start = now();
        let mut began = None;
        let mut latencies = Latencies::default();
        let mut receipts = FuturesUnordered::new();
        let (mut number, mut held_max, mut errors) = (0_u64, 0_u64, 0_u64);
        loop {
            poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)).await?;
            if number.is_multiple_of(SAMPLED) {
                while let Some(done) = receipts.next().now_or_never().flatten() {
                    match done {
                        Ok(took) => latencies.add(took),
                        Err(()) => errors += 1,
                    }
                }
                if began.is_none() && start.elapsed() >= warm {
                    began = Some((now(), sink.stats().records_published, Usage::now()?));
                    latencies = Latencies::default();
                }
                if start.elapsed() >= whole {
                    break;
                }
                held_max = held_max.max(sink.stats().in_flight_records);
                let sent = now();
                let receipt = sink.submit(Record { number });
                receipts.push(FutureExt::map(receipt, move |done| match done {
                    Ok(Published::Stored { .. }) => Ok(sent.elapsed()),
                    Ok(_) | Err(_) => Err(()),
                }));
            } else {
                Pin::new(&mut sink).start_send(Record { number })?;
            }
            number += 1;
        }
        let (since, published_before, before) =
            began.ok_or("the warm-up is longer than the run")?;
        let seconds = since.elapsed().as_secs_f64();
        let (messages, after) = (
            sink.stats().records_published - published_before,
            Usage::now()?,
        );
        poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)).await?;
        Measured {
            mode: "publish",
            messages,
            seconds,
            slowest_second: f64::NAN,
            base,
            before,
            after,
            latencies,
            held_max,
            extended_ids: 0,
            suppressed: 0,
            errors,
        }
        .print()
    }

    fn sink(&self, started: &str) -> Result<PubsubSink<Record>, Failure> {
        let payload = Bytes::from(vec![b'x'; self.payload_bytes]);
        let keys = self.ordering_keys as u64;
        let encode = move |record: &Record| {
            let message = PublishMessage::new(payload.clone());
            Ok::<_, Failure>(Some(match keys {
                0 => message,
                keys => message.ordering_key(format!("key-{}", record.number % keys)),
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
        let resolve = move |record: &Record| {
            let index = usize::try_from(record.number).unwrap_or(0) % topics.len();
            Ok::<_, Failure>(topics[index].clone())
        };
        let sink = PubsubSink::builder(encode)
            .resolve(resolve)
            .endpoint(self.common.endpoint_of(started)?)
            .limits(Limits::new(most.max(1000), 256 << 20))
            .batch_messages(self.batch)
            .in_flight(self.in_flight)
            .max_destinations(self.destinations.max(100))
            .message_ordering(self.ordering_keys > 0)
            .build()?;
        Ok(sink)
    }
}

#[expect(clippy::disallowed_methods, reason = "a program may look at the clock")]
fn now() -> Instant {
    Instant::now()
}
