//! Which service answers a call.

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use tokio::runtime::Handle;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service as _;

use crate::cloudtasks::service::{
    CloudTasksServer, CloudTasksService, OperationsServer, OperationsService,
};
use crate::front::Front;
use crate::hub::Hub;
use crate::pubsub::service::{
    PublisherServer, PublisherService, SubscriberServer, SubscriberService,
};

/// Requests up to this size are decoded; the services' own, smaller limits are theirs to enforce.
const DECODED: usize = 64 << 20;

/// The gRPC services of a server.
#[derive(Clone)]
pub(super) struct Services {
    publisher: PublisherServer<PublisherService>,
    subscriber: SubscriberServer<SubscriberService>,
    tasks: Option<CloudTasksServer<CloudTasksService>>,
    operations: Option<OperationsServer<OperationsService>>,
}

impl Services {
    pub(super) fn new(hub: Arc<Hub>, runtime: Handle) -> Self {
        let with_tasks = hub.options().cloud_tasks;
        let front = Front::new(hub, runtime);
        Self {
            publisher: PublisherServer::new(PublisherService::new(front.clone()))
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(DECODED)
                .max_encoding_message_size(usize::MAX),
            subscriber: SubscriberServer::new(SubscriberService::new(front.clone()))
                .accept_compressed(CompressionEncoding::Gzip)
                .max_decoding_message_size(DECODED)
                .max_encoding_message_size(usize::MAX),
            tasks: with_tasks.then(|| {
                CloudTasksServer::new(CloudTasksService::new(front.clone()))
                    .accept_compressed(CompressionEncoding::Gzip)
                    .max_decoding_message_size(DECODED)
            }),
            operations: with_tasks
                .then(|| OperationsServer::new(OperationsService::new(front.clone()))),
        }
    }

    pub(super) async fn call(&self, request: Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let answered = if path.starts_with("/google.pubsub.v1.Publisher/") {
            self.publisher.clone().call(request).await
        } else if path.starts_with("/google.pubsub.v1.Subscriber/") {
            self.subscriber.clone().call(request).await
        } else {
            match (&self.tasks, &self.operations) {
                (Some(tasks), _) if path.starts_with("/google.cloud.tasks.v2.CloudTasks/") => {
                    tasks.clone().call(request).await
                }
                (_, Some(operations)) if path.starts_with("/google.longrunning.Operations/") => {
                    operations.clone().call(request).await
                }
                _ => {
                    let text = format!("Method not found: {}", path.trim_start_matches('/'));
                    return tonic::Status::unimplemented(text).into_http();
                }
            }
        };
        match answered {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("tasks", &self.tasks.is_some())
            .finish_non_exhaustive()
    }
}
