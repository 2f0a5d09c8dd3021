//! The three connectors, as the plan has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cloudtasks_sink::{Batch, CloudTasksSink, HttpTask, Task};
use connector_core::{BoxError, Budget, Limits, Restored};
use gcp_wire::{Endpoint, QueueName, TopicName};
use pubsub_sink::{PublishMessage, PubsubSink};
use pubsub_source::PubsubSource;
use tokio::time::Instant;

use crate::{
    plan::{Plan, Tasks},
    truth::SUBSCRIPTION,
    world::World,
};

/// Of a name in a queue, after its task is gone.
pub(crate) const NAMES_KEPT: Duration = Duration::from_secs(3_600);

/// The servers' clock, and with it the host's, shows this at first.
pub(crate) fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn wall(started: Instant) -> impl Fn() -> SystemTime + Send + Sync + 'static {
    move || noon() + started.elapsed()
}

pub(crate) fn source(
    world: &World,
    buffer: &Budget,
    restored: Option<Restored<pubsub_source::SourceState>>,
) -> (PubsubSource, pubsub_source::Driver) {
    let plan = &world.plan;
    PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
        .endpoint(Endpoint::in_memory(world.emulator.dialer()))
        .wall_clock(wall(world.started))
        .message_ordering(plan.keys.is_some())
        .saved_deliveries(plan.saved)
        .max_extension(plan.lease)
        .buffer(Limits::items(plan.buffer))
        .budget(buffer.clone())
        .restore(restored)
        .build_with_driver()
        .unwrap()
}

pub(crate) fn publish(
    world: &World,
    budget: &Budget,
    restored: Option<Restored<pubsub_sink::SinkState>>,
) -> (PubsubSink<usize>, pubsub_sink::SinkDriver) {
    let plan = world.plan.clone();
    let topics: Vec<TopicName> = plan.topics().map(|name| name.parse().unwrap()).collect();
    let encode = move |message: &usize| {
        if !Plan::is_published(*message) {
            return Ok(None);
        }
        let copy = PublishMessage::new(message.to_string());
        Ok(Some(match plan.key(*message) {
            Some(key) => copy.ordering_key(format!("k{key}")),
            None => copy,
        }))
    };
    let plan = world.plan.clone();
    let mut builder = PubsubSink::builder(encode)
        .resolve(move |message: &usize| topics.get(plan.topic(*message)).cloned())
        .endpoint(Endpoint::in_memory(world.emulator.dialer()))
        .message_ordering(world.plan.keys.is_some())
        .restore(restored);
    if world.plan.publish_staged {
        builder = builder
            .delivery(pubsub_sink::Delivery::Staged)
            .stage(Limits::items(world.plan.room))
            .identity_attributes("incarnation", "sequence");
    } else {
        builder = builder.budget(budget.clone());
    }
    builder.build_with_driver().unwrap()
}

pub(crate) fn tasks(
    world: &World,
    budget: &Budget,
    restored: Option<Restored<cloudtasks_sink::SinkState>>,
) -> (CloudTasksSink<usize>, cloudtasks_sink::SinkDriver) {
    let plan = world.plan.clone();
    let queues: Vec<QueueName> = plan.queues().map(|name| name.parse().unwrap()).collect();
    let encode = |message: &usize| -> Result<Option<Task>, BoxError> {
        if !Plan::is_task(*message) {
            return Ok(None);
        }
        let task = HttpTask::post("https://partner.example/calls")?;
        Ok(Some(task.body(message.to_string()).into()))
    };
    let mut builder = CloudTasksSink::builder(encode)
        .resolve(move |message: &usize| queues.get(plan.queue(*message)).cloned())
        .endpoint(Endpoint::in_memory(world.emulator.dialer()))
        .wall_clock(wall(world.started))
        .restore(restored);
    match world.plan.tasks {
        Tasks::Unnamed | Tasks::Staged => {}
        Tasks::ByKey | Tasks::StagedByKey => {
            builder = builder.task_id(|message: &usize| message.to_string());
        }
    }
    if world.plan.tasks.staged() {
        builder = builder
            .delivery(cloudtasks_sink::Delivery::Staged {
                name_retention: NAMES_KEPT,
            })
            .stage(Limits::items(world.plan.room))
            .keep_expired();
    } else {
        builder = builder.budget(budget.clone());
    }
    if world.plan.batched {
        builder = builder.batching(Batch::up_to(10));
    }
    builder.build_with_driver().unwrap()
}
