//! What the world does beside the host: messages come, and tasks are run.

use std::time::Duration;

use gcp_emulator::pubsub::proto::PubsubMessage;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{truth::SUBSCRIPTION, world::World};

const TOPIC: &str = "projects/demo/topics/orders";

impl World {
    pub(crate) fn set_up(&self) {
        self.emulator.create_topic(TOPIC).unwrap();
        let (ordered, once) = (self.plan.keys.is_some(), self.plan.exactly_once);
        self.emulator
            .create_subscription(SUBSCRIPTION, TOPIC, |settings| {
                settings.ack_deadline_seconds = 10;
                settings.enable_message_ordering = ordered;
                settings.enable_exactly_once_delivery = once;
            })
            .unwrap();
        for topic in self.plan.topics() {
            self.emulator.create_topic(&topic).unwrap();
        }
        for queue in self.plan.queues() {
            self.emulator.create_queue(&queue).unwrap();
        }
    }

    /// Publishes all messages, at any time while there is load.
    pub(crate) async fn publish_all(&self) {
        let mut times: Vec<Duration> = (0..self.plan.messages)
            .map(|_| {
                let most = u64::try_from(self.plan.loaded.as_millis()).unwrap();
                self.chance().millis(0..most)
            })
            .collect();
        times.sort_unstable();
        let started = Instant::now();
        for (message, at) in times.into_iter().enumerate() {
            sleep_until(started + at).await;
            let key = self.plan.key(message);
            let sent = PubsubMessage {
                data: message.to_string().into(),
                ordering_key: key.map_or_else(String::new, |key| format!("k{key}")),
                ..PubsubMessage::default()
            };
            // Known before anybody can be given it.
            let mut truth = self.truth();
            let ids = self.emulator.publish(TOPIC, vec![sent]).unwrap();
            truth.sent(ids[0].clone(), message);
        }
    }

    /// Runs tasks a while after they were created: then their names are kept for an hour.
    pub(crate) async fn run_tasks(&self) {
        loop {
            sleep(Duration::from_secs(5)).await;
            let seen = self.emulator.observe();
            for queue in self.plan.queues() {
                for task in &seen.queue(&queue).created {
                    if self.chance().one_in(4) && self.emulator.finish_task(&task.name) {
                        self.count("a task was run");
                    }
                }
            }
        }
    }
}
