//! Several subscriptions behind one handle.

use connector_core::Limits;
use pubsub_source::PubsubSource;

use crate::world::*;

#[tokio::test]
async fn a_parked_subscription_is_free_for_others_and_comes_back_when_it_is_resumed() {
    let busy = World::new().await;
    let paused = World::new().await;
    let names = [busy.subscription.clone(), paused.subscription.clone()];
    let mut source = PubsubSource::builder_of(names)
        .instance("a job")
        .endpoint(busy.endpoint())
        .paused_limit(Limits::new(20, 1 << 20))
        .build()
        .unwrap();
    assert!(source.pause(&paused.subscription));
    paused.publish_numbers(0..100).await;
    busy.publish_numbers(1000..1100).await;
    let got = read(&mut source, 100).await;
    assert!(got.iter().all(|number| *number >= 1000), "{got:?}");
    until("it is parked", || source.stats().parked == 1).await;

    // Another subscriber has all of it long before any lease is over.
    let mut other = paused.source().build().unwrap();
    let mut theirs = read(&mut other, 100).await;
    theirs.sort_unstable();
    assert_eq!(theirs, (0..100).collect::<Vec<_>>());
    seal(&mut other, 1).await;
    assert_eq!(commit(&mut other, 1).await.settled, 100);
    other.close().await.unwrap();

    assert!(source.resume(&paused.subscription));
    paused.publish_numbers(100..110).await;
    assert_eq!(read(&mut source, 10).await.len(), 10);
    seal(&mut source, 1).await;
    assert_eq!(commit(&mut source, 1).await.settled, 110);
    source.close().await.unwrap();
    for world in [busy, paused] {
        world.assert_all_acknowledged().await;
        world.delete().await;
    }
}
