//! What tests are told about the past.

use std::time::Duration;

use gcp_emulator::pubsub::proto::PublishRequest;
use gcp_emulator::pubsub::state::History;
use gcp_emulator::{Body, Emulator, Method};
use tonic::Request;

use crate::client::{Client, SOON, SUB, TOPIC, started};

#[tokio::test(start_paused = true)]
async fn every_request_is_kept_with_its_time_metadata_size_and_message() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    tokio::time::advance(Duration::from_secs(2)).await;
    let message = gcp_emulator::pubsub::proto::PubsubMessage {
        data: "b".into(),
        ..Default::default()
    };
    let sent = PublishRequest {
        topic: TOPIC.to_owned(),
        messages: vec![message],
    };
    let mut request = Request::new(sent.clone());
    request
        .metadata_mut()
        .insert("authorization", "Bearer x".parse().unwrap());
    request.set_timeout(Duration::from_secs(9));
    client.publisher.publish(request).await.unwrap();
    let mut stream = client.open(|first| first.client_id = "me".to_owned());
    stream.messages().await;
    stream.send(|request| request.stream_ack_deadline_seconds = 30);
    let two =
        |seen: &gcp_emulator::Observation| seen.requests_of(Method::StreamingPull).count() == 2;
    assert!(emulator.wait_until(two, SOON).await);

    let seen = emulator.observe();
    let publishes: Vec<_> = seen.requests_of(Method::Publish).collect();
    assert_eq!(
        publishes[1].at.since(publishes[0].at),
        Duration::from_secs(2)
    );
    assert_eq!(publishes[1].metadata["authorization"], "Bearer x");
    assert_eq!(publishes[1].metadata["grpc-timeout"], "9000000u");
    assert_eq!(publishes[1].encoded_len, prost::Message::encoded_len(&sent));
    assert_eq!(publishes[1].body, Body::Publish(sent));
    assert_eq!((publishes[0].nth, publishes[1].nth), (0, 1));
    assert_eq!(publishes[0].resource(), Some(TOPIC));
    let pulls: Vec<_> = seen.requests_of(Method::StreamingPull).collect();
    assert_eq!(pulls[0].stream, None);
    let open = *seen.subscription(SUB).streams.keys().next().unwrap();
    assert_eq!((pulls[1].stream, pulls[1].nth), (Some(open), 1));
    assert_eq!(
        seen.count(Method::StreamingPull),
        1,
        "requests on a stream are no calls"
    );
    assert_eq!(seen.subscription(SUB).streams[&open].client_id, "me");
    assert_eq!((seen.connections, seen.connections_opened), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_observation_does_not_change_afterwards() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let before = emulator.observe();
    client.publish(&["b"]).await.unwrap();
    assert_eq!(before.topic(TOPIC).published, 1);
    assert_eq!(before.requests.len(), 1);
    assert_eq!(emulator.observe().topic(TOPIC).published, 2);
}

#[tokio::test(start_paused = true)]
async fn histories_are_bounded_and_counters_are_not() {
    let builder = Emulator::builder()
        .history(History::new(10, 1 << 20))
        .request_history(5);
    let emulator = started(builder);
    let mut client = Client::of(&emulator);
    for n in 0..30 {
        client.publish(&[&n.to_string()]).await.unwrap();
        let got = client.pull(1).await.unwrap();
        client.ack(&got).await.unwrap();
    }
    let seen = emulator.observe();
    assert_eq!((seen.requests.len(), seen.requests_forgotten), (5, 85));
    assert_eq!(seen.count(Method::Publish), 30);
    let topic = seen.topic(TOPIC);
    assert_eq!(
        (topic.published, topic.messages.len(), topic.forgotten),
        (30, 10, 20)
    );
    let sub = seen.subscription(SUB);
    assert_eq!(
        (
            sub.delivered,
            sub.deliveries.len(),
            sub.distinct_delivered()
        ),
        (30, 10, 10)
    );
    assert_eq!((sub.acks, sub.acked.len(), sub.forgotten), (30, 10, 40));
}

#[tokio::test(start_paused = true)]
async fn the_told_limits_of_open_streams_add_up() {
    let emulator = started(Emulator::builder());
    let client = Client::of(&emulator);
    let _one = client.open(|first| first.max_outstanding_messages = 100);
    let _two = client.open(|first| first.max_outstanding_messages = 50);
    let told = |seen: &gcp_emulator::Observation| seen.subscription(SUB).told_limit() == Some(150);
    assert!(emulator.wait_until(told, SOON).await);
    let _three = client.open(|_| ());
    let endless = |seen: &gcp_emulator::Observation| {
        seen.subscription(SUB).streams.len() == 3 && seen.subscription(SUB).told_limit().is_none()
    };
    assert!(emulator.wait_until(endless, SOON).await);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_what_never_happens_ends() {
    let emulator = started(Emulator::builder());
    let before = emulator.now();
    assert!(!emulator.wait_until(|_| false, Duration::from_secs(5)).await);
    assert_eq!(emulator.now().since(before), Duration::from_secs(5));
    assert!(emulator.wait_until(|_| true, Duration::ZERO).await);
}

#[tokio::test(start_paused = true)]
async fn publish_times_are_the_same_in_every_run_with_a_given_wall_clock() {
    let start = std::time::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let emulator = started(Emulator::builder().wall_clock(start));
        tokio::time::advance(Duration::from_millis(1500)).await;
        Client::of(&emulator).publish(&["a"]).await.unwrap();
        seen.push(std::sync::Arc::clone(
            &emulator.observe().topic(TOPIC).messages[0],
        ));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].publish_time.unwrap().seconds, 1_800_000_001);
}
