//! Leases that must last longer than the service gives at once.

use crate::world::*;

#[tokio::test]
async fn leases_are_extended_over_several_deadlines_and_nobody_else_gets_the_messages() {
    let world = World::new().await;
    world.publish_numbers(0..100).await;
    let mut source = world.source().max_extension(SECOND * 10).build().unwrap();
    // Sealed, handed out and buffered.
    let mut all = read(&mut source, 30).await;
    seal(&mut source, 1).await;
    all.extend(read(&mut source, 30).await);
    until("everything is leased", || source.stats().leased == 100).await;

    let others = world.pull(SECOND * 25).await;
    assert_eq!(others, Vec::new(), "two and a half deadlines of 10 s");
    let stats = source.stats();
    assert_eq!(
        (stats.received, stats.redelivered, stats.lapsed_in_buffer),
        (100, 0, 0)
    );
    assert!(stats.extended >= 200, "{} extensions", stats.extended);
    assert_eq!(stats.lease_seconds, 10);

    all.extend(read(&mut source, 40).await);
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    seal(&mut source, 2).await;
    let committed = commit(&mut source, 2).await;
    assert_eq!((committed.settled, committed.lapsed), (100, 0));
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}
