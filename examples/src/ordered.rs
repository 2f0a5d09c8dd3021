//! Order per key, from the subscription to the topic.
//!
//! Three things keep it: the subscription has message ordering enabled, which is fixed at its creation;
//! the source is told so; the sink publishes one key's messages in turn. In between the host hands each
//! record on before it takes the next. After a crash a key goes back: it begins again somewhere before
//! where it was, and goes on from there without a gap. A staged sink would not repeat it.
//!
//! It costs throughput: 1 MB/s per key at the service. Most needs for order are needs for a time, and
//! `hourly_totals` does without.

use std::collections::BTreeMap;
use std::path::PathBuf;

use checkpoint_store::FileStore;
use connector_core::BoxError;
use gcp_emulator::FaultPlan;
use gcp_wire::Endpoint;
use pubsub_sink::{PublishMessage, PubsubSink};
use pubsub_source::{Message, PubsubSource};

use crate::copy::{CHECKPOINT_INTERVAL, pump, restore};
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{self, Order, SUBSCRIPTION, Shop};

/// Where the orders go.
pub const IN_ORDER: &str = "projects/shop/topics/orders-in-order";

/// Copies in order until it is asked to end.
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
    end: impl Future<Output = ()> + Send,
) -> Result<(), BoxError> {
    let mut store = FileStore::open(directory).await?;
    let (epoch, source, sink) = restore(&mut store).await?;
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse()?)
        .message_ordering(true)
        .endpoint(endpoint.clone())
        .restore(source)
        .build()?;
    let mut sink = PubsubSink::builder(|message: &Message| {
        // Messages without a key are in no order.
        let key = message.ordering_key().unwrap_or_default();
        Ok(Some(
            PublishMessage::new(message.data().clone()).ordering_key(key),
        ))
    })
    .message_ordering(true)
    .topic(IN_ORDER.parse()?)
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

/// Kills the job in the middle, starts it again, and looks at the order of what arrived.
///
/// # Errors
///
/// What kept the scene from being played.
///
/// # Cancel safety
///
/// Dropping the future ends the job; the server and the checkpoints go with it.
pub async fn run() -> Result<Figures, BoxError> {
    let (shop, state) = (
        Shop::open_with(FaultPlan::new(), true)?,
        tempfile::tempdir()?,
    );
    let arrived = |count| move |seen: &_| shop::distinct(seen, IN_ORDER) >= count;
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().to_owned());
        move |end: Asked| job(endpoint, directory, end)
    };

    shop.sell(0..300)?;
    let half = shop.wait("the first orders arrived", arrived(150));
    process(start(), async { half.await.map(|()| End::Killed) }).await?;

    shop.sell(300..600)?;
    let all = shop.wait("all orders arrived", arrived(600));
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let mut keys: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for message in &shop.emulator().observe().topic(IN_ORDER).messages {
        let order: Order = serde_json::from_slice(&message.data)?;
        keys.entry(message.ordering_key.clone())
            .or_default()
            .push(order.id);
    }
    let copies = shop.orders_in(IN_ORDER)?;
    Ok(Figures::of([
        ("orders", 600),
        ("arrived", copies.len()),
        ("arrived more than once", shop::repeated(&copies)),
        ("keys", keys.len()),
        ("gaps", keys.values().map(|orders| gaps(orders)).sum()),
        ("not acknowledged", shop.left()),
    ]))
}

/// How often an order follows of which the one before has not arrived. The orders of a customer are ten
/// apart; going back is allowed, leaving out is not.
fn gaps(orders: &[u32]) -> usize {
    let first = orders.first().filter(|first| **first >= 10);
    let skipped = orders.windows(2).filter(|pair| pair[1] > pair[0] + 10);
    skipped.count() + usize::from(first.is_some())
}
