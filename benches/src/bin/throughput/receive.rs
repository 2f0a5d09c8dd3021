//! Reading a subscription under checkpoints.

use std::{num::NonZeroU32, time::Duration};

use clap::Args;
use connector_core::{Checkpoint, Epoch};
use futures::{FutureExt, StreamExt as _, future::poll_fn, stream::FuturesUnordered};
use measure::{Failure, Flags, Latencies, Measured, Usage, now, period};
use pubsub_source::{Endpoint, PubsubSource};
use tokio::time::MissedTickBehavior;

use crate::flood::FloodServer;

/// Options of `receive`.
#[derive(Debug, Args)]
pub(crate) struct Receive {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The subscription.
    #[arg(long, default_value = "projects/demo-project/subscriptions/flood")]
    subscription: String,
    /// Seconds between checkpoints.
    #[arg(long, default_value_t = 1.0, value_parser = period)]
    checkpoint_secs: f64,
    /// The same under another name: acknowledgements are held for so long.
    #[arg(long, value_parser = period, conflicts_with = "checkpoint_secs")]
    hold_secs: Option<f64>,
    /// The source's `outstanding`. Default: the source's own, or what `--hold-secs` at `--rate` needs.
    #[arg(long)]
    outstanding: Option<usize>,
    /// The source's `first_outstanding`. Default: the source's own.
    #[arg(long)]
    first_outstanding: Option<usize>,
    /// Messages per second that the started server sends, or that another one is known to send.
    #[arg(long)]
    rate: Option<NonZeroU32>,
    /// Pull streams.
    #[arg(long, default_value_t = 1)]
    streams: usize,
    /// Bytes of a payload, of the started server.
    #[arg(long, default_value_t = 16, conflicts_with = "endpoint")]
    payload_bytes: usize,
    /// Messages per response, of the started server.
    #[arg(long, default_value_t = 100, conflicts_with = "endpoint")]
    per_response: usize,
}

impl Receive {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let base = Usage::now()?;
        let server = FloodServer {
            payload_bytes: self.payload_bytes,
            per_response: self.per_response,
            rate: self.rate,
            ..FloodServer::default()
        };
        let (_server, address) = server.unless(&self.flags.endpoint).await?;
        let every = Duration::from_secs_f64(self.hold_secs.unwrap_or(self.checkpoint_secs));
        let mut builder = PubsubSource::builder(self.subscription.parse()?)
            .endpoint(Endpoint::emulator(&address)?)
            .streams(self.streams);
        if let Some(outstanding) = self.outstanding.or_else(|| self.needed(every)) {
            builder = builder.outstanding(outstanding);
        }
        if let Some(first) = self.first_outstanding {
            builder = builder.first_outstanding(first);
        }
        let source = builder.build()?;
        self.measure(source, every, base).await
    }

    /// What a hold at a rate needs: as much as comes in three intervals.
    fn needed(&self, every: Duration) -> Option<usize> {
        let (rate, _) = (self.rate?, self.hold_secs?);
        let messages = every.as_secs_f64() * f64::from(rate.get()) * 3.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number of messages that fit into memory"
        )]
        Some(messages as usize)
    }

    async fn measure(
        &self,
        mut source: PubsubSource,
        every: Duration,
        base: Usage,
    ) -> Result<(), Failure> {
        let mut epoch = Epoch::new(0);
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.reset();
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        second.reset();
        let warm = tokio::time::sleep(self.flags.before());
        let end = tokio::time::sleep(self.flags.before() + self.flags.lasting());
        tokio::pin!(warm, end);
        let mut commits = FuturesUnordered::new();
        let mut latencies = Latencies::default();
        let mut began = None;
        let (mut messages, mut held_max, mut at_last_second) = (0_u64, 0_usize, 0_u64);
        let mut slowest: Option<u64> = None;
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                () = &mut warm, if began.is_none() => {
                    began = Some((now(), messages, Usage::now()?, source.stats()));
                    (latencies, at_last_second) = (Latencies::default(), messages);
                    second.reset();
                }
                Some(done) = commits.next() => {
                    let took: Result<Duration, Failure> = done;
                    latencies.add(took?);
                }
                _ = tick.tick() => {
                    epoch = epoch.next();
                    held_max = held_max.max(source.stats().leased);
                    drop(source.snapshot(epoch).await?);
                    let called = now();
                    let commit = source.commit(epoch);
                    commits.push(FutureExt::map(commit, move |done| {
                        done.map_err(Failure::from).map(|_| called.elapsed())
                    }));
                }
                _ = second.tick(), if began.is_some() => {
                    let this = messages - at_last_second;
                    slowest = Some(slowest.map_or(this, |slowest| slowest.min(this)));
                    at_last_second = messages;
                }
                taken = take(&mut source) => {
                    messages += taken?;
                    if messages >= self.flags.enough() {
                        break;
                    }
                }
            }
        }
        let (since, messages_before, before, stats_before) =
            began.ok_or("the warm-up is longer than the run")?;
        let (after, stats) = (Usage::now()?, source.stats());
        Measured {
            mode: "receive",
            messages: messages - messages_before,
            seconds: since.elapsed().as_secs_f64(),
            slowest_second: slowest,
            base,
            before,
            after,
            latencies,
            held_max: held_max as u64,
            extended_ids: stats.extended - stats_before.extended,
            suppressed: stats.redelivered + stats.recognised,
            errors: stats.lapsed + stats.lapsed_in_buffer,
        }
        .print()
    }
}

/// Takes what is there, at most so many that the loop's other branches are not held up.
async fn take(source: &mut PubsubSource) -> Result<u64, Failure> {
    const MOST: u64 = 1000;
    let first = source.next().await.ok_or("the source ended")??;
    std::hint::black_box(&first);
    let mut taken = 1;
    while taken < MOST {
        let next = poll_fn(|cx| match source.poll_next_unpin(cx) {
            std::task::Poll::Ready(next) => std::task::Poll::Ready(Some(next)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await;
        match next {
            None => break,
            Some(message) => {
                std::hint::black_box(&message.ok_or("the source ended")??);
                taken += 1;
            }
        }
    }
    Ok(taken)
}
