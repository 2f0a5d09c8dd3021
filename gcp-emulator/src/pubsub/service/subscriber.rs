//! The subscriber service.

use std::time::Duration;

use prost::Message;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::pulling::{self, Pulling};
use super::refused;
use crate::call::Body;
use crate::fault::Decision;
use crate::front::{self, Front};
use crate::hub::{Core, Hub};
use crate::method::Method;
use crate::pubsub::proto::{
    AcknowledgeRequest, CreateSnapshotRequest, DeleteSnapshotRequest, DeleteSubscriptionRequest,
    GetSnapshotRequest, GetSubscriptionRequest, ListSnapshotsRequest, ListSnapshotsResponse,
    ListSubscriptionsRequest, ListSubscriptionsResponse, ModifyAckDeadlineRequest,
    ModifyPushConfigRequest, PullRequest, PullResponse, ReceivedMessage, SeekRequest, SeekResponse,
    Snapshot, StreamingPullRequest, Subscription, UpdateSnapshotRequest, UpdateSubscriptionRequest,
    seek_request::Target,
};
use crate::pubsub::state::Refusal;
use crate::time::Time;

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
    include!(concat!(env!("OUT_DIR"), "/google.pubsub.v1.Subscriber.rs"));
}

use generated::subscriber_server::Subscriber;

/// How long a unary pull waits for a first message: users of the service see about a minute.
const PULL_WAIT: Duration = Duration::from_secs(60);

/// Serves `google.pubsub.v1.Subscriber`.
#[derive(Debug, Clone)]
pub(crate) struct SubscriberService {
    front: Front,
}

impl SubscriberService {
    pub(crate) const fn new(front: Front) -> Self {
        Self { front }
    }
}

#[async_trait]
impl Subscriber for SubscriberService {
    type StreamingPullStream = Pulling;

    async fn create_subscription(
        &self,
        request: Request<Subscription>,
    ) -> Result<Response<Subscription>, Status> {
        let describe = |wanted: &Subscription| Body::CreateSubscription(Box::new(wanted.clone()));
        self.front
            .unary(
                Method::CreateSubscription,
                request,
                describe,
                |core, now, wanted| {
                    core.pubsub
                        .create_subscription(now, wanted)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn get_subscription(
        &self,
        request: Request<GetSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let describe = |request: &GetSubscriptionRequest| Body::Named(request.subscription.clone());
        self.front
            .unary(
                Method::GetSubscription,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .subscription(now, &request.subscription)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn update_subscription(
        &self,
        request: Request<UpdateSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let describe = |request: &UpdateSubscriptionRequest| {
            let name = request
                .subscription
                .as_ref()
                .map(|wanted| wanted.name.clone());
            Body::Named(name.unwrap_or_default())
        };
        self.front
            .unary(
                Method::UpdateSubscription,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .update_subscription(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn list_subscriptions(
        &self,
        request: Request<ListSubscriptionsRequest>,
    ) -> Result<Response<ListSubscriptionsResponse>, Status> {
        let describe = |request: &ListSubscriptionsRequest| Body::Named(request.project.clone());
        self.front
            .unary(
                Method::ListSubscriptions,
                request,
                describe,
                |core, _, request| {
                    let ListSubscriptionsRequest {
                        project,
                        page_size,
                        page_token,
                    } = request;
                    let (subscriptions, next_page_token) = core
                        .pubsub
                        .list_subscriptions(&project, page_size, &page_token)
                        .map_err(|refusal| refused(&refusal))?;
                    Ok(ListSubscriptionsResponse {
                        subscriptions,
                        next_page_token,
                    })
                },
            )
            .await
    }

    async fn delete_subscription(
        &self,
        request: Request<DeleteSubscriptionRequest>,
    ) -> Result<Response<()>, Status> {
        let describe =
            |request: &DeleteSubscriptionRequest| Body::Named(request.subscription.clone());
        self.front
            .unary(
                Method::DeleteSubscription,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .delete_subscription(now, &request.subscription)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn modify_ack_deadline(
        &self,
        request: Request<ModifyAckDeadlineRequest>,
    ) -> Result<Response<()>, Status> {
        let describe =
            |request: &ModifyAckDeadlineRequest| Body::ModifyAckDeadline(request.clone());
        self.front
            .unary(
                Method::ModifyAckDeadline,
                request,
                describe,
                |core, now, request| {
                    let ModifyAckDeadlineRequest {
                        subscription,
                        ack_ids,
                        ack_deadline_seconds,
                    } = request;
                    core.pubsub
                        .modify_ack_deadline(now, &subscription, &ack_ids, ack_deadline_seconds)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn acknowledge(
        &self,
        request: Request<AcknowledgeRequest>,
    ) -> Result<Response<()>, Status> {
        let describe = |request: &AcknowledgeRequest| Body::Acknowledge(request.clone());
        self.front
            .unary(
                Method::Acknowledge,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .acknowledge(now, &request.subscription, &request.ack_ids)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullResponse>, Status> {
        let docket = front::docket(&request);
        let envelope = front::envelope(&request);
        let request = request.into_inner();
        let size = request.encoded_len();
        let call = self
            .front
            .arrive(Method::Pull, envelope, size, Body::Pull(request.clone()))?;
        let hub = self.front.hub();
        if let Decision::Meet(fault) = hub.faults().decide(&call) {
            // A pull under a fault does not wait for messages: it takes what is there.
            let hub = std::sync::Arc::clone(hub);
            let act = move || {
                let once = hub.with(|core, now| pull_once(&hub, core, now, &request));
                once.map(|received_messages| PullResponse { received_messages })
            };
            return self
                .front
                .meet(fault, &docket, act)
                .await
                .map(Response::new);
        }
        let received_messages = hub
            .wait_for(PULL_WAIT, |core, now| {
                match pull_once(hub, core, now, &request) {
                    Ok(none) if none.is_empty() && !returns_immediately(&request) => None,
                    answer => Some(answer),
                }
            })
            .await
            .unwrap_or_else(|| Ok(Vec::new()))?;
        Ok(Response::new(PullResponse { received_messages }))
    }

    async fn streaming_pull(
        &self,
        request: Request<Streaming<StreamingPullRequest>>,
    ) -> Result<Response<Pulling>, Status> {
        pulling::open(&self.front, request).await.map(Response::new)
    }

    async fn modify_push_config(
        &self,
        request: Request<ModifyPushConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let describe =
            |request: &ModifyPushConfigRequest| Body::Named(request.subscription.clone());
        self.front
            .unary(
                Method::ModifyPushConfig,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .modify_push_config(
                            now,
                            &request.subscription,
                            request.push_config.as_ref(),
                        )
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn get_snapshot(
        &self,
        request: Request<GetSnapshotRequest>,
    ) -> Result<Response<Snapshot>, Status> {
        let describe = |request: &GetSnapshotRequest| Body::Named(request.snapshot.clone());
        self.front
            .unary(
                Method::GetSnapshot,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .snapshot(now, &request.snapshot)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        let describe = |request: &ListSnapshotsRequest| Body::Named(request.project.clone());
        self.front
            .unary(
                Method::ListSnapshots,
                request,
                describe,
                |core, now, request| {
                    let ListSnapshotsRequest {
                        project,
                        page_size,
                        page_token,
                    } = request;
                    let (snapshots, next_page_token) = core
                        .pubsub
                        .list_snapshots(now, &project, page_size, &page_token)
                        .map_err(|refusal| refused(&refusal))?;
                    Ok(ListSnapshotsResponse {
                        snapshots,
                        next_page_token,
                    })
                },
            )
            .await
    }

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Result<Response<Snapshot>, Status> {
        let describe = |request: &CreateSnapshotRequest| Body::Named(request.name.clone());
        self.front
            .unary(
                Method::CreateSnapshot,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .create_snapshot(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn update_snapshot(
        &self,
        request: Request<UpdateSnapshotRequest>,
    ) -> Result<Response<Snapshot>, Status> {
        let describe = |request: &UpdateSnapshotRequest| {
            let name = request.snapshot.as_ref().map(|wanted| wanted.name.clone());
            Body::Named(name.unwrap_or_default())
        };
        self.front
            .unary(
                Method::UpdateSnapshot,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .update_snapshot(now, request)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<()>, Status> {
        let describe = |request: &DeleteSnapshotRequest| Body::Named(request.snapshot.clone());
        self.front
            .unary(
                Method::DeleteSnapshot,
                request,
                describe,
                |core, now, request| {
                    core.pubsub
                        .delete_snapshot(now, &request.snapshot)
                        .map_err(|refusal| refused(&refusal))
                },
            )
            .await
    }

    async fn seek(&self, request: Request<SeekRequest>) -> Result<Response<SeekResponse>, Status> {
        let describe = |request: &SeekRequest| Body::Seek(request.clone());
        self.front
            .unary(Method::Seek, request, describe, |core, now, request| {
                let SeekRequest {
                    subscription,
                    target,
                } = request;
                let pubsub = &mut core.pubsub;
                match target {
                    Some(Target::Time(time)) => {
                        pubsub.seek_to_time(now, &subscription, Time::from_timestamp(&time))
                    }
                    Some(Target::Snapshot(name)) => {
                        pubsub.seek_to_snapshot(now, &subscription, &name)
                    }
                    None => Err(Refusal::NoSeekTarget),
                }
                .map_err(|refusal| refused(&refusal))?;
                Ok(SeekResponse {})
            })
            .await
    }
}

/// The deprecated wish of old clients not to wait.
#[expect(
    deprecated,
    reason = "old clients still send it, and the service still honours it"
)]
const fn returns_immediately(request: &PullRequest) -> bool {
    request.return_immediately
}

fn pull_once(
    hub: &Hub,
    core: &mut Core,
    now: Time,
    request: &PullRequest,
) -> Result<Vec<ReceivedMessage>, Status> {
    let messages = core
        .pubsub
        .pull(now, &request.subscription, request.max_messages)
        .map_err(|refusal| refused(&refusal))?;
    pulling::plan_redeliveries(hub, core, now, &request.subscription, &messages);
    Ok(messages)
}
