//! A job on the engine, and the scene around it.

use std::path::PathBuf;
use std::time::Duration;

use cloudtasks_sink::{CloudTasksSink, HttpTask};
use connector_core::BoxError;
use gcp_wire::Endpoint;
use pubsub_sink::{Delivery, PublishMessage, PubsubSink};
use pubsub_source::{Message, PubsubSource};

use super::Engine;
use crate::copy::CHECKPOINT_INTERVAL;
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{self, Order, QUEUE, SUBSCRIPTION, Shop};

/// Where the job of the scene publishes.
pub const COPIES: &str = "projects/shop/topics/copies";

/// A job on the engine: a subscription in, a topic and a task queue out, both with the commit.
///
/// # Errors
///
/// What [`Engine::run`] answers, and settings or states that are refused.
///
/// # Cancel safety
///
/// Dropping the future is a crash: what was not saved comes again.
pub async fn job(
    endpoint: Endpoint,
    directory: PathBuf,
    end: impl Future<Output = ()> + Send,
) -> Result<(), BoxError> {
    let mut engine = Engine::open(directory, CHECKPOINT_INTERVAL).await?;
    let orders = PubsubSource::builder(SUBSCRIPTION.parse()?)
        .endpoint(endpoint.clone())
        .restore(engine.restored(SUBSCRIPTION)?)
        .build()?;
    let copies =
        PubsubSink::builder(|order: &Message| Ok(Some(PublishMessage::new(order.data().clone()))))
            .topic(COPIES.parse()?)
            .delivery(Delivery::Staged)
            .endpoint(endpoint.clone())
            .instance("copies")
            .restore(engine.restored("copies")?)
            .build()?;
    let calls = CloudTasksSink::builder(|message: &Message| {
        let order: Order = serde_json::from_slice(message.data())?;
        let task = HttpTask::post("https://partner.example/orders")?;
        Ok(Some(task.segment(order.id.to_string()).json(&order)?))
    })
    .queue(QUEUE.parse()?)
    .delivery(cloudtasks_sink::Delivery::Staged {
        // How long the queue surely remembers a name: measure yours, and rely on no more than an hour.
        name_retention: Duration::from_secs(3_600),
    })
    .endpoint(endpoint)
    .instance("calls")
    .restore(engine.restored("calls")?)
    .build()?;
    let engine = engine.input(orders).output(copies).output(calls);
    engine.run(end).await
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
    let arrived = |count: u32| {
        move |seen: &gcp_emulator::Observation| {
            let copies = shop::distinct(seen, COPIES);
            copies >= count as usize && seen.queue(QUEUE).tasks >= u64::from(count)
        }
    };
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().to_owned());
        move |end: Asked| job(endpoint, directory, end)
    };

    shop.sell(0..300)?;
    let half = shop.wait("the first orders arrived", arrived(100));
    process(start(), async { half.await.map(|()| End::Killed) }).await?;
    let before_crash = shop.orders_in(COPIES)?.len();

    shop.sell(300..600)?;
    let all = shop.wait("all orders arrived", arrived(600));
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let (copies, seen) = (shop.orders_in(COPIES)?, shop.emulator().observe());
    Ok(Figures::of([
        ("orders", 600),
        ("copied before the crash", before_crash),
        ("copied", copies.len()),
        ("tasks", usize::try_from(seen.queue(QUEUE).tasks)?),
        ("not acknowledged", shop.left()),
    ]))
}
