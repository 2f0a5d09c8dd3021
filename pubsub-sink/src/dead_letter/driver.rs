//! Publishes the dead letters and tells the desk what became of them.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use connector_core::CheckpointError;
use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use gcp_wire::{
    Connection, Fault, TopicName, method::LIST_TOPIC_SUBSCRIPTIONS,
    proto::pubsub::ListTopicSubscriptionsRequest,
};
use tokio::runtime::Handle;

use super::desk::Desk;
use crate::{SinkDriver, events};

/// The time that the look at the topic's subscriptions may take. Nothing waits for it.
const LOOK_DEADLINE: Duration = Duration::from_secs(30);

/// The future that does a dead-letter queue's work.
///
/// From [`build_with_driver`](super::DeadLetterBuilder::build_with_driver), for hosts that place it
/// themselves; the same holds for it as for [`SinkDriver`]. Dropping it ends the queue: nothing is
/// handled and no flush succeeds from then on.
#[must_use = "a dead-letter queue does nothing while its driver is not polled"]
pub struct DeadLetterDriver(BoxFuture<'static, ()>);

impl DeadLetterDriver {
    pub(super) fn new(
        desk: Arc<Desk>,
        publisher: SinkDriver,
        connection: Connection,
        topic: TopicName,
        instance: Arc<str>,
    ) -> Self {
        let guard = Guard(Arc::clone(&desk));
        let run = async move {
            let look = look(connection, &topic, &instance);
            // The look ends with its deadline, the publisher and the confirmations once the handle
            // is gone.
            futures::join!(publisher, confirmations(&desk, &topic), look);
            drop(guard);
        };
        Self(run.boxed())
    }

    /// Runs on its own. The task is not awaited: however it ends, the guard tells the queue.
    pub(super) fn spawn_on(self, runtime: &Handle) {
        drop(runtime.spawn(self));
    }
}

impl Future for DeadLetterDriver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for DeadLetterDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetterDriver").finish_non_exhaustive()
    }
}

/// Ends the queue with its driver, also when that is only dropped.
struct Guard(Arc<Desk>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end(CheckpointError::driver_gone());
    }
}

/// Takes in what became of each dead letter, until there can be no more.
async fn confirmations(desk: &Desk, topic: &TopicName) {
    let mut awaited = FuturesUnordered::new();
    loop {
        for (id, confirmation) in desk.submitted() {
            awaited.push(async move { (id, confirmation.await) });
        }
        if awaited.is_empty() && desk.is_closed() {
            return;
        }
        tokio::select! {
            biased;
            Some((id, outcome)) = awaited.next(), if !awaited.is_empty() => {
                desk.confirm(topic, id, outcome);
            }
            () = desk.woken() => {}
        }
    }
}

/// Warns when nobody would ever read the dead letters. Best effort: who may publish need not be
/// allowed to look.
async fn look(connection: Connection, topic: &TopicName, instance: &str) {
    let request = ListTopicSubscriptionsRequest {
        topic: topic.to_string(),
        ..ListTopicSubscriptionsRequest::default()
    };
    let answer = connection
        .call(
            &LIST_TOPIC_SUBSCRIPTIONS,
            topic.as_str(),
            request,
            LOOK_DEADLINE,
        )
        .await;
    match answer {
        Ok(found) if found.subscriptions.is_empty() && found.next_page_token.is_empty() => {
            events::dead_letters_unread(instance, topic);
        }
        Ok(_) => {}
        Err(error) if error.fault() == Fault::Missing => {
            events::dead_letters_homeless(instance, topic);
        }
        Err(error) => events::dead_letters_unseen(instance, topic, &error),
    }
}
