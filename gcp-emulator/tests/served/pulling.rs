//! The main path: publish, pull, acknowledge.

use std::time::Duration;

use gcp_emulator::cloudtasks::proto::{ErrorInfo, RpcStatus};
use gcp_emulator::{Emulator, Method};
use prost::Message;
use tonic::Code;

use crate::client::{Client, SOON, SUB, TOPIC, in_background, started, started_with, texts};

#[tokio::test(start_paused = true)]
async fn what_is_published_is_pulled_acknowledged_and_gone() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let ids = client.publish(&["a", "b", "c"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let got = stream.messages().await;
    assert_eq!(texts(&got), ["a", "b", "c"]);
    client.ack(&got).await.unwrap();
    let seen = emulator.observe().subscription(SUB);
    assert_eq!((seen.acks, seen.backlog), (3, 0));
    assert_eq!(seen.acked_ids().into_iter().collect::<Vec<_>>(), ids);
}

#[tokio::test(start_paused = true)]
async fn an_unacknowledged_message_comes_again_when_its_lease_ends() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let first = stream.messages().await;
    let before = emulator.now();
    let second = stream.messages().await;
    assert_eq!(emulator.now().since(before), Duration::from_secs(10));
    assert_eq!(first[0].message, second[0].message);
    assert_ne!(first[0].ack_id, second[0].ack_id);
    assert_eq!(first[0].ack_id.len(), 176);
}

#[tokio::test(start_paused = true)]
async fn an_open_stream_gets_messages_as_they_are_published() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let mut stream = client.open(|first| first.max_outstanding_messages = 1);
    for text in ["a", "b", "c"] {
        client.publish(&[text]).await.unwrap();
        let got = stream.messages().await;
        assert_eq!(texts(&got), [text]);
        stream.send(|request| request.ack_ids = vec![got[0].ack_id.clone()]);
    }
    assert!(
        emulator
            .wait_until(|seen| seen.subscription(SUB).acks == 3, SOON)
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_has_no_headers_yet() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    let answered = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
    assert!(answered.is_err());
    let mut stream = client.open(|_| ());
    client.publish(&["a"]).await.unwrap();
    assert_eq!(texts(&stream.messages().await), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_with_an_empty_response() {
    let emulator = started(Emulator::builder());
    let client = Client::of(&emulator);
    let mut stream = client.open(|first| first.protocol_version = 1);
    stream.send(|_| ());
    let response = stream.next().await.unwrap().unwrap();
    assert!(response.received_messages.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_stream_ends_with_ok() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    stream.messages().await;
    let (unused, _receiver) = tokio::sync::mpsc::channel(1);
    drop(std::mem::replace(&mut stream.requests, unused));
    stream.end().await.unwrap();
    let closed = |seen: &gcp_emulator::Observation| seen.subscription(SUB).streams.is_empty();
    assert!(emulator.wait_until(closed, SOON).await);
    assert_eq!(emulator.observe().subscription(SUB).outstanding, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_is_noticed_and_gets_no_more_messages() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    stream.messages().await;
    drop(stream);
    let closed = |seen: &gcp_emulator::Observation| seen.subscription(SUB).streams.is_empty();
    assert!(emulator.wait_until(closed, SOON).await);
    client.publish(&["b"]).await.unwrap();
    assert_eq!(texts(&client.pull(10).await.unwrap()), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn workers_on_one_subscription_share() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let mut streams: Vec<_> = (0..4).map(|_| client.open(|_| ())).collect();
    assert!(
        emulator
            .wait_until(|seen| seen.subscription(SUB).streams.len() == 4, SOON)
            .await
    );
    let texts: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    client
        .publish(&texts.iter().map(String::as_str).collect::<Vec<_>>())
        .await
        .unwrap();
    for stream in &mut streams {
        let got = tokio::time::timeout(Duration::from_secs(1), stream.messages()).await;
        assert!(!got.unwrap().is_empty());
    }
    assert!(
        emulator
            .wait_until(|seen| seen.subscription(SUB).delivered == 40, SOON)
            .await
    );
    let seen = emulator.observe().subscription(SUB);
    let least = seen.streams.values().map(|stream| stream.outstanding).min();
    assert!(least >= Some(5), "{least:?}");
}

#[tokio::test(start_paused = true)]
async fn large_messages_pass_and_a_response_may_hold_several() {
    let emulator = started(Emulator::builder().response_bytes(30_000_000));
    for _ in 0..3 {
        let data = vec![b'a'; 9_000_000];
        let message = gcp_emulator::pubsub::proto::PubsubMessage {
            data: data.into(),
            ..Default::default()
        };
        emulator.publish(TOPIC, vec![message]).unwrap();
    }
    let client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    let got = stream.messages().await;
    assert_eq!(got.len(), 3);
    assert!(
        got.iter()
            .all(|m| m.message.as_ref().unwrap().data.len() == 9_000_000)
    );
}

#[tokio::test(start_paused = true)]
async fn a_unary_pull_waits_for_a_first_message() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let mut other = client.clone();
    let waiting = in_background(async move { other.pull(10).await });
    assert!(
        emulator
            .wait_until(|seen| seen.count(Method::Pull) == 1, SOON)
            .await
    );
    client.publish(&["a"]).await.unwrap();
    assert_eq!(texts(&waiting.await.unwrap().unwrap()), ["a"]);
    let before = emulator.now();
    assert!(client.pull(10).await.unwrap().is_empty() || emulator.now() > before);
}

#[tokio::test(start_paused = true)]
async fn two_waiting_pulls_do_not_keep_each_other_busy() {
    let emulator = started(Emulator::builder());
    let client = Client::of(&emulator);
    let pulls: Vec<_> = (0..2)
        .map(|_| {
            let mut client = client.clone();
            in_background(async move { client.pull(1).await })
        })
        .collect();
    let before = emulator.now();
    for pull in pulls {
        assert!(pull.await.unwrap().unwrap().is_empty());
    }
    // Paused time moves only when nobody is busy.
    assert_eq!(emulator.now().since(before), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn failed_ids_of_an_exactly_once_subscription_are_in_the_details() {
    let emulator = started_with(Emulator::builder(), |sub| {
        sub.enable_exactly_once_delivery = true;
    });
    let mut client = Client::of(&emulator);
    client.publish(&["a", "b"]).await.unwrap();
    let got = client.pull(2).await.unwrap();
    client.ack(&got[..1]).await.unwrap();
    let refused = client.ack(&got).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let status = RpcStatus::decode(refused.details()).unwrap();
    assert_eq!(status.code, 3);
    let info = ErrorInfo::decode(status.details[0].value.as_slice()).unwrap();
    assert_eq!(
        status.details[0].type_url,
        "type.googleapis.com/google.rpc.ErrorInfo"
    );
    assert_eq!(info.reason, "EXACTLY_ONCE_ACKID_FAILURE");
    assert_eq!(info.domain, "pubsub.googleapis.com");
    assert_eq!(info.metadata.len(), 1);
    assert_eq!(
        info.metadata[&got[0].ack_id],
        "PERMANENT_FAILURE_INVALID_ACK_ID"
    );
    assert_eq!(emulator.observe().subscription(SUB).acks, 2);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_subscription_ends_its_stream_with_not_found() {
    let emulator = started(Emulator::builder());
    let client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    assert!(
        emulator
            .wait_until(|seen| seen.subscription(SUB).streams.len() == 1, SOON)
            .await
    );
    emulator.delete_subscription(SUB).unwrap();
    assert_eq!(stream.end().await.unwrap_err().code(), Code::NotFound);
}
