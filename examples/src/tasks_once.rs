//! Each order becomes one task, whatever crashes: tasks are staged, and created with the commit.
//!
//! A staged task is part of the checkpoint, under a random name of its own. It is created only when that
//! checkpoint is durable; and whatever is uncertain after a crash or a lost answer is asked for again
//! under the same name, which the service refuses to create twice.
//!
//! What it takes of the host is in [`copy::pump`](crate::copy::pump): each state is saved, both marks
//! are written, the newest state is restored. *Dispatched* is a task at least once all the same: the
//! target should know a call again, here by the order's number in the path.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use checkpoint_store::FileStore;
use cloudtasks_sink::{CloudTasksSink, Delivery, HttpTask};
use connector_core::BoxError;
use gcp_emulator::{Code, Fault, FaultPlan, Method, Rule};
use gcp_wire::Endpoint;
use pubsub_source::{PubsubSource, decode::json};

use crate::copy::{CHECKPOINT_INTERVAL, pump, restore};
use crate::figures::Figures;
use crate::process::{Asked, End, process};
use crate::shop::{Order, QUEUE, SUBSCRIPTION, Shop};

/// How long the queue surely remembers the name of a task that is over. Measure it for your queues, or
/// rely on no more than an hour: what is still owed later than that is kept aside for you.
const NAME_RETENTION: Duration = Duration::from_secs(3_600);

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
    .queue(QUEUE.parse()?)
    .delivery(Delivery::Staged {
        name_retention: NAME_RETENTION,
    })
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

/// Kills the job between the first task of a commit and the last, starts it again, and counts. On the
/// way the answers to some creations are lost after the task was stored.
///
/// # Errors
///
/// What kept the scene from being played.
///
/// # Cancel safety
///
/// Dropping the future ends the job; the server and the checkpoints go with it.
pub async fn run() -> Result<Figures, BoxError> {
    let lost = Fault::answer(Code::Unavailable, "the answer is lost").after_effect();
    let never = Fault::Never.after_effect();
    let plan = FaultPlan::new()
        .rule(Rule::on(Method::CreateTask).skip(20).times(5).then(lost))
        // Stored, and not answered when the process dies.
        .rule(Rule::on(Method::CreateTask).skip(40).times(40).then(never));
    let (shop, state) = (Shop::open_with(plan, false)?, tempfile::tempdir()?);
    let start = || {
        let (endpoint, directory) = (shop.endpoint(), state.path().to_owned());
        move |end: Asked| job(endpoint, directory, end)
    };

    shop.sell(0..200)?;
    let some = shop.wait("the first tasks are there", |seen| {
        seen.queue(QUEUE).tasks >= 100
    });
    process(start(), async { some.await.map(|()| End::Killed) }).await?;

    shop.sell(200..300)?;
    let all = shop.wait("a task for each order is there", |seen| {
        seen.queue(QUEUE).tasks >= 300
    });
    process(start(), async { all.await.map(|()| End::Asked) }).await?;

    let queue = shop.emulator().observe().queue(QUEUE);
    let mut tasks: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for task in &queue.created {
        *tasks.entry(body(&task.sent)?).or_default() += 1;
    }
    Ok(Figures::of([
        ("orders", 300),
        ("tasks", usize::try_from(queue.tasks)?),
        ("orders with a task", tasks.len()),
        (
            "orders with more than one",
            tasks.values().filter(|count| **count > 1).count(),
        ),
        (
            "asked for once more, and refused",
            usize::try_from(queue.taken)?,
        ),
        ("not acknowledged", shop.left()),
    ]))
}

/// The order in a task.
pub(crate) fn body(task: &gcp_emulator::cloudtasks::proto::Task) -> Result<Vec<u8>, BoxError> {
    use gcp_emulator::cloudtasks::proto::task::MessageType;
    match &task.message_type {
        Some(MessageType::HttpRequest(request)) => Ok(request.body.to_vec()),
        Some(MessageType::AppEngineHttpRequest(_)) | None => Err("a task without a call".into()),
    }
}
