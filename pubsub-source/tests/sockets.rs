//! The source over real sockets and in real time: bounded waits for conditions, no claims on time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, time::Duration};

use connector_core::{Checkpoint, Epoch, Restored};
use futures::StreamExt;
use gcp_emulator::{Emulator, pubsub::proto::PubsubMessage};
use pubsub_source::{Endpoint, PubsubSource, SourceBuilder};

const TOPIC: &str = "projects/demo-project/topics/t11";
const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/s11";
const MESSAGES: u64 = 20_000;

/// Far more than a slow machine needs.
const LIMIT: Duration = Duration::from_secs(120);

fn source(emulator: &Emulator) -> SourceBuilder {
    let address = emulator.local_addr().unwrap().to_string();
    PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
        .endpoint(Endpoint::emulator(&address).unwrap())
        .streams(3)
        .max_extension(Duration::from_secs(10))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_two_checkpoints_loses_and_repeats_nothing_that_was_durable() {
    let emulator = Emulator::builder()
        .listen("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    emulator.create_topic(TOPIC).unwrap();
    emulator
        .create_subscription(SUBSCRIPTION, TOPIC, |_| {})
        .unwrap();
    let messages: Vec<PubsubMessage> = (0..MESSAGES)
        .map(|number| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        })
        .collect();
    for request in messages.chunks(1000) {
        emulator.publish(TOPIC, request.to_vec()).unwrap();
    }

    let (mut first, driver) = source(&emulator).build_with_driver().unwrap();
    let runtime = tokio::runtime::Handle::current();
    let driver = runtime.spawn(driver);
    let mut durable = BTreeSet::new();
    let mut number = 0;
    let mut saved = None;
    while number < 5 {
        number += 1;
        for _ in 0..1000 {
            durable.insert(next(&mut first).await);
        }
        let epoch = Epoch::new(number);
        let state = serde_json::to_vec(&first.snapshot(epoch).await.unwrap()).unwrap();
        drop(first.commit(epoch));
        saved = Some((epoch, state));
    }
    // Handed out and never durable.
    for _ in 0..300 {
        next(&mut first).await;
    }
    driver.abort();
    drop(driver.await);
    drop(first);

    let (epoch, state) = saved.unwrap();
    let restored = Restored::new(epoch, serde_json::from_slice(&state).unwrap());
    let mut second = source(&emulator).restore([restored]).build().unwrap();
    let mut rest = BTreeSet::new();
    while durable.len() + rest.len() < usize::try_from(MESSAGES).unwrap() {
        number += 1;
        let want = usize::try_from(MESSAGES).unwrap() - durable.len() - rest.len();
        for _ in 0..want.min(500) {
            let got = next(&mut second).await;
            assert!(!durable.contains(&got), "{got} is durable and comes again");
            assert!(rest.insert(got), "{got} comes twice");
        }
        drop(second.snapshot(Epoch::new(number)).await.unwrap());
        second.commit(Epoch::new(number)).await.unwrap();
    }
    let acked = emulator
        .wait_until(|seen| seen.subscription(SUBSCRIPTION).backlog == 0, LIMIT)
        .await;
    assert!(acked, "everything is acknowledged in the end");
    second.close().await.unwrap();
}

async fn next(source: &mut PubsubSource) -> u64 {
    let message = tokio::time::timeout(LIMIT, source.next()).await;
    let message = message.unwrap().unwrap().unwrap();
    std::str::from_utf8(message.data())
        .unwrap()
        .parse()
        .unwrap()
}
