//! The three connectors of the job.

use std::sync::Arc;
use std::time::Duration;

use cloudtasks_sink::{Batch, CloudTasksSink, Delivery, HttpTask};
use connector_core::{BoxError, Restored, shard};
use pubsub_sink::{PublishMessage, PubsubSink};
use pubsub_source::PubsubSource;

use super::super::order::{EnrichedOrder, PathSegment};
use super::{PipelineError, PipelineSpec};

/// What the states are saved under. Not the subscription's name, which is the default of a source:
/// each run has resources of its own, and a state directory may serve one run after the other.
const INSTANCE: &str = "orders";

/// How long what a killed pipeline held stays out of its successor's reach. Shorter than the
/// default of 60 s: somebody is watching.
const LEASE: Duration = Duration::from_secs(20);

/// How long a queue remembers the name of a task that is over: the shorter of the figures that Google
/// publishes, and what the embedded server does.
const NAME_RETENTION: Duration = Duration::from_secs(3_600);

pub(super) fn source(
    spec: &PipelineSpec,
    restored: Option<Restored<pubsub_source::SourceState>>,
) -> Result<PubsubSource, PipelineError> {
    PubsubSource::builder(spec.subscription.clone())
        .endpoint(spec.pubsub.endpoint()?)
        .credentials(spec.pubsub.credentials())
        .instance(INSTANCE)
        .max_extension(LEASE)
        .restore(restored)
        .build()
        .map_err(PipelineError::Source)
}

/// Publishes each order to the topic of its region.
pub(super) fn publish(
    spec: &PipelineSpec,
    restored: Option<Restored<pubsub_sink::SinkState>>,
) -> Result<PubsubSink<Arc<EnrichedOrder>>, PipelineError> {
    let regions = spec.regions.clone();
    PubsubSink::builder(|order: &Arc<EnrichedOrder>| Ok(Some(PublishMessage::json(&**order)?)))
        .resolve(move |order: &Arc<EnrichedOrder>| regions.get(&order.order.region).cloned())
        .endpoint(spec.pubsub.endpoint()?)
        .credentials(spec.pubsub.credentials())
        .instance(INSTANCE)
        .restore(restored)
        .build()
        .map_err(PipelineError::PublishSetup)
}

/// Creates a task per routed order, spread over the queues by customer.
///
/// Named by the event id: an order that is read again after a crash meets its own task. Created once,
/// a task has a name of its own, which its checkpoint keeps. A rejected order ends the pipeline, which is the default, since nothing here may be lost without a word.
pub(super) fn tasks(
    spec: &PipelineSpec,
    restored: Option<Restored<cloudtasks_sink::SinkState>>,
) -> Result<CloudTasksSink<Arc<EnrichedOrder>>, PipelineError> {
    let queues = spec.queues.clone();
    let mut builder = CloudTasksSink::builder(|order: &Arc<EnrichedOrder>| call(order))
        .resolve(move |order: &Arc<EnrichedOrder>| {
            queues[shard(&order.order.customer, queues.len())].clone()
        })
        .allow_hosts(spec.partner_hosts.iter().cloned())
        .endpoint(spec.tasks.endpoint()?)
        .credentials(spec.tasks.credentials())
        .instance(INSTANCE)
        .restore(restored);
    builder = if spec.exactly_once {
        builder.delivery(Delivery::Staged {
            name_retention: NAME_RETENTION,
        })
    } else {
        builder.task_id(|order: &Arc<EnrichedOrder>| order.order.event_id.clone())
    };
    if spec.batch {
        builder = builder.batching(Batch::up_to(100));
    }
    builder.build().map_err(PipelineError::TaskSetup)
}

/// The partner's call for an order; none for a customer without a route.
fn call(enriched: &EnrichedOrder) -> Result<Option<HttpTask>, BoxError> {
    let Some(route) = &enriched.route else {
        return Ok(None);
    };
    let order = &enriched.order;
    let url = format!(
        "{}/orders/{}",
        route.endpoint,
        PathSegment::parse(&order.order_id)?
    );
    let mut task = HttpTask::post(url)?
        .header("Content-Type", "application/json")
        .header("X-Tenant", route.tenant.as_str())
        .json(enriched)?;
    if let Some(at) = order.dispatch_at {
        task = task.schedule_at(at);
    }
    Ok(Some(task))
}
