//! A job that begins at a moment of the past, and does so once.
//!
//! Yesterday's job had a mistake from some moment on. What it has acknowledged is still retained, so the
//! repaired job has its subscription sought back to that moment and reads everything since once more.
//!
//! `prepare` seeks, and the readers cannot: where to is recorded before the seek and that it is done
//! after it, so a job that crashes goes on from its checkpoint and does not begin again. A seek moves
//! every consumer of the subscription: the job has one to itself.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use checkpoint_store::FileStore;
use connector_core::BoxError;
use gcp_emulator::Method;
use gcp_wire::Endpoint;
use pubsub_sink::{PublishMessage, PubsubSink};
use pubsub_source::{Message, SplitPlan, StartPosition, prepare};

use crate::copy::{self, CHECKPOINT_INTERVAL, pump, restore};
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::replicas::StartFile;
use crate::shop::{self, ORDERS, SUBSCRIPTION, Shop};

/// Where the repaired job publishes.
pub const REPAIRED: &str = "projects/shop/topics/repaired";

/// Reads what was published after `from`, and goes on until it is asked to end.
///
/// # Errors
///
/// The first error of a connector or of the store.
///
/// # Cancel safety
///
/// Dropping the future is a crash: what was not saved comes again.
pub async fn job(
    endpoint: Endpoint,
    directory: PathBuf,
    from: SystemTime,
    end: impl Future<Output = ()> + Send,
) -> Result<(), BoxError> {
    // Once per start of the job, before any reader. The record has a store of its own.
    let plan = SplitPlan::new([SUBSCRIPTION.parse()?], 1)?;
    let mut record = StartFile::new(FileStore::open(directory.join("start")).await?);
    let prepared = prepare(&plan)
        .endpoint(endpoint.clone())
        .start(StartPosition::Timestamp(from))
        .run(&mut record)
        .await?;

    let mut store = FileStore::open(directory.join("checkpoints")).await?;
    let (epoch, source, sink) = restore(&mut store).await?;
    let reader = prepared
        .reader(0, 1)?
        .ok_or("the plan has nothing for its only reader")?;
    let mut source = reader.endpoint(endpoint.clone()).restore(source).build()?;
    let mut sink =
        PubsubSink::builder(|order: &Message| Ok(Some(PublishMessage::new(order.data().clone()))))
            .topic(REPAIRED.parse()?)
            .endpoint(endpoint)
            .restore(sink)
            .build()?;
    pump(
        &mut source,
        &mut sink,
        &mut store,
        epoch,
        CHECKPOINT_INTERVAL,
        end,
    )
    .await?;
    sink.close().await?;
    source.close().await?;
    store.close().await;
    Ok(())
}

/// Lets a first job acknowledge everything, begins again in the middle of it with a second one, and
/// kills that one on its way.
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
    shop.sell(0..300)?;
    // Publish times have whole milliseconds, and a message of the moment itself is not read again.
    let messages = shop.emulator().observe();
    let last = messages
        .topic(ORDERS)
        .messages
        .back()
        .and_then(|last| last.publish_time);
    let last = last.ok_or("nothing was published")?;
    let from = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(last.seconds)?);
    let from = from + Duration::from_nanos(u64::try_from(last.nanos)?);
    tokio::time::sleep(Duration::from_millis(5)).await;
    shop.sell(300..600)?;

    let (endpoint, directory) = (shop.endpoint(), state.path().join("yesterday"));
    let done = shop.wait("yesterday's job has acknowledged all", |seen| {
        seen.subscription(SUBSCRIPTION).acks >= 600
    });
    let yesterday = move |end: Asked| copy::job(endpoint, directory, end);
    process(yesterday, async { done.await.map(|()| End::Asked) }).await?;

    let repaired = |count| move |seen: &_| shop::distinct(seen, REPAIRED) >= count;
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().join("today"));
        move |end: Asked| job(endpoint, directory, from, end)
    };
    let half = shop.wait("half is repaired", repaired(150));
    process(start(), async { half.await.map(|()| End::Killed) }).await?;
    shop.sell(600..700)?;
    let all = shop.wait("all is repaired", repaired(400));
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let repaired = shop.orders_in(REPAIRED)?;
    Ok(Figures::of([
        ("orders", 700),
        ("published since", 400),
        ("repaired", repaired.len()),
        ("of before", repaired.keys().filter(|id| **id < 300).count()),
        ("starts", 2),
        (
            "seeks",
            usize::try_from(shop.emulator().observe().count(Method::Seek))?,
        ),
        ("not acknowledged", shop.left()),
    ]))
}
