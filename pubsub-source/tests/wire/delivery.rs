//! What comes out of a source, and how.

use std::time::{Duration, SystemTime};

use connector_core::{Checkpoint, CheckpointError, Epoch, Limits};
use futures::{FutureExt, StreamExt};
use gcp_emulator::{Fault, Method, Rule, pubsub::proto::PubsubMessage};
use pubsub_source::{BuildError, Credentials, Endpoint, PubsubSource, SourceError};

use crate::world::*;

#[tokio::test(start_paused = true)]
async fn every_message_published_comes_out_once() {
    let world = World::new();
    let mut source = world.source().streams(3).build().unwrap();
    world.publish(0..5000);
    let mut got = Vec::new();
    for epoch in 1..=10 {
        got.extend(read(&mut source, 500).await);
        seal(&mut source, epoch).await;
        assert_eq!(commit(&mut source, epoch).await.settled, 500);
    }
    assert_eq!(sorted(got), (0..5000).collect::<Vec<_>>());
    nothing_for(&mut source, Duration::from_secs(120)).await;
    assert_eq!(world.acked(), 5000);
}

#[tokio::test(start_paused = true)]
async fn a_source_connects_when_it_is_first_polled() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.emulator.observe().connections_opened, 0);
    assert_eq!(read(&mut source, 1).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn a_message_carries_what_it_was_published_with() {
    let world = World::new();
    let messages = [
        PubsubMessage {
            attributes: [("k".to_owned(), "v".to_owned())].into(),
            ..PubsubMessage::default()
        },
        PubsubMessage {
            data: "payload".into(),
            ordering_key: "key".into(),
            ..PubsubMessage::default()
        },
    ];
    for message in messages {
        world.emulator.publish(TOPIC, vec![message]).unwrap();
    }
    let mut source = world.source().build().unwrap();

    let first = next(&mut source).await;
    assert!(first.data().is_empty(), "attributes alone make a message");
    assert_eq!(first.attribute("k"), Some("v"));
    assert_eq!(first.ordering_key(), None);
    assert_eq!(first.delivery_attempt(), None);
    assert_eq!(first.subscription().as_str(), SUBSCRIPTION);

    let second = next(&mut source).await;
    assert_eq!(second.data(), "payload");
    assert_eq!(second.ordering_key(), Some("key"));
    assert!(second.attributes().is_empty());
    assert_ne!(first.id(), second.id());
    assert_ne!(first.delivery(), second.delivery());
    let published = second.publish_time().unwrap();
    let millis = published
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    assert_eq!(
        second.publish_millis().map(i128::from),
        i128::try_from(millis).ok()
    );
    let sent = "kv".len() + "payload".len() + "key".len();
    assert_eq!(source.stats().received_bytes, sent as u64);
}

/// A message over 4 MiB, tonic's default limit, and one as large as the service allows.
#[tokio::test(start_paused = true)]
async fn the_largest_messages_come_out_unharmed() {
    let world = World::new();
    for size in [5_000_000, 9_900_000, 1] {
        let data = vec![b'a'; size].into();
        let message = PubsubMessage {
            data,
            ..PubsubMessage::default()
        };
        world.emulator.publish(TOPIC, vec![message]).unwrap();
    }
    let mut source = world.source().build().unwrap();
    for size in [5_000_000, 9_900_000, 1] {
        let message = next(&mut source).await;
        assert_eq!(message.data().len(), size);
        assert!(message.data().iter().all(|byte| *byte == b'a'));
    }
    assert_eq!(source.stats().streams_opened, 1, "no stream failed over it");
}

#[tokio::test(start_paused = true)]
async fn a_response_with_several_of_the_largest_messages_is_read() {
    let world = World::with(|server| server.response_bytes(40_000_000), |_| {});
    for _ in 0..3 {
        let data = vec![b'a'; 9_000_000].into();
        let message = PubsubMessage {
            data,
            ..PubsubMessage::default()
        };
        world.emulator.publish(TOPIC, vec![message]).unwrap();
    }
    let mut source = world.source().build().unwrap();
    for _ in 0..3 {
        assert_eq!(next(&mut source).await.data().len(), 9_000_000);
    }
    assert_eq!(source.stats().streams_opened, 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_polling_never_makes_the_buffer_pass_its_bound() {
    let world = World::with(|server| server.response_messages(10), |_| {});
    world.publish(0..20_000);
    let mut source = world
        .source()
        .first_outstanding(100_000)
        .buffer(Limits::items(50))
        .build()
        .unwrap();
    read(&mut source, 1).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let stats = source.stats();
    assert!(stats.buffered >= 49, "{stats:?}");
    assert!(
        stats.buffered <= 50 + 10,
        "one response of overshoot: {stats:?}"
    );
    assert_eq!(
        stats.open_streams, 0,
        "streams that nobody reads are closed"
    );

    // And it goes on where it stopped.
    let mut got = 1;
    for epoch in 1..=100 {
        got += read(&mut source, 100).await.len();
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
    }
    assert_eq!(got, 10_001);
}

/// Answers of acknowledgements need a connection that no unread stream blocks.
#[tokio::test(start_paused = true)]
async fn a_commit_resolves_while_the_buffer_is_full_and_nobody_polls() {
    let world = World::with(|server| server.response_messages(100), |_| {});
    let message = || PubsubMessage {
        data: vec![7; 10_000].into(),
        ..PubsubMessage::default()
    };
    for _ in 0..20 {
        let messages = (0..500).map(|_| message()).collect();
        world.emulator.publish(TOPIC, messages).unwrap();
    }
    let mut source = world
        .source()
        .streams(3)
        .first_outstanding(100_000)
        .buffer(Limits::items(100))
        .build()
        .unwrap();
    for _ in 0..50 {
        next(&mut source).await;
    }
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 50);
}

#[tokio::test(start_paused = true)]
async fn a_slow_host_with_a_large_backlog_gets_every_message_once() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 10,
    );
    world.publish(0..200);
    let mut source = world.source().build().unwrap();
    let mut got = Vec::new();
    let mut epoch = 0;
    for index in 0..200 {
        got.extend(read(&mut source, 1).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
        if index % 60 == 59 || index == 199 {
            epoch += 1;
            seal(&mut source, epoch).await;
            commit(&mut source, epoch).await;
        }
    }
    assert_eq!(sorted(got), (0..200).collect::<Vec<_>>());
    assert_eq!(world.record().delivered, 200, "each was delivered once");
    assert_eq!(world.record().lapses, 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_wait_for_the_next_message_loses_nothing() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    world.publish(0..1000);
    let mut got = Vec::new();
    while got.len() < 1000 {
        // Polled once, then dropped, as in a select! that another branch wins.
        if let Some(Some(item)) = source.next().now_or_never() {
            got.push(number(&item.unwrap()));
        } else {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    }
    assert_eq!(sorted(got), (0..1000).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_source_lets_its_driver_run_while_messages_are_plenty() {
    let world = World::new();
    world.publish(0..3000);
    let mut source = world.source().first_outstanding(10_000).build().unwrap();
    read(&mut source, 100).await;
    seal(&mut source, 1).await;
    let mut receipt = source.commit(Epoch::new(1));
    // Nothing in this loop waits: only the budget of the task makes room for the driver.
    let mut read_on = 0;
    while receipt.try_now().is_none() {
        read(&mut source, 1).await;
        read_on += 1;
        assert!(read_on < 2900, "the commit never got its turn");
    }
}

#[test]
fn building_outside_a_runtime_is_an_error_and_no_panic() {
    let built = PubsubSource::builder(SUBSCRIPTION.parse().unwrap()).build();
    assert!(matches!(built, Err(BuildError::NoRuntime)));
}

#[tokio::test(start_paused = true)]
async fn a_missing_subscription_is_an_error_that_names_it() {
    let world = World::new();
    world.emulator.delete_subscription(SUBSCRIPTION).unwrap();
    let mut source = world.source().build().unwrap();
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::Missing { .. }), "{error:?}");
    assert!(error.to_string().contains(SUBSCRIPTION), "{error}");
    assert!(source.next().await.is_none(), "an error is the last word");
    let closed = source.snapshot(Epoch::new(1)).await.unwrap_err();
    assert!(matches!(closed, CheckpointError::Closed { .. }));
    assert!(
        world.emulator.observe().count(Method::StreamingPull) <= 3,
        "no hot loop"
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_deleted_meanwhile_ends_the_source() {
    let world = World::new();
    let mut source = world.source().build().unwrap();
    world.publish([1]);
    read(&mut source, 1).await;
    world.emulator.delete_subscription(SUBSCRIPTION).unwrap();
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::Missing { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_no_new_stream_changes_ends_the_source_with_the_services_words() {
    let world = World::new();
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull).then(Fault::answer(gcp_emulator::Code::DataLoss, "gone")),
    );
    let mut source = world.source().build().unwrap();
    let error = last_word(&mut source).await;
    let SourceError::Refused { cause, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(cause.to_string().contains("gone"), "{cause}");
    assert_eq!(world.emulator.observe().count(Method::StreamingPull), 1);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_dropped_closes_the_source() {
    let world = World::new();
    let (mut source, driver) = world.source().build_with_driver().unwrap();
    drop(driver);
    let error = last_word(&mut source).await;
    assert!(matches!(error, SourceError::DriverGone { .. }), "{error:?}");
    let closed = source.commit(Epoch::new(1)).await.unwrap_err();
    assert!(matches!(closed, CheckpointError::Closed { .. }));
    source.close().await.unwrap();
}

#[tokio::test]
async fn a_wrong_key_file_ends_the_source_without_a_word_of_its_contents() {
    let not_a_key = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
        .endpoint(Endpoint::tls("127.0.0.1:1").unwrap())
        .credentials(Credentials::service_account_key_file(not_a_key))
        .build()
        .unwrap();
    let error = last_word(&mut source).await;
    assert!(
        matches!(error, SourceError::Credentials { .. }),
        "{error:?}"
    );
    let mut told = error.to_string();
    assert!(told.contains(SUBSCRIPTION) && told.contains("nothing uncommitted was acknowledged"));
    let mut cause = std::error::Error::source(&error);
    while let Some(link) = cause {
        told = format!("{told}: {link}");
        cause = link.source();
    }
    assert!(told.contains("not valid"), "{told}");
    assert!(
        !told.contains("[package]") && !told.contains("Cargo.toml"),
        "{told}"
    );
}
