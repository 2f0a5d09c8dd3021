//! An embedded server with two queues, and sinks that talk to it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudtasks_sink::{CloudTasksSink, Endpoint, HttpTask, QueueName, SinkBuilder, SinkError};
use connector_core::{Cause, CheckpointError, FailureHandler, Receipt, Rejected, Verdict};
use futures::SinkExt;
use gcp_emulator::cloudtasks::state::CreatedTask;
use gcp_emulator::{Emulator, EmulatorBuilder, Method};

pub(crate) const Q1: &str = "projects/demo/locations/us-central1/queues/q1";
pub(crate) const Q2: &str = "projects/demo/locations/us-central1/queues/q2";

/// Longer than anything the sink does by itself.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) fn queue(name: &str) -> QueueName {
    name.parse().unwrap()
}

/// A record: the id of an order, and the queue it goes to.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) queue: QueueName,
}

pub(crate) fn order(id: impl Into<String>) -> Order {
    Order {
        id: id.into(),
        queue: queue(Q1),
    }
}

pub(crate) fn orders(ids: impl IntoIterator<Item = u32>) -> Vec<Order> {
    ids.into_iter().map(|id| order(id.to_string())).collect()
}

pub(crate) struct World {
    pub(crate) emulator: Emulator,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(EmulatorBuilder) -> EmulatorBuilder) -> Self {
        let builder = Emulator::builder()
            .queue(Q1)
            .queue(Q2)
            .require_routing_header(true);
        Self {
            emulator: change(builder).start(),
        }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    /// A sink whose tasks carry the order's id as their body.
    pub(crate) fn sink(&self) -> SinkBuilder<Order> {
        CloudTasksSink::builder(|order: &Order| {
            Ok(Some(
                HttpTask::post("https://partner.example/orders")?.body(order.id.clone()),
            ))
        })
        .resolve(|order: &Order| order.queue.clone())
        .endpoint(self.endpoint())
    }

    /// A sink whose records are the tasks themselves, all in one queue.
    pub(crate) fn tasks(&self) -> SinkBuilder<HttpTask> {
        CloudTasksSink::builder(|task: &HttpTask| Ok(Some(task.clone())))
            .queue(queue(Q1))
            .endpoint(self.endpoint())
    }

    pub(crate) fn created(&self, queue: &str) -> Vec<Arc<CreatedTask>> {
        self.emulator
            .observe()
            .queue(queue)
            .created
            .iter()
            .map(Arc::clone)
            .collect()
    }

    /// The bodies of the tasks in a queue, sorted.
    pub(crate) fn bodies(&self, queue: &str) -> Vec<String> {
        let mut bodies: Vec<String> = self.created(queue).iter().map(|task| body(task)).collect();
        bodies.sort();
        bodies
    }

    /// How many creates reached the server, refused ones included.
    pub(crate) fn creates(&self) -> u64 {
        self.emulator.observe().count(Method::CreateTask)
    }
}

pub(crate) fn request(task: &CreatedTask) -> gcp_emulator::cloudtasks::proto::HttpRequest {
    use gcp_emulator::cloudtasks::proto::task::MessageType;
    match &task.stored.message_type {
        Some(MessageType::HttpRequest(request)) => request.clone(),
        other => panic!("not an HTTP task: {other:?}"),
    }
}

pub(crate) fn body(task: &CreatedTask) -> String {
    String::from_utf8(request(task).body.to_vec()).unwrap()
}

/// Feeds every record and flushes.
pub(crate) async fn send<R>(
    sink: &mut CloudTasksSink<R>,
    records: impl IntoIterator<Item = R>,
) -> Result<(), SinkError> {
    for record in records {
        sink.feed(record).await?;
    }
    sink.flush().await
}

/// A handler that drops what it is given, and shows it.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Rejected>>>);

impl Kept {
    pub(crate) fn all(&self) -> Vec<Rejected> {
        self.0.lock().unwrap().clone()
    }
}

impl FailureHandler for Kept {
    fn handle(&mut self, rejected: Rejected) -> Receipt<Verdict> {
        self.0.lock().unwrap().push(rejected);
        Receipt::ready(Verdict::Drop)
    }

    fn flush(&mut self) -> Receipt<()> {
        Receipt::ready(())
    }
}

/// A handler that never answers.
pub(crate) struct Silent;

impl FailureHandler for Silent {
    fn handle(&mut self, _rejected: Rejected) -> Receipt<Verdict> {
        Receipt::pending(std::future::pending())
    }

    fn flush(&mut self) -> Receipt<()> {
        Receipt::pending(std::future::pending())
    }
}

/// The whole chain of an error, as a host would print it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

pub(crate) fn cause_of(error: &CheckpointError) -> Cause {
    match error {
        CheckpointError::Closed { cause } => cause.clone(),
        other => panic!("{other}"),
    }
}

/// Counts the lines of a log at INFO and above.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<AtomicUsize>);

impl Lines {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, _event: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}
