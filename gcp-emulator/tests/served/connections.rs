//! Connections: lost, silent, retired, refused, limited.

use std::time::Duration;

use gcp_emulator::{Emulator, Fault, FaultPlan, Method, Observation, Rule};
use tokio::time::timeout;

use crate::client::{Client, SOON, SUB, in_background, started, texts};

fn streams(count: usize) -> impl Fn(&Observation) -> bool {
    move |seen| seen.subscription(SUB).streams.len() == count
}

#[tokio::test(start_paused = true)]
async fn dropping_every_connection_ends_the_streams_and_lets_clients_come_back() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    assert!(emulator.wait_until(streams(1), SOON).await);
    emulator.drop_connections();
    stream.end().await.unwrap_err();
    assert!(emulator.wait_until(streams(0), SOON).await);
    client.publish(&["a"]).await.unwrap();
    assert_eq!(texts(&client.open(|_| ()).messages().await), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn silenced_connections_look_alive_and_new_ones_work() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    assert!(emulator.wait_until(streams(1), SOON).await);
    emulator.silence_connections();
    assert!(
        timeout(Duration::from_secs(600), client.publish(&["a"]))
            .await
            .is_err()
    );
    let mut other = Client::of(&emulator);
    other.publish(&["b"]).await.unwrap();
    assert!(
        timeout(Duration::from_secs(600), stream.next())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn retired_connections_finish_their_calls() {
    let slow = Rule::on(Method::Publish)
        .once()
        .then(Fault::Delay(Duration::from_secs(5)));
    let emulator = started(Emulator::builder().faults(FaultPlan::new().rule(slow)));
    let client = Client::of(&emulator);
    let mut publishing = client.clone();
    let call = in_background(async move { publishing.publish(&["a"]).await });
    assert!(
        emulator
            .wait_until(|seen| seen.count(Method::Publish) == 1, SOON)
            .await
    );
    emulator.retire_connections();
    assert_eq!(call.await.unwrap().unwrap().len(), 1);
    client.clone().publish(&["b"]).await.unwrap();
    assert_eq!(emulator.observe().connections_opened, 2);
}

#[tokio::test(start_paused = true)]
async fn refused_connections_fail_at_once_and_are_welcome_later() {
    let emulator = started(Emulator::builder());
    emulator.refuse_connections(true).await.unwrap();
    let dial = emulator.dialer();
    assert_eq!(
        dial().unwrap_err().kind(),
        std::io::ErrorKind::ConnectionRefused
    );
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap_err();
    emulator.refuse_connections(false).await.unwrap();
    client.publish(&["a"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_refuses_connections_and_breaks_those_it_had() {
    let emulator = started(Emulator::builder());
    let dial = emulator.dialer();
    let client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    assert!(emulator.wait_until(streams(1), SOON).await);
    emulator.stop();
    stream.end().await.unwrap_err();
    assert_eq!(
        dial().unwrap_err().kind(),
        std::io::ErrorKind::ConnectionRefused
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_how_many_streams_it_may_have() {
    let emulator = started(Emulator::builder().max_concurrent_streams(3));
    let io = emulator.dialer()().unwrap();
    let (sender, mut connection) = h2::client::handshake(io).await.unwrap();
    let told = std::future::poll_fn(|cx| {
        // The connection is driven until the server's settings are in.
        let ended = std::pin::Pin::new(&mut connection).poll(cx);
        assert!(ended.is_pending());
        match connection.max_concurrent_send_streams() {
            3 => std::task::Poll::Ready(3),
            _ => std::task::Poll::Pending,
        }
    });
    assert_eq!(timeout(SOON, told).await, Ok(3));
    drop(sender);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_stream_limit_wait_for_their_turn() {
    let slow = Rule::on(Method::Publish).then(Fault::Delay(Duration::from_secs(10)));
    let plan = FaultPlan::new().rule(slow);
    let emulator = started(Emulator::builder().max_concurrent_streams(1).faults(plan));
    let mut client = Client::of(&emulator);
    // The limit is known to the client once the first answer is in.
    client.publish(&["first"]).await.unwrap();
    let before = emulator.now();
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let mut client = client.clone();
            in_background(async move { client.publish(&["a"]).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(emulator.now().since(before), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn an_unread_stream_gets_what_its_window_takes_and_no_more() {
    let emulator = started(Emulator::builder().response_messages(1));
    let data = vec![b'a'; 20_000];
    let messages = vec![
        gcp_emulator::pubsub::proto::PubsubMessage {
            data: data.into(),
            ..Default::default()
        };
        300
    ];
    emulator.publish(crate::client::TOPIC, messages).unwrap();
    let client = Client::of(&emulator);
    let mut stream = client.open(|_| ());
    assert_eq!(stream.messages().await.len(), 1);
    // Nobody reads on: paused time moves only when everything is at rest.
    tokio::time::advance(Duration::from_secs(1)).await;
    let delivered = emulator.observe().subscription(SUB).delivered;
    assert!(
        (2..300).contains(&delivered),
        "{delivered} of 300 were leased to an unread stream"
    );
}
