//! The publisher service.

use tonic::{Request, Response, Status, async_trait};

use super::refused;
use crate::call::Body;
use crate::front::Front;
use crate::method::Method;
use crate::pubsub::proto::{
    DeleteTopicRequest, DetachSubscriptionRequest, DetachSubscriptionResponse, GetTopicRequest,
    ListTopicSnapshotsRequest, ListTopicSnapshotsResponse, ListTopicSubscriptionsRequest,
    ListTopicSubscriptionsResponse, ListTopicsRequest, ListTopicsResponse, PublishRequest,
    PublishResponse, Topic, UpdateTopicRequest,
};

/// Server glue made by the build script.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::restriction
)]
pub(super) mod generated {
    include!(concat!(env!("OUT_DIR"), "/google.pubsub.v1.Publisher.rs"));
}

use generated::publisher_server::Publisher;

/// Serves `google.pubsub.v1.Publisher`.
#[derive(Debug, Clone)]
pub(crate) struct PublisherService {
    front: Front,
}

impl PublisherService {
    pub(crate) const fn new(front: Front) -> Self {
        Self { front }
    }
}

#[async_trait]
impl Publisher for PublisherService {
    async fn create_topic(&self, request: Request<Topic>) -> Result<Response<Topic>, Status> {
        let describe = |topic: &Topic| Body::CreateTopic(Box::new(topic.clone()));
        self.front
            .unary(
                Method::CreateTopic,
                request,
                describe,
                |core, now, topic| {
                    core.pubsub
                        .create_topic(now, topic)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn update_topic(
        &self,
        request: Request<UpdateTopicRequest>,
    ) -> Result<Response<Topic>, Status> {
        let describe = |request: &UpdateTopicRequest| {
            Body::Named(
                request
                    .topic
                    .as_ref()
                    .map(|topic| topic.name.clone())
                    .unwrap_or_default(),
            )
        };
        self.front
            .unary(
                Method::UpdateTopic,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .update_topic(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn publish(
        &self,
        request: Request<PublishRequest>,
    ) -> Result<Response<PublishResponse>, Status> {
        let describe = |request: &PublishRequest| Body::Publish(request.clone());
        self.front
            .unary(Method::Publish, request, describe, |core, now, request| {
                let PublishRequest { topic, messages } = request;
                let message_ids = core
                    .pubsub
                    .publish(now, &topic, messages)
                    .map_err(|refusal| refused(&refusal))?;
                Ok(PublishResponse { message_ids })
            })
            .await
    }

    async fn get_topic(
        &self,
        request: Request<GetTopicRequest>,
    ) -> Result<Response<Topic>, Status> {
        let describe = |request: &GetTopicRequest| Body::Named(request.topic.clone());
        self.front
            .unary(Method::GetTopic, request, describe, |core, _, request| {
                core.pubsub
                    .topic(&request.topic)
                    .map_err(|refusal| refused(&refusal))
            })
            .await
    }

    async fn list_topics(
        &self,
        request: Request<ListTopicsRequest>,
    ) -> Result<Response<ListTopicsResponse>, Status> {
        let describe = |request: &ListTopicsRequest| Body::Named(request.project.clone());
        self.front
            .unary(Method::ListTopics, request, describe, |core, _, request| {
                let ListTopicsRequest {
                    project,
                    page_size,
                    page_token,
                } = request;
                let (topics, next_page_token) = core
                    .pubsub
                    .list_topics(&project, page_size, &page_token)
                    .map_err(|refusal| refused(&refusal))?;
                Ok(ListTopicsResponse {
                    topics,
                    next_page_token,
                })
            })
            .await
    }

    async fn list_topic_subscriptions(
        &self,
        request: Request<ListTopicSubscriptionsRequest>,
    ) -> Result<Response<ListTopicSubscriptionsResponse>, Status> {
        let describe = |request: &ListTopicSubscriptionsRequest| Body::Named(request.topic.clone());
        self.front
            .unary(
                Method::ListTopicSubscriptions,
                request,
                describe,
                |core, _, request| {
                    let ListTopicSubscriptionsRequest {
                        topic,
                        page_size,
                        page_token,
                    } = request;
                    let (subscriptions, next_page_token) = core
                        .pubsub
                        .list_topic_subscriptions(&topic, page_size, &page_token)
                        .map_err(|refusal| refused(&refusal))?;
                    Ok(ListTopicSubscriptionsResponse {
                        subscriptions,
                        next_page_token,
                    })
                },
            )
            .await
    }

    async fn list_topic_snapshots(
        &self,
        request: Request<ListTopicSnapshotsRequest>,
    ) -> Result<Response<ListTopicSnapshotsResponse>, Status> {
        let describe = |request: &ListTopicSnapshotsRequest| Body::Named(request.topic.clone());
        self.front
            .unary(
                Method::ListTopicSnapshots,
                request,
                describe,
                |core, now, request| {
                    let ListTopicSnapshotsRequest {
                        topic,
                        page_size,
                        page_token,
                    } = request;
                    let (snapshots, next_page_token) = core
                        .pubsub
                        .list_topic_snapshots(now, &topic, page_size, &page_token)
                        .map_err(|refusal| refused(&refusal))?;
                    Ok(ListTopicSnapshotsResponse {
                        snapshots,
                        next_page_token,
                    })
                },
            )
            .await
    }

    async fn delete_topic(
        &self,
        request: Request<DeleteTopicRequest>,
    ) -> Result<Response<()>, Status> {
        let describe = |request: &DeleteTopicRequest| Body::Named(request.topic.clone());
        self.front
            .unary(
                Method::DeleteTopic,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .delete_topic(now, &request.topic)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn detach_subscription(
        &self,
        request: Request<DetachSubscriptionRequest>,
    ) -> Result<Response<DetachSubscriptionResponse>, Status> {
        let describe =
            |request: &DetachSubscriptionRequest| Body::Named(request.subscription.clone());
        self.front
            .unary(
                Method::DetachSubscription,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .detach_subscription(now, &request.subscription)
                        .map_err(|refusal| refused(&refusal))?;
                    Ok(DetachSubscriptionResponse {})
                },
            )
            .await
    }
}
