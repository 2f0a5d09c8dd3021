//! The order of messages with a key.

use std::collections::BTreeMap;

use gcp_wire::proto::pubsub::PubsubMessage;
use pubsub_source::PubsubSource;

use crate::world::*;

const KEYS: u64 = 20;
const PER_KEY: u64 = 50;

/// Reads on, and checks that each key goes on where it was, without a gap.
async fn follow(source: &mut PubsubSource, messages: u64, at: &mut BTreeMap<String, u64>) {
    for _ in 0..messages {
        let message = next(source).await;
        let key = message.ordering_key().expect("all have a key").to_owned();
        let expected = at.entry(key.clone()).or_default();
        assert_eq!(number(&message), *expected, "of {key}");
        *expected += 1;
    }
}

#[tokio::test]
async fn each_of_20_keys_comes_in_order_without_a_gap_also_over_a_kill() {
    let world = World::with(|subscription| subscription.enable_message_ordering = true).await;
    let all = (0..KEYS * PER_KEY).map(|n| PubsubMessage {
        data: (n / KEYS).to_string().into(),
        ordering_key: format!("key-{}", n % KEYS),
        ..PubsubMessage::default()
    });
    world.publish(all.collect()).await;
    let mut at = BTreeMap::new();
    let (process, mut source) = Process::start(
        world
            .source()
            .message_ordering(true)
            .max_extension(SECOND * 10),
    );
    follow(&mut source, 310, &mut at).await;
    let state = seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 310);
    // What follows the cut is handed out once more by the next one.
    follow(&mut source, 200, &mut at.clone()).await;
    // What has not left this server goes to the next stream before what has and is unacknowledged.
    until("everything has left the server", || {
        source.stats().received == KEYS * PER_KEY
    })
    .await;
    process.kill(source).await;

    let mut source = world
        .source()
        .message_ordering(true)
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    follow(&mut source, KEYS * PER_KEY - 310, &mut at).await;
    assert_eq!(at.len() as u64, KEYS);
    assert!(at.values().all(|next| *next == PER_KEY), "{at:?}");
    seal(&mut source, 2).await;
    assert_eq!(commit(&mut source, 2).await.settled, 690);
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}
