//! Creating tasks.

use bytes::Bytes;
use clap::Args;
use cloudtasks_sink::{Batch, CloudTasksSink, Endpoint, HttpTask, QueueName, Submitted};
use connector_core::{Limits, Receipt};
use measure::{Failure, Flags, Usage};

use crate::{
    drive::{Driven, drive},
    flood::FloodServer,
};

/// One record in so many is created with a receipt, to see how long it takes.
const SAMPLED: u64 = 100;

/// Options of `create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) flags: Flags,
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
    #[arg(long, default_value_t = 0, conflicts_with = "endpoint")]
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
        let (_server, address) = server.unless(&self.flags.endpoint).await?;
        drive("create", &self.flags, self.sink(&address)?, SAMPLED, base).await
    }

    fn sink(&self, address: &str) -> Result<CloudTasksSink<u64>, Failure> {
        let body = Bytes::from(vec![b'x'; self.payload_bytes]);
        // As the documentation of tasks says to do for a URL that never changes.
        let task = HttpTask::post("https://partner.example/orders")?;
        let encode = move |_: &u64| Ok::<_, Failure>(Some(task.clone().body(body.clone())));
        let queue: QueueName = self.queue.parse()?;
        let mut builder = CloudTasksSink::builder(encode)
            .queue(queue)
            .endpoint(Endpoint::emulator(address)?)
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

impl Driven for CloudTasksSink<u64> {
    type Outcome = Submitted;

    fn submit(&mut self, record: u64) -> Receipt<Submitted> {
        Self::submit(self, record)
    }

    fn is_done(outcome: &Submitted) -> bool {
        matches!(outcome, Submitted::Created { .. })
    }

    fn done(&self) -> u64 {
        self.stats().created
    }

    fn unanswered(&self) -> u64 {
        self.stats().pending
    }
}
