//! A topic per record: each order goes to the topic of its region, in one sink.
//!
//! A closure names the topic of each record. A topic that does not exist yet is created, so that a new
//! region needs no deployment; what names no possible topic goes to a topic for dead letters, and holds
//! up nobody.

use std::path::PathBuf;

use checkpoint_store::FileStore;
use connector_core::BoxError;
use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_wire::Endpoint;
use pubsub_sink::{PublishMessage, PubsubDeadLetterQueue, PubsubSink, TopicName};
use pubsub_source::{PubsubSource, decode::json};

use crate::copy::{CHECKPOINT_INTERVAL, pump, restore};
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{self, ORDERS, Order, PROJECT, SUBSCRIPTION, Shop};

/// Where orders go that cannot go anywhere else. It has to exist.
pub const REJECTED: &str = "projects/shop/topics/rejected";

/// The topic of a region.
///
/// # Errors
///
/// When no topic can have that name: then the order is rejected, and not the job.
pub fn topic_of(region: &str) -> Result<TopicName, pubsub_sink::NameError> {
    TopicName::new(PROJECT, &format!("orders-{region}"))
}

/// Distributes orders until it is asked to end.
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
        .endpoint(endpoint.clone())
        .restore(source)
        .build()?
        // A message that is no order ends the job; `decode_failure` says otherwise.
        .decode(json::<Order>());
    let rejected = PubsubDeadLetterQueue::builder(REJECTED.parse()?)
        .endpoint(endpoint.clone())
        .build()?;
    let mut sink = PubsubSink::builder(|order: &Order| Ok(Some(PublishMessage::json(order)?)))
        .resolve(|order: &Order| topic_of(&order.region))
        .on_rejected(rejected)
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

/// Kills the job in the middle, starts it again, and counts. One order in the middle has a region that
/// no topic can be named after.
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
    shop.emulator().create_topic(REJECTED)?;
    // A topic without a subscription keeps nothing: dead letters would be gone.
    shop.emulator().create_subscription(
        "projects/shop/subscriptions/rejected",
        REJECTED,
        |_| {},
    )?;
    let topics: Result<Vec<_>, _> = ["eu", "us", "asia"].into_iter().map(topic_of).collect();
    let topics: Vec<String> = topics?.iter().map(ToString::to_string).collect();
    let arrived = |count| {
        let topics = topics.clone();
        move |seen: &gcp_emulator::Observation| {
            topics
                .iter()
                .map(|topic| shop::distinct(seen, topic))
                .sum::<usize>()
                >= count
                && seen.topic(REJECTED).published >= 1
        }
    };
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().to_owned());
        move |end: Asked| job(endpoint, directory, end)
    };

    let mut nowhere = Order::numbered(600);
    nowhere.region = "middle of nowhere?".to_owned();
    let data = serde_json::to_vec(&nowhere)?.into();
    shop.emulator().publish(
        ORDERS,
        vec![PubsubMessage {
            data,
            ..PubsubMessage::default()
        }],
    )?;
    shop.sell(0..300)?;
    let half = shop.wait("the first orders arrived", arrived(150));
    process(start(), async { half.await.map(|()| End::Killed) }).await?;

    shop.sell(300..600)?;
    let all = shop.wait("all orders arrived", arrived(600));
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let (mut arrived, mut strayed) = ([0; 3], 0);
    for ((topic, region), arrived) in topics.iter().zip(["eu", "us", "asia"]).zip(&mut arrived) {
        let orders = shop.orders_in(topic)?;
        let at_home = orders
            .keys()
            .filter(|id| Order::numbered(**id).region == region);
        *arrived = at_home.count();
        strayed += orders.len() - *arrived;
    }
    let seen = shop.emulator().observe();
    let letters = &seen.topic(REJECTED).messages;
    Ok(Figures::of([
        ("orders-eu", arrived[0]),
        ("orders-us", arrived[1]),
        ("orders-asia", arrived[2]),
        ("in a wrong topic", strayed),
        // At least one: it may be rejected once more after the crash.
        ("dead letters", letters.len()),
        ("not acknowledged", shop.left()),
    ]))
}
