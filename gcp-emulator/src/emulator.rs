//! The running servers.

mod builder;
mod listener;

pub use builder::EmulatorBuilder;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::task::AbortHandle;

use crate::cloudtasks::proto::Queue;
use crate::cloudtasks::state::TaskRefusal;
use crate::connection::Connections;
use crate::fault::Faults;
use crate::hub::Hub;
use crate::observation::Observation;
use crate::pubsub::proto::{PubsubMessage, Subscription, Topic};
use crate::pubsub::state::Refusal;
use crate::time::Time;
use listener::Gate;

/// The bytes an in-memory connection buffers in each direction, as much as a kernel socket would.
const PIPE: usize = 256 * 1024;

/// Running Pub/Sub and Cloud Tasks servers, reachable in memory and, if asked for, over TCP.
///
/// Dropping the handle stops the servers and closes every connection; clients see that as a
/// connection that broke.
///
/// ```
/// use gcp_emulator::Emulator;
/// use gcp_emulator::pubsub::proto::PubsubMessage;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let emulator = Emulator::builder().start();
/// emulator.create_topic("projects/demo/topics/orders")?;
/// emulator.create_subscription(
///     "projects/demo/subscriptions/orders",
///     "projects/demo/topics/orders",
///     |subscription| subscription.ack_deadline_seconds = 20,
/// )?;
/// let message = PubsubMessage { data: "hello".into(), ..Default::default() };
/// let ids = emulator.publish("projects/demo/topics/orders", vec![message])?;
///
/// let seen = emulator.observe();
/// assert_eq!(ids.len(), 1);
/// assert_eq!(seen.subscription("projects/demo/subscriptions/orders").backlog, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Emulator {
    hub: Arc<Hub>,
    connections: Arc<Connections>,
    gate: Gate,
    local_addr: Option<SocketAddr>,
    tasks: Vec<AbortHandle>,
}

impl Emulator {
    /// Settings of a server that is about to start.
    pub fn builder() -> EmulatorBuilder {
        EmulatorBuilder::default()
    }

    /// A function that opens a connection in memory, for clients that take a connector.
    ///
    /// It fails with [`ConnectionRefused`](io::ErrorKind::ConnectionRefused) while connections are
    /// refused and after the server stopped.
    pub fn dialer(
        &self,
    ) -> impl Fn() -> io::Result<DuplexStream> + Send + Sync + Clone + 'static + use<> {
        let connections = Arc::clone(&self.connections);
        let gate = self.gate.clone();
        move || {
            if gate.is_closed() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (client, server) = tokio::io::duplex(PIPE);
            connections.serve(server)?;
            Ok(client)
        }
    }

    /// The address the server listens on; `None` when it is reachable in memory only.
    #[must_use]
    pub const fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// What time it is for the server.
    #[must_use]
    pub fn now(&self) -> Time {
        self.hub.now()
    }

    /// Creates a topic with default settings.
    ///
    /// # Errors
    ///
    /// What the service would answer: a malformed name, or a topic that exists.
    pub fn create_topic(&self, name: &str) -> Result<(), Refusal> {
        let topic = Topic {
            name: name.to_owned(),
            ..Topic::default()
        };
        self.hub
            .with(|core, now| core.pubsub.create_topic(now, topic))
            .map(drop)
    }

    /// Creates a subscription; `settings` may change what is sent.
    ///
    /// # Errors
    ///
    /// What the service would answer, for example a missing topic.
    pub fn create_subscription(
        &self,
        name: &str,
        topic: &str,
        settings: impl FnOnce(&mut Subscription),
    ) -> Result<(), Refusal> {
        let mut subscription = Subscription {
            name: name.to_owned(),
            topic: topic.to_owned(),
            ..Subscription::default()
        };
        settings(&mut subscription);
        self.hub
            .with(|core, now| core.pubsub.create_subscription(now, subscription))
            .map(drop)
    }

    /// Publishes messages in one request and returns their ids, in order.
    ///
    /// # Errors
    ///
    /// What the service would answer, for example more than 1,000 messages.
    pub fn publish(
        &self,
        topic: &str,
        messages: Vec<PubsubMessage>,
    ) -> Result<Vec<String>, Refusal> {
        self.hub
            .with(|core, now| core.pubsub.publish(now, topic, messages))
    }

    /// Creates a task queue with default settings.
    ///
    /// # Errors
    ///
    /// What the service would answer: a malformed name, or a queue that exists.
    pub fn create_queue(&self, name: &str) -> Result<(), TaskRefusal> {
        self.hub
            .with(|core, now| core.tasks.create_queue_named(now, name))
    }

    /// Changes a task queue as its operator could: rates, overrides of its tasks' targets, and the
    /// state, which the service alone sets to DISABLED.
    ///
    /// # Errors
    ///
    /// What the service would answer: a queue that does not exist, or a setting that is not allowed.
    pub fn change_queue(
        &self,
        name: &str,
        change: impl FnOnce(&mut Queue),
    ) -> Result<(), TaskRefusal> {
        self.hub
            .with(|core, _| core.tasks.change_queue(name, change))
            .map(drop)
    }

    /// Deletes a subscription; its open streams end with NOT_FOUND.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn delete_subscription(&self, name: &str) -> Result<(), Refusal> {
        self.hub
            .with(|core, now| core.pubsub.delete_subscription(now, name))
    }

    /// Makes a delivered, unacknowledged message available again though its lease lives, as the
    /// service sometimes does. True when there was such a message.
    pub fn redeliver_early(&self, subscription: &str, message_id: &str) -> bool {
        self.hub.with(|core, now| {
            core.pubsub
                .handle_early_redelivery(now, subscription, message_id)
        })
    }

    /// Lets a task be over, as if it had been dispatched: its name stays taken for a while. True
    /// when there was such a task.
    pub fn finish_task(&self, name: &str) -> bool {
        self.hub
            .with(|core, now| core.tasks.remove_task(now, name).is_ok())
    }

    /// What the servers saw so far.
    #[must_use]
    pub fn observe(&self) -> Observation {
        self.hub.observe()
    }

    /// Waits until `holds` is true of what the servers saw, at most `limit`. True when it held.
    ///
    /// The condition is looked at after each change; it must not call back into this handle.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait_until(
        &self,
        mut holds: impl FnMut(&Observation) -> bool + Send,
        limit: Duration,
    ) -> bool {
        self.hub.wait_until(&mut holds, limit).await
    }

    /// The rules in force, to add and remove some while the server runs.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        self.hub.faults()
    }

    /// Cuts every open connection without a farewell. New ones are welcome.
    pub fn drop_connections(&self) {
        self.connections.sever_all();
    }

    /// Lets every open connection stay open and carry nothing any more, as a firewall does that
    /// forgot them. New ones are welcome.
    pub fn silence_connections(&self) {
        self.connections.silence_all();
    }

    /// Sends GOAWAY with NO_ERROR on every open connection: calls under way may finish there.
    pub fn retire_connections(&self) {
        self.connections.retire_all();
    }

    /// Refuses new connections (or stops doing so): over TCP nothing listens meanwhile.
    ///
    /// # Cancel safety
    ///
    /// The change is asked for at once; the future only waits until the listener is there or gone.
    ///
    /// # Errors
    ///
    /// When the address can not be listened on again.
    pub async fn refuse_connections(&self, refuse: bool) -> io::Result<()> {
        self.gate.set(refuse).await
    }

    /// Stops the servers and closes every connection. The same as dropping the handle.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.connections.stop();
    }
}
