//! Creating tasks.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use clap::Args;
use cloudtasks_sink::{Batch, CloudTasksSink, HttpTask, QueueName, Submitted};
use connector_core::Limits;
use futures::{FutureExt, Sink, StreamExt as _, future::poll_fn, stream::FuturesUnordered};
use tokio::time::Instant;

use crate::{
    Failure,
    flood::FloodServer,
    latencies::Latencies,
    report::{Common, Measured},
    usage::Usage,
};

/// One record in so many is created with a receipt, to see how long it takes.
const SAMPLED: u64 = 100;

/// Options of `create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The queue.
    #[arg(long, default_value = "projects/p/locations/l/queues/q")]
    queue: String,
    /// Bytes of a task's body.
    #[arg(long, default_value_t = 1024)]
    payload_bytes: usize,
    /// Records under way.
    #[arg(long, default_value_t = 1000)]
    in_flight: usize,
    /// Tasks per request; without it each has a request of its own.
    #[arg(long)]
    batch: Option<usize>,
    /// Connections.
    #[arg(long, default_value_t = 1)]
    channels: usize,
    /// Gives every task a name.
    #[arg(long)]
    named: bool,
    /// How long the started server takes for each request, with 100 streams per connection.
    #[arg(long, default_value_t = 0)]
    server_delay_ms: u64,
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let base = Usage::now()?;
        let server = FloodServer {
            delay_ms: self.server_delay_ms,
            streams_per_connection: (self.server_delay_ms > 0).then_some(100),
            ..FloodServer::default()
        };
        let (_server, address) = match self.common.endpoint {
            Some(_) => (None, String::new()),
            None => {
                let (child, address) = server.start().await?;
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
                    began = Some((now(), sink.stats().created, Usage::now()?));
                    latencies = Latencies::default();
                }
                if start.elapsed() >= whole {
                    break;
                }
                held_max = held_max.max(sink.stats().in_flight);
                let sent = now();
                let receipt = sink.submit(number);
                receipts.push(FutureExt::map(receipt, move |done| match done {
                    Ok(Submitted::Created { .. }) => Ok(sent.elapsed()),
                    Ok(_) | Err(_) => Err(()),
                }));
            } else {
                Pin::new(&mut sink).start_send(number)?;
            }
            number += 1;
        }
        let (since, created_before, before) = began.ok_or("the warm-up is longer than the run")?;
        let seconds = since.elapsed().as_secs_f64();
        let (messages, after) = (sink.stats().created - created_before, Usage::now()?);
        poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)).await?;
        Measured {
            mode: "create",
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

    fn sink(&self, started: &str) -> Result<CloudTasksSink<u64>, Failure> {
        let body = Bytes::from(vec![b'x'; self.payload_bytes]);
        let encode = move |_: &u64| {
            let task = HttpTask::post("https://partner.example/orders")?.body(body.clone());
            Ok::<_, Failure>(Some(task))
        };
        let queue: QueueName = self.queue.parse()?;
        let mut builder = CloudTasksSink::builder(encode)
            .queue(queue)
            .endpoint(self.common.endpoint_of(started)?)
            .limits(Limits::new(self.in_flight, 256 << 20))
            .channels(self.channels);
        if let Some(tasks) = self.batch {
            builder = builder.batching(Batch::up_to(tasks));
        }
        if self.named {
            builder = builder.minted_names();
        }
        Ok(builder.build()?)
    }
}

#[expect(clippy::disallowed_methods, reason = "a program may look at the clock")]
fn now() -> Instant {
    Instant::now()
}
