//! A first look through a real client.

use std::time::Duration;

use gcp_emulator::Emulator;
use gcp_emulator::pubsub::proto::publisher_client::PublisherClient;
use gcp_emulator::pubsub::proto::subscriber_client::SubscriberClient;
use gcp_emulator::pubsub::proto::{
    AcknowledgeRequest, PublishRequest, PubsubMessage, StreamingPullRequest,
};
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

const TOPIC: &str = "projects/demo/topics/t1x";
const SUB: &str = "projects/demo/subscriptions/s1x";

fn channel(emulator: &Emulator) -> Channel {
    let dial = emulator.dialer();
    Endpoint::from_static("http://emulator").connect_with_connector_lazy(service_fn(move |_| {
        let dial = dial.clone();
        async move { dial().map(TokioIo::new) }
    }))
}

#[tokio::test(start_paused = true)]
async fn published_messages_are_pulled_and_acked() {
    let emulator = Emulator::builder().start();
    emulator.create_topic(TOPIC).unwrap();
    emulator.create_subscription(SUB, TOPIC, |_| ()).unwrap();
    let channel = channel(&emulator);
    let mut publisher = PublisherClient::new(channel.clone());
    let message = PubsubMessage {
        data: "hello".into(),
        ..Default::default()
    };
    let request = PublishRequest {
        topic: TOPIC.into(),
        messages: vec![message; 3],
    };
    publisher.publish(request).await.unwrap();
    let mut subscriber = SubscriberClient::new(channel);
    let (requests, receiver) = tokio::sync::mpsc::channel(4);
    requests
        .send(StreamingPullRequest {
            subscription: SUB.into(),
            stream_ack_deadline_seconds: 10,
            ..Default::default()
        })
        .await
        .unwrap();
    let stream = tokio_stream_of(receiver);
    let mut responses = subscriber
        .streaming_pull(stream)
        .await
        .unwrap()
        .into_inner();
    let got = responses.message().await.unwrap().unwrap();
    assert_eq!(got.received_messages.len(), 3);
    let again = responses.message().await.unwrap().unwrap();
    assert_eq!(again.received_messages.len(), 3);
    let ack_ids: Vec<String> = again
        .received_messages
        .iter()
        .map(|m| m.ack_id.clone())
        .collect();
    subscriber
        .acknowledge(AcknowledgeRequest {
            subscription: SUB.into(),
            ack_ids,
        })
        .await
        .unwrap();
    assert!(
        emulator
            .wait_until(
                |seen| seen.subscription(SUB).acks == 3,
                Duration::from_secs(1)
            )
            .await
    );
    assert_eq!(emulator.observe().subscription(SUB).backlog, 0);
}

fn tokio_stream_of<T: Send + 'static>(
    receiver: tokio::sync::mpsc::Receiver<T>,
) -> impl futures::Stream<Item = T> + Send + 'static {
    futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|item| (item, receiver))
    })
}
