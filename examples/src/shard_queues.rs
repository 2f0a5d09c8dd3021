//! Tasks spread over several queues by customer, since one queue dispatches at most 500 a second.
//!
//! [`shard()`] is a hash that never changes: the same customer always has the same queue, over restarts and
//! versions, so a queue can be paused, slowed down or watched for the customers in it. A task is named
//! by its order, so an order that is read again after a crash makes no second task.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use checkpoint_store::FileStore;
use cloudtasks_sink::{CloudTasksSink, HttpTask, QueueName};
use connector_core::{BoxError, shard};
use gcp_wire::Endpoint;
use pubsub_source::{PubsubSource, decode::json};

use crate::copy::{CHECKPOINT_INTERVAL, pump, restore};
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{self, Order, SUBSCRIPTION, Shop};
use crate::tasks_once::body;

/// Creates tasks until it is asked to end.
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
    // Their number is part of the job: with another one most customers have another queue, and what is
    // read again after the change may make a second task there.
    let queues: Result<Vec<QueueName>, _> = shop::queues().map(|queue| queue.parse()).collect();
    let queues = queues?;
    let mut store = FileStore::open(directory).await?;
    let (epoch, source, sink) = restore(&mut store).await?;
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse()?)
        .endpoint(endpoint.clone())
        .restore(source)
        .build()?
        .decode(json::<Order>());
    let mut sink = CloudTasksSink::builder(|order: &Order| {
        let task = HttpTask::post("https://partner.example/orders")?;
        Ok(Some(task.segment(order.id.to_string()).json(order)?))
    })
    .resolve(move |order: &Order| queues[shard(&order.customer, queues.len())].clone())
    .task_id(|order: &Order| order.id.to_string())
    .allow_hosts(["partner.example"])
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
    let created = |count| {
        move |seen: &gcp_emulator::Observation| {
            shop::queues()
                .map(|queue| seen.queue(&queue).tasks)
                .sum::<u64>()
                >= count
        }
    };
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().to_owned());
        move |end: Asked| job(endpoint, directory, end)
    };

    shop.sell(0..300)?;
    let half = shop.wait("the first tasks are there", created(150));
    process(start(), async { half.await.map(|()| End::Killed) }).await?;

    shop.sell(300..600)?;
    let all = shop.wait("a task for each order is there", created(600));
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let seen = shop.emulator().observe();
    let (mut tasks, mut used, mut orders) = (0, 0, BTreeSet::new());
    let mut queues_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for queue in shop::queues() {
        let record = seen.queue(&queue);
        tasks += record.created.len();
        used += usize::from(!record.created.is_empty());
        for task in &record.created {
            let order: Order = serde_json::from_slice(&body(&task.sent)?)?;
            orders.insert(order.id);
            queues_of
                .entry(order.customer)
                .or_default()
                .insert(queue.clone());
        }
    }
    Ok(Figures::of([
        ("orders", 600),
        ("tasks", tasks),
        ("orders with a task", orders.len()),
        ("queues used", used),
        ("customers", queues_of.len()),
        (
            "customers in more than one queue",
            queues_of.values().filter(|queues| queues.len() > 1).count(),
        ),
        ("not acknowledged", shop.left()),
    ]))
}
