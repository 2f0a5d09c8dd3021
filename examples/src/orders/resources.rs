//! Creates what a run needs on its servers, and deletes it again.

use std::time::Duration;

use gcp_wire::method::{
    CREATE_QUEUE, CREATE_SUBSCRIPTION, CREATE_TOPIC, DELETE_QUEUE, DELETE_SUBSCRIPTION,
    DELETE_TOPIC, LIST_TASKS, Method,
};
use gcp_wire::names::{QueueName, SubscriptionName, TopicName};
use gcp_wire::proto::{pubsub, tasks};
use gcp_wire::{Code, Connection, RpcError};

use super::error::OrdersError;
use super::names::RunNames;
use super::partner::TaskLabel;

/// Calls that create or delete answer within milliseconds; a server that needs longer is not there.
const ADMIN_DEADLINE: Duration = Duration::from_secs(10);

/// The most tasks one listing may carry (the service's limit).
const PAGE: i32 = 1000;

/// The lease of a message that was pulled and not yet acknowledged.
const LEASE_SECONDS: i32 = 20;

/// The servers as the parent process uses them, beside and apart from the pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    pub(crate) pubsub: Connection,
    pub(crate) tasks: Connection,
    pub(crate) names: RunNames,
}

impl Resources {
    /// Creates the topics, the subscriptions and the queues.
    ///
    /// The counting subscriptions are there before the first message: a subscription receives what
    /// is published after it was created.
    pub(crate) async fn create(&self) -> Result<(), OrdersError> {
        let names = &self.names;
        for topic in names.regions.values().chain([&names.orders]) {
            self.create_topic(topic).await?;
        }
        self.create_subscription(&names.subscription, &names.orders)
            .await?;
        for (region, subscription) in &names.counting {
            self.create_subscription(subscription, &names.regions[region])
                .await?;
        }
        for queue in &names.queues {
            self.create_queue(queue).await?;
        }
        Ok(())
    }

    async fn create_topic(&self, topic: &TopicName) -> Result<(), OrdersError> {
        let request = pubsub::Topic {
            name: topic.to_string(),
            ..pubsub::Topic::default()
        };
        admin(
            &self.pubsub,
            &CREATE_TOPIC,
            topic.as_str(),
            topic.as_str(),
            request,
        )
        .await
    }

    async fn create_subscription(
        &self,
        subscription: &SubscriptionName,
        topic: &TopicName,
    ) -> Result<(), OrdersError> {
        let request = pubsub::Subscription {
            name: subscription.to_string(),
            topic: topic.to_string(),
            ack_deadline_seconds: LEASE_SECONDS,
            ..pubsub::Subscription::default()
        };
        let name = subscription.as_str();
        admin(&self.pubsub, &CREATE_SUBSCRIPTION, name, name, request).await
    }

    async fn create_queue(&self, queue: &QueueName) -> Result<(), OrdersError> {
        let parent = queue.parent();
        let request = tasks::CreateQueueRequest {
            parent: parent.clone(),
            queue: Some(tasks::Queue {
                name: queue.to_string(),
                ..tasks::Queue::default()
            }),
        };
        match admin(&self.tasks, &CREATE_QUEUE, &parent, queue.as_str(), request).await {
            // The embedded server was started with them.
            Err(OrdersError::Create { source, .. }) if source.code() == Code::AlreadyExists => {
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// The tasks that the queues still hold, as the dispatcher names them to the partner.
    pub(crate) async fn waiting_tasks(&self) -> Result<Vec<TaskLabel>, RpcError> {
        let mut waiting = Vec::new();
        for queue in &self.names.queues {
            let mut page_token = String::new();
            loop {
                let request = tasks::ListTasksRequest {
                    parent: queue.to_string(),
                    page_size: PAGE,
                    page_token,
                    ..tasks::ListTasksRequest::default()
                };
                let page = self
                    .tasks
                    .call(&LIST_TASKS, queue.as_str(), request, ADMIN_DEADLINE)
                    .await?;
                let ids = page
                    .tasks
                    .iter()
                    .filter_map(|task| task.name.rsplit('/').next());
                waiting.extend(ids.map(|id| TaskLabel::new(queue.id(), id)));
                if page.next_page_token.is_empty() {
                    break;
                }
                page_token = page.next_page_token;
            }
        }
        Ok(waiting)
    }

    /// Deletes what [`create`](Self::create) created. What a server refuses to delete stays there,
    /// under names that no other run uses.
    pub(crate) async fn delete(&self) {
        let names = &self.names;
        let subscriptions = names.counting.values().chain([&names.subscription]);
        for subscription in subscriptions.map(ToString::to_string) {
            let routing = subscription.clone();
            let request = pubsub::DeleteSubscriptionRequest { subscription };
            let call = self
                .pubsub
                .call(&DELETE_SUBSCRIPTION, &routing, request, ADMIN_DEADLINE);
            note(&routing, call.await);
        }
        for topic in names
            .regions
            .values()
            .chain([&names.orders])
            .map(ToString::to_string)
        {
            let routing = topic.clone();
            let request = pubsub::DeleteTopicRequest { topic };
            let call = self
                .pubsub
                .call(&DELETE_TOPIC, &routing, request, ADMIN_DEADLINE);
            note(&routing, call.await);
        }
        for name in names.queues.iter().map(ToString::to_string) {
            let routing = name.clone();
            let request = tasks::DeleteQueueRequest { name };
            let call = self
                .tasks
                .call(&DELETE_QUEUE, &routing, request, ADMIN_DEADLINE);
            note(&routing, call.await);
        }
    }
}

async fn admin<Req, Res>(
    connection: &Connection,
    method: &Method<Req, Res>,
    routing: &str,
    name: &str,
    request: Req,
) -> Result<(), OrdersError>
where
    Req: prost::Message + Clone + 'static,
    Res: prost::Message + Default + 'static,
{
    match connection
        .call(method, routing, request, ADMIN_DEADLINE)
        .await
    {
        Ok(_created) => Ok(()),
        Err(source) => Err(OrdersError::Create {
            name: name.to_owned(),
            source,
        }),
    }
}

fn note(name: &str, outcome: Result<(), RpcError>) {
    if let Err(error) = outcome {
        tracing::warn!(name, %error, "A resource of the run stays on its server.");
    }
}
