//! What comes out, and what is acknowledged when.

use std::collections::BTreeMap;

use connector_core::{Checkpoint, CheckpointError, Epoch};
use gcp_wire::proto::pubsub::PubsubMessage;
use pubsub_source::SourceError;

use crate::world::*;

#[tokio::test]
async fn nothing_is_acknowledged_before_the_commit_and_everything_after_it() {
    let world = World::new().await;
    world.publish_numbers(0..100).await;
    let (process, mut source) = Process::start(world.source());
    assert_eq!(read(&mut source, 100).await, (0..100).collect::<Vec<_>>());
    assert_eq!(seal(&mut source, 1).await.named(), 100);
    process.kill(source).await;
    let left = world.unacknowledged().await;
    assert_eq!(
        left.len(),
        100,
        "a snapshot without a commit acknowledges nothing"
    );

    let (process, mut source) = Process::start(world.source());
    assert_eq!(read(&mut source, 100).await, (0..100).collect::<Vec<_>>());
    seal(&mut source, 1).await;
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (100, 0));
    process.kill(source).await;
    world.assert_all_acknowledged().await;
    world.delete().await;
}

#[tokio::test]
async fn a_commit_acknowledges_its_epoch_and_nothing_that_was_handed_out_after_it() {
    let world = World::new().await;
    world.publish_numbers(0..100).await;
    let (process, mut source) = Process::start(world.source());
    let first = read(&mut source, 30).await;
    seal(&mut source, 1).await;
    read(&mut source, 30).await;
    assert_eq!(commit(&mut source, 1).await.settled, 30);
    process.kill(source).await;
    assert_eq!(world.unacknowledged().await.len(), 70);

    let mut source = world.source().build().unwrap();
    let rest = read(&mut source, 70).await;
    let mut all = [first, rest].concat();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 70);
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}

#[tokio::test]
async fn messages_come_out_byte_for_byte_from_the_largest_to_those_without_a_payload() {
    let world = World::new().await;
    let large = |bytes: usize| {
        let mut data = vec![0; bytes];
        fastrand::fill(&mut data);
        PubsubMessage {
            data: data.into(),
            attributes: [("bytes".to_owned(), bytes.to_string())].into(),
            ..PubsubMessage::default()
        }
    };
    let attributes_only = PubsubMessage {
        attributes: [
            ("empty".to_owned(), String::new()),
            ("ü".into(), "ß".into()),
        ]
        .into(),
        ..PubsubMessage::default()
    };
    let messages = [large(5_000_000), attributes_only, large(9_900_000)];
    let mut published = BTreeMap::new();
    for message in messages {
        let id = world.publish(vec![message.clone()]).await.remove(0);
        published.insert(id, message);
    }
    let mut source = world.source().build().unwrap();
    for _ in 0..3 {
        let message = next(&mut source).await;
        let expected = published.remove(message.id()).unwrap();
        assert!(
            *message.data() == expected.data,
            "{} bytes arrived of {}, or others",
            message.data().len(),
            expected.data.len()
        );
        assert_eq!(*message.attributes(), expected.attributes);
        assert_eq!(message.ordering_key(), None);
        assert!(message.publish_time().is_some());
    }
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 3);
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}

#[tokio::test]
async fn a_deleted_subscription_ends_the_source_with_an_error_that_names_it() {
    let world = World::new().await;
    world.publish_numbers(0..10).await;
    let mut source = world.source().build().unwrap();
    read(&mut source, 10).await;
    seal(&mut source, 1).await;
    world.delete_subscription().await;
    let error = last_word(&mut source).await;
    let SourceError::Missing { subscription, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*subscription, world.subscription);
    assert!(
        error.to_string().contains(world.subscription.as_str()),
        "{error}"
    );
    let refused = source.commit(Epoch::new(1)).await.unwrap_err();
    assert!(
        matches!(refused, CheckpointError::Closed { .. }),
        "{refused:?}"
    );
    world.delete_topic().await;
}
