//! Real clients over in-memory connections.

use std::error::Error;
use std::time::Duration;

use futures::Stream;
use gcp_emulator::cloudtasks::proto::{
    BatchCreateTasksRequest, CreateTaskRequest, GetOperationRequest, Operation, Task,
};
use gcp_emulator::pubsub::proto::publisher_client::PublisherClient;
use gcp_emulator::pubsub::proto::subscriber_client::SubscriberClient;
use gcp_emulator::pubsub::proto::{
    AcknowledgeRequest, PublishRequest, PublishResponse, PubsubMessage, PullRequest,
    ReceivedMessage, StreamingPullRequest, StreamingPullResponse, Subscription,
};
use gcp_emulator::{Emulator, EmulatorBuilder, Method};
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{IntoRequest, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

pub(crate) const TOPIC: &str = "projects/demo/topics/orders";
pub(crate) const SUB: &str = "projects/demo/subscriptions/orders";
pub(crate) const QUEUE: &str = "projects/demo/locations/us-central1/queues/q1";

/// Longer than anything here takes in paused time, shorter than a hung test is bearable.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A server with a topic, a subscription and a queue.
pub(crate) fn started(builder: EmulatorBuilder) -> Emulator {
    started_with(builder, |_| ())
}

pub(crate) fn started_with(
    builder: EmulatorBuilder,
    settings: impl FnOnce(&mut Subscription),
) -> Emulator {
    let emulator = builder.start();
    emulator.create_topic(TOPIC).unwrap();
    emulator.create_subscription(SUB, TOPIC, settings).unwrap();
    emulator.create_queue(QUEUE).unwrap();
    emulator
}

/// A client with a connection of its own.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) publisher: PublisherClient<Channel>,
    pub(crate) subscriber: SubscriberClient<Channel>,
    pub(crate) tasks: tonic::client::Grpc<Channel>,
}

impl Client {
    pub(crate) fn of(emulator: &Emulator) -> Self {
        let dial = emulator.dialer();
        let connector = service_fn(move |_| {
            let dial = dial.clone();
            async move { dial().map(TokioIo::new) }
        });
        Self::over(Endpoint::from_static("http://emulator").connect_with_connector_lazy(connector))
    }

    pub(crate) fn over(channel: Channel) -> Self {
        Self {
            publisher: PublisherClient::new(channel.clone()),
            subscriber: SubscriberClient::new(channel.clone()).max_decoding_message_size(64 << 20),
            tasks: tonic::client::Grpc::new(channel),
        }
    }

    pub(crate) async fn publish(&mut self, texts: &[&str]) -> Result<Vec<String>, Status> {
        let messages = texts
            .iter()
            .map(|text| PubsubMessage {
                data: (*text).to_owned().into(),
                ..PubsubMessage::default()
            })
            .collect();
        let request = PublishRequest {
            topic: TOPIC.to_owned(),
            messages,
        };
        let answer: Response<PublishResponse> = self.publisher.publish(request).await?;
        Ok(answer.into_inner().message_ids)
    }

    pub(crate) async fn pull(&mut self, most: i32) -> Result<Vec<ReceivedMessage>, Status> {
        let request = PullRequest {
            subscription: SUB.to_owned(),
            max_messages: most,
            ..PullRequest::default()
        };
        Ok(self
            .subscriber
            .pull(request)
            .await?
            .into_inner()
            .received_messages)
    }

    pub(crate) async fn ack(&mut self, messages: &[ReceivedMessage]) -> Result<(), Status> {
        let ack_ids = messages
            .iter()
            .map(|message| message.ack_id.clone())
            .collect();
        let request = AcknowledgeRequest {
            subscription: SUB.to_owned(),
            ack_ids,
        };
        self.subscriber.acknowledge(request).await.map(drop)
    }

    /// Opens a pull stream; its call is under way when this returns.
    pub(crate) fn open(&self, change: impl FnOnce(&mut StreamingPullRequest)) -> Pulling {
        let mut first = StreamingPullRequest {
            subscription: SUB.to_owned(),
            stream_ack_deadline_seconds: 10,
            ..StreamingPullRequest::default()
        };
        change(&mut first);
        let (requests, receiver) = mpsc::channel(1000);
        requests.try_send(first).unwrap();
        let mut subscriber = self.subscriber.clone();
        let opening = in_background(async move {
            subscriber
                .streaming_pull(sent(receiver))
                .await
                .map(Response::into_inner)
        });
        Pulling {
            requests,
            opening: Some(opening),
            responses: None,
        }
    }

    async fn call_tasks<M, R>(&mut self, method: Method, request: Request<M>) -> Result<R, Status>
    where
        M: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        self.tasks
            .ready()
            .await
            .map_err(|error| Status::from_error(Box::new(error)))?;
        let path = PathAndQuery::from_static(method.path());
        let codec: ProstCodec<M, R> = ProstCodec::default();
        self.tasks
            .unary(request, path, codec)
            .await
            .map(Response::into_inner)
    }

    pub(crate) async fn create_task(
        &mut self,
        request: impl IntoRequest<CreateTaskRequest>,
    ) -> Result<Task, Status> {
        self.call_tasks(Method::CreateTask, request.into_request())
            .await
    }

    pub(crate) async fn batch_create(
        &mut self,
        request: BatchCreateTasksRequest,
    ) -> Result<Operation, Status> {
        self.call_tasks(Method::BatchCreateTasks, Request::new(request))
            .await
    }

    /// Calls a method of Cloud Tasks that has no function of its own here.
    pub(crate) async fn ask<M, R>(&mut self, method: Method, request: M) -> Result<R, Status>
    where
        M: prost::Message + Send + Sync + 'static,
        R: prost::Message + Default + Send + Sync + 'static,
    {
        self.call_tasks(method, Request::new(request)).await
    }

    pub(crate) async fn operation(&mut self, name: &str) -> Result<Operation, Status> {
        let request = GetOperationRequest {
            name: name.to_owned(),
        };
        self.call_tasks(Method::GetOperation, Request::new(request))
            .await
    }
}

/// A pull stream of a client.
pub(crate) struct Pulling {
    pub(crate) requests: mpsc::Sender<StreamingPullRequest>,
    opening: Option<JoinHandle<Result<Streaming<StreamingPullResponse>, Status>>>,
    responses: Option<Streaming<StreamingPullResponse>>,
}

impl Pulling {
    pub(crate) fn send(&self, change: impl FnOnce(&mut StreamingPullRequest)) {
        let mut request = StreamingPullRequest::default();
        change(&mut request);
        self.requests.try_send(request).unwrap();
    }

    /// The next response; `None` at an end with OK.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamingPullResponse>, Status> {
        if let Some(opening) = self.opening.take() {
            self.responses = Some(opening.await.unwrap()?);
        }
        self.responses.as_mut().unwrap().message().await
    }

    /// The messages of the next response.
    pub(crate) async fn messages(&mut self) -> Vec<ReceivedMessage> {
        self.next().await.unwrap().unwrap().received_messages
    }

    /// The status the stream ends with, after its remaining responses.
    pub(crate) async fn end(&mut self) -> Result<(), Status> {
        while self.next().await?.is_some() {}
        Ok(())
    }
}

impl Drop for Pulling {
    fn drop(&mut self) {
        if let Some(opening) = &self.opening {
            opening.abort();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test's own second client")]
pub(crate) fn in_background<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(work)
}

fn sent<T: Send + 'static>(receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> + Send + 'static {
    futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    })
}

/// The HTTP/2 error a status was made from.
pub(crate) fn http2_error(status: &Status) -> Option<&h2::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}

pub(crate) fn texts(messages: &[ReceivedMessage]) -> Vec<String> {
    let data = |m: &ReceivedMessage| m.message.as_ref().unwrap().data.to_vec();
    messages
        .iter()
        .map(|m| String::from_utf8(data(m)).unwrap())
        .collect()
}
