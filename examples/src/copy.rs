//! The smallest job: every message of a subscription goes to another topic, and none is lost.
//!
//! [`job`] sets up the two connectors. [`pump`] is the loop between them, and that of the other small
//! examples: whatever is connected, the loop is the same. [`run`] shows that a killed job loses
//! nothing.

use std::error::Error;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::host::{Admission, Settling, checkpoint_wanted};
use connector_core::{
    BoxError, Checkpoint, CheckpointError, Epoch, Next, Restored, next_when, settle,
};
use futures::stream::FuturesUnordered;
use futures::{Sink, SinkExt, Stream, StreamExt};
use gcp_wire::Endpoint;
use pubsub_sink::{PublishMessage, PubsubSink};
use pubsub_source::{Message, PubsubSource};
use serde::de::DeserializeOwned;
use tokio::time::{MissedTickBehavior, interval};

use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{self, SUBSCRIPTION, Shop};

/// Where the copies go.
pub const COPIES: &str = "projects/shop/topics/copies";

/// How often the small examples take a checkpoint. Ten seconds would do, but somebody is watching. What a
/// crash repeats is at most what came in since the last one.
pub const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(50);

/// Copies until it is asked to end.
///
/// # Errors
///
/// The first error of a connector or of the store. Everything transient was retried by then; start
/// again, from the same directory.
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
    let (epoch, source, sink) = restore(&mut store).await?;
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse()?)
        .endpoint(endpoint.clone())
        .restore(source)
        .build()?;
    let mut sink = PubsubSink::builder(|message: &Message| Ok(Some(copy(message))))
        .topic(COPIES.parse()?)
        // Messages with a key keep it, and the order they had when they were read.
        .message_ordering(true)
        .endpoint(endpoint)
        .restore(sink)
        .build()?;
    let every = CHECKPOINT_INTERVAL;
    pump(&mut source, &mut sink, &mut store, epoch, every, end).await?;
    sink.close().await?;
    source.close().await?;
    store.close().await;
    Ok(())
}

/// The same message, but for its id and publish time, which the service gives.
fn copy(message: &Message) -> PublishMessage {
    let copy = PublishMessage::new(message.data().clone());
    let copy = copy.ordering_key(message.ordering_key().unwrap_or_default());
    let attributes = message.attributes().iter();
    attributes.fold(copy, |copy, (key, value)| copy.attribute(key, value))
}

/// What the newest checkpoint holds: its epoch, and a state for each of two connectors.
///
/// # Errors
///
/// What the store answers, or a checkpoint that is of another job.
///
/// # Cancel safety
///
/// Nothing is lost.
pub async fn restore<A: DeserializeOwned, B: DeserializeOwned>(
    store: &mut dyn CheckpointStore,
) -> Result<(Epoch, Option<Restored<A>>, Option<Restored<B>>), BoxError> {
    let Some(newest) = store.newest().await? else {
        return Ok((Epoch::default(), None, None));
    };
    // The connectors commit by themselves what they restore.
    store.committing(newest.epoch).await?;
    let states = newest.try_map(|bytes| postcard::from_bytes(&bytes))?;
    let (epoch, (a, b)) = (states.epoch, states.unzip());
    Ok((epoch, Some(a), Some(b)))
}

/// The host's loop: hands on each record, takes a checkpoint every so often, commits it, and ends in
/// good order when it is asked to.
///
/// # Errors
///
/// The first error of a connector or of the store.
///
/// # Cancel safety
///
/// Dropping the future is a crash: what was not saved comes again.
pub async fn pump<S, R, E, K>(
    source: &mut S,
    sink: &mut K,
    store: &mut dyn CheckpointStore,
    mut epoch: Epoch,
    every: Duration,
    end: impl Future<Output = ()> + Send,
) -> Result<(), BoxError>
where
    S: Stream<Item = Result<R, E>> + Checkpoint + Unpin + Send,
    R: Send,
    E: Error + Send + Sync + 'static,
    K: Sink<R> + Admission + Checkpoint + Unpin + Send,
    <K as Sink<R>>::Error: Error + Send + Sync + 'static,
{
    let mut commits = FuturesUnordered::new();
    let mut tick = interval(every);
    // After a slow checkpoint the next one comes an interval later, not at once.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut end = pin!(end);
    let mut last = false;
    while !last {
        let cut = tokio::select! { biased;
            Some(done) = commits.next() => { settled(store, done).await?; false }
            () = &mut end => { last = true; true }
            _ = tick.tick() => true,
            // Room in the sink first, then a record: none is in the host's hands at a cut.
            step = next_when(&mut *source, &mut *sink) => match step? {
                Next::Record(record) => { sink.start_send_unpin(record)?; false }
                Next::CheckpointWanted => true,
                Next::End => { last = true; true }
            },
        };
        if cut {
            epoch = epoch.next();
            let settling = checkpoint(source, sink, store, epoch).await?;
            commits.push(settling);
        }
    }
    while !commits.is_empty() {
        tokio::select! { biased;
            Some(done) = commits.next() => settled(store, done).await?,
            // A sink that keeps something aside needs one more state that names it.
            wanted = checkpoint_wanted(&mut *sink) => {
                wanted?;
                epoch = epoch.next();
                let settling = checkpoint(source, sink, store, epoch).await?;
            commits.push(settling);
            }
        }
    }
    Ok(())
}

/// Makes one checkpoint durable and begins to commit it.
async fn checkpoint<S: Checkpoint + Send, K: Checkpoint + Send>(
    source: &mut S,
    sink: &mut K,
    store: &mut dyn CheckpointStore,
    epoch: Epoch,
) -> Result<Settling, BoxError> {
    // Both cuts before the first wait: no record may come between them.
    let (from, to) = (source.snapshot(epoch), sink.snapshot(epoch));
    let state = postcard::to_stdvec(&(from.await?, to.await?))?;
    store.save(epoch, state.into()).await?;
    store.committing(epoch).await?;
    // Not awaited here: the loop goes on reading meanwhile.
    let receipts = [sink.commit(epoch), source.commit(epoch)];
    Ok(settle(epoch, receipts))
}

/// Writes the mark of an epoch when all of it is settled.
async fn settled(
    store: &mut dyn CheckpointStore,
    done: Result<Epoch, CheckpointError>,
) -> Result<(), BoxError> {
    match done {
        Ok(epoch) => store.settled(epoch).await?,
        // Still being sent: the epoch stays without its mark, and a restart sends it again.
        Err(error @ CheckpointError::Unconfirmed { .. }) => {
            tracing::warn!(%error, "A commit is slow to be confirmed.");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Kills the job in the middle, starts it again, and counts.
///
/// # Errors
///
/// What kept the scene from being played.
///
/// # Cancel safety
///
/// Dropping the future ends the job; the server and the checkpoints go with it.
pub async fn run() -> Result<Figures, BoxError> {
    let (shop, state) = (Shop::open()?, tempfile::tempdir()?);
    let copied = |count| move |seen: &_| shop::distinct(seen, COPIES) >= count;
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().to_owned());
        move |end: Asked| job(endpoint, directory, end)
    };

    shop.sell(0..300)?;
    process(start(), async {
        shop.wait("half is copied", copied(150)).await?;
        Ok(End::Killed)
    })
    .await?;
    let before_crash = shop.orders_in(COPIES)?.len();

    shop.sell(300..600)?;
    process(start(), async {
        shop.wait("all is copied", copied(600)).await?;
        Ok(End::Asked)
    })
    .await?;

    let copies = shop.orders_in(COPIES)?;
    Ok(Figures::of([
        ("orders", 600),
        ("copied before the crash", before_crash),
        ("copied", copies.len()),
        ("lost", 600 - copies.len()),
        // What was published after the last checkpoint before the crash.
        ("copied more than once", shop::repeated(&copies)),
        ("not acknowledged", shop.left()),
    ]))
}
