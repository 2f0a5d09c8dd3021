//! Subscriptions on which the service answers for each acknowledgement.

use std::collections::BTreeSet;

use connector_core::{Checkpoint, Epoch};
use gcp_wire::proto::pubsub::Subscription;

use crate::{door::Door, world::*};

fn exactly_once(subscription: &mut Subscription) {
    subscription.enable_exactly_once_delivery = true;
    // Longer than the test: whoever pulls keeps what it has.
    subscription.ack_deadline_seconds = 600;
}

#[tokio::test]
async fn on_an_exactly_once_subscription_acknowledgements_are_confirmed() {
    let world = World::with(exactly_once).await;
    world.publish_numbers(0..100).await;
    let (process, mut source) = Process::start(world.source().max_extension(SECOND * 10));
    read(&mut source, 100).await;
    let stats = source.stats();
    assert_eq!(stats.lease_seconds, 60, "the server said what kind it is");
    assert!(
        stats.extended >= 100,
        "handed out only after the lease was confirmed"
    );
    seal(&mut source, 1).await;
    let committed = commit(&mut source, 1).await;
    assert_eq!((committed.settled, committed.lapsed), (100, 0));
    process.kill(source).await;
    world.assert_all_acknowledged().await;
    world.delete().await;
}

#[tokio::test]
async fn on_an_exactly_once_subscription_an_ack_id_that_lapsed_counts_as_lapsed() {
    let server = google_address();
    let world = World::with(exactly_once).await;
    let door = Door::to(&server).await;
    world.publish_numbers(0..10).await;
    let mut source = world.source_by_way_of(door.endpoint()).build().unwrap();
    read(&mut source, 10).await;
    seal(&mut source, 1).await;

    // While the source hears nothing, its leases end and another subscriber gets the messages.
    door.shut();
    world.end_leases().await;
    let mut others = Vec::new();
    let mut seen = BTreeSet::new();
    while seen.len() < 10 {
        let pulled = world.pull(LONG).await;
        assert!(!pulled.is_empty(), "{} of 10 came", seen.len());
        let ids = pulled
            .iter()
            .map(|one| one.message.as_ref().unwrap().message_id.clone());
        seen.extend(ids);
        others.extend(pulled);
    }
    let receipt = source.commit(Epoch::new(1));
    door.open(&server);
    let committed = tokio::time::timeout(LONG, receipt).await.unwrap().unwrap();
    assert_eq!((committed.settled, committed.lapsed), (0, 10));
    assert_eq!(source.stats().lapsed, 10);

    // Given back by the other one they come again, and the commit stands: not handed out.
    world.give_back(&others).await;
    until("all ten are recognised and acknowledged", || {
        source.stats().recognised == 10 && source.stats().acknowledged == 10
    })
    .await;
    assert_eq!(source.stats().handed_out, 10);
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}
