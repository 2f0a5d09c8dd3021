//! Totals per customer and hour, with a state of its own that is saved in the same checkpoint.
//!
//! The event time is the publish time. A window's total is published five seconds after its end, on
//! the clock of the newest publish time that was seen. What is later still makes one more total of its
//! window, with the attribute `late`: whoever reads the totals adds them up.
//!
//! [`Windowed`] stands in front of the sink and is a sink itself: a checkpoint that covers it saves the
//! open windows beside what the sink has staged, so a restart goes on in mid-window as if nothing had
//! happened. The loop is that of every job, [`copy::pump`](crate::copy::pump).

mod scene;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use checkpoint_store::FileStore;
use connector_core::host::{Admission, Room};
use connector_core::{BoxError, Checkpoint, Committed, Epoch, Receipt, Restored};
use futures::{Sink, SinkExt};
use gcp_wire::Endpoint;
use pubsub_sink::{Delivery, PublishMessage, PubsubSink, SinkError, SinkState};
use pubsub_source::{Message, PubsubSource};
use serde::{Deserialize, Serialize};

use crate::copy::{pump, restore};
use crate::shop::{Order, SUBSCRIPTION};

pub use scene::run;

/// Where the totals go.
pub const TOTALS: &str = "projects/shop/topics/totals";

const HOUR: u64 = 3_600_000;

/// How long after its end a window waits for messages that are delivered out of turn. Pub/Sub promises
/// nothing about it: after hours of downtime the backlog comes in any order, and what is late then
/// costs one more message and no error.
const LATENESS: u64 = 5_000;

/// A crash delays totals by as much, and repeats none: they are staged.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(120);

/// What one customer spent in one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Total {
    /// When the window began, in milliseconds since the Unix epoch.
    #[serde(skip)]
    pub window_start: u64,
    /// Who.
    pub customer: String,
    /// How many orders.
    pub orders: u32,
    /// Their prices.
    pub cents: u64,
    /// Whether the window had been given out before.
    #[serde(skip)]
    pub late: bool,
}

/// What a customer's orders in one window come to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Sum {
    orders: u32,
    cents: u64,
    late: bool,
}

/// The open windows: what a checkpoint saves.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Windows {
    /// By beginning of the window and by customer.
    open: BTreeMap<(u64, String), Sum>,
    /// Windows that end here or before were given out.
    closed: u64,
    /// The newest publish time seen. It goes on while messages come and at no other time: an idle
    /// topic leaves its last window open, since a wall clock could not tell an idle topic from a
    /// backlog that has not been read yet.
    newest: u64,
}

impl Windows {
    /// Adds an order to its window.
    fn add(&mut self, published: u64, order: Order) {
        let start = published - published % HOUR;
        let sum = self.open.entry((start, order.customer)).or_default();
        sum.orders += 1;
        sum.cents += order.cents;
        sum.late = start + HOUR <= self.closed;
        self.newest = self.newest.max(published);
    }

    /// Whether the time of the oldest open window has come.
    fn is_due(&self) -> bool {
        let oldest = self.open.first_key_value();
        oldest.is_some_and(|((start, _), _)| start + HOUR + LATENESS <= self.newest)
    }

    /// The next total whose time has come.
    fn take_due(&mut self) -> Option<Total> {
        if !self.is_due() {
            return None;
        }
        let ((window_start, customer), sum) = self.open.pop_first()?;
        // The customers of a window are given out one by one; it is closed after the last of them.
        let next = self.open.first_key_value();
        if next.is_none_or(|((start, _), _)| *start != window_start) {
            self.closed = self.closed.max(window_start + HOUR);
        }
        let Sum {
            orders,
            cents,
            late,
        } = sum;
        Some(Total {
            window_start,
            customer,
            orders,
            cents,
            late,
        })
    }
}

/// Adds up orders in front of a sink for totals.
#[derive(Debug)]
pub struct Windowed<K> {
    windows: Windows,
    sink: K,
}

impl<K> Windowed<K> {
    /// Goes on with these windows.
    pub fn new(windows: Windows, sink: K) -> Self {
        Self { windows, sink }
    }
}

/// Why totals cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TotalsError {
    /// The sink ended.
    #[error("the sink of the totals ended; what was not saved comes again")]
    Sink(#[from] SinkError),
    /// A message is no order.
    #[error("message {id} is no order; it was not acknowledged and comes again")]
    Order {
        /// Which message.
        id: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A message has no publish time.
    #[error("message {id} has no publish time; it was not acknowledged and comes again")]
    NoTime {
        /// Which message.
        id: String,
    },
}

impl<K: Sink<Total, Error = SinkError> + Admission<Error = SinkError> + Unpin> Admission
    for Windowed<K>
{
    type Error = TotalsError;

    /// Gives out the totals that are due before anything else comes in. One order may make many of them
    /// due, and each needs room of its own; until it has that, a total is part of the state.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<Room, TotalsError>> {
        loop {
            let room = ready!(self.sink.poll_room(cx))?;
            if room == Room::CheckpointWanted || !self.windows.is_due() {
                return Poll::Ready(Ok(room));
            }
            if let Some(total) = self.windows.take_due() {
                self.sink.start_send_unpin(total)?;
            }
        }
    }
}

impl<K: Sink<Total, Error = SinkError> + Admission<Error = SinkError> + Unpin> Sink<Message>
    for Windowed<K>
{
    type Error = TotalsError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TotalsError>> {
        self.poll_room(cx).map_ok(drop)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), TotalsError> {
        let published = message
            .publish_millis()
            .and_then(|millis| u64::try_from(millis).ok());
        let published = published.ok_or_else(|| TotalsError::NoTime {
            id: message.id().to_owned(),
        })?;
        let order =
            serde_json::from_slice(message.data()).map_err(|source| TotalsError::Order {
                id: message.id().to_owned(),
                source,
            })?;
        self.windows.add(published, order);
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TotalsError>> {
        self.sink.poll_flush_unpin(cx).map_err(TotalsError::Sink)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TotalsError>> {
        self.sink.poll_close_unpin(cx).map_err(TotalsError::Sink)
    }
}

impl<K: Checkpoint> Checkpoint for Windowed<K> {
    type State = (Windows, K::State);

    fn snapshot(&mut self, epoch: Epoch) -> Receipt<Self::State> {
        // Copied now: what is added after this belongs to the next epoch.
        let windows = self.windows.clone();
        self.sink.snapshot(epoch).map(|sink| (windows, sink))
    }

    fn commit(&mut self, epoch: Epoch) -> Receipt<Committed> {
        self.sink.commit(epoch)
    }

    fn abort(&mut self, epoch: Epoch) {
        // The windows need nothing: they are what they are, and the next epoch saves them.
        self.sink.abort(epoch);
    }
}

/// Adds up until it is asked to end.
///
/// # Errors
///
/// The first error of a connector, of the store, or of a message.
///
/// # Cancel safety
///
/// Dropping the future is a crash: what was not saved comes again.
pub async fn job(
    endpoint: Endpoint,
    directory: PathBuf,
    end: impl Future<Output = ()> + Send,
) -> Result<(), BoxError> {
    let mut store = FileStore::open(directory).await?;
    let (epoch, source, totals) = restore::<_, (Windows, SinkState)>(&mut store).await?;
    let (windows, sink) = totals.map(Restored::unzip).unzip();
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse()?)
        .endpoint(endpoint.clone())
        .restore(source)
        .build()?;
    let sink = PubsubSink::builder(|total: &Total| Ok(Some(message(total)?)))
        .topic(TOTALS.parse()?)
        // Published with the commit: a crash repeats no total, and gives none out that the restored
        // windows would make again.
        .delivery(Delivery::Staged)
        .endpoint(endpoint)
        .restore(sink)
        .build()?;
    let windows = windows.map_or_else(Windows::default, |windows| windows.state);
    let mut totals = Windowed::new(windows, sink);
    pump(
        &mut source,
        &mut totals,
        &mut store,
        epoch,
        CHECKPOINT_INTERVAL,
        end,
    )
    .await?;
    totals.close().await?;
    source.close().await?;
    store.close().await;
    Ok(())
}

fn message(total: &Total) -> Result<PublishMessage, serde_json::Error> {
    let start = SystemTime::UNIX_EPOCH + Duration::from_millis(total.window_start);
    let start = humantime::format_rfc3339_seconds(start).to_string();
    let message = PublishMessage::json(total)?.attribute("window-start", start);
    Ok(if total.late {
        message.attribute("late", "true")
    } else {
        message
    })
}
