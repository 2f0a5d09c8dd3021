//! Sources that die, and sources that end.

use crate::world::*;

#[tokio::test]
async fn after_a_kill_a_restored_source_acknowledges_what_its_state_names_and_hands_out_the_rest() {
    let world = World::new().await;
    world.publish_numbers(0..100).await;
    let started = now();
    let (process, mut source) = Process::start(world.source().max_extension(SECOND * 10));
    let named = read(&mut source, 60).await;
    let state = seal(&mut source, 1).await;
    // Handed out after the cut: the state does not know of them.
    read(&mut source, 20).await;
    assert_eq!(state.named(), 60);
    process.kill(source).await;

    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let rest = read(&mut source, 40).await;
    let after = started.elapsed();
    assert!(
        after >= SECOND * 9,
        "the lease of 10 s kept them, but they came after {after:?}"
    );
    assert!(after <= SECOND * 30, "they came only after {after:?}");
    let mut all = [named, rest].concat();
    all.sort_unstable();
    assert_eq!(
        all,
        (0..100).collect::<Vec<_>>(),
        "nothing twice, nothing lost"
    );
    until("all that the state names is recognised", || {
        source.stats().recognised == 60
    })
    .await;
    seal(&mut source, 2).await;
    assert_eq!(commit(&mut source, 2).await.settled, 40);
    until("all that came again is acknowledged", || {
        source.stats().acknowledged == 100
    })
    .await;
    assert_eq!(source.stats().handed_out, 40);
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}

#[tokio::test]
async fn what_a_closed_or_dropped_source_held_is_delivered_to_another_at_once() {
    let world = World::with(|subscription| subscription.ack_deadline_seconds = 600).await;
    world.publish_numbers(0..50).await;
    for closed in [true, false] {
        let mut source = world.source().max_extension(SECOND * 600).build().unwrap();
        read(&mut source, 20).await;
        seal(&mut source, 1).await;
        read(&mut source, 10).await;
        // Sealed, handed out, and buffered: all of it comes back.
        if closed {
            source.close().await.unwrap();
        } else {
            drop(source);
        }
        let left = now();
        let mut other = world.source().build().unwrap();
        assert_eq!(read(&mut other, 50).await, (0..50).collect::<Vec<_>>());
        let after = left.elapsed();
        assert!(
            after < SECOND * 5,
            "{after:?} of a lease of 600 s, closed: {closed}"
        );
        other.close().await.unwrap();
    }
    let mut source = world.source().build().unwrap();
    read(&mut source, 50).await;
    seal(&mut source, 1).await;
    let receipt = commit(&mut source, 1).await;
    assert_eq!((receipt.settled, receipt.lapsed), (50, 0));
    source.close().await.unwrap();
    world.assert_all_acknowledged().await;
    world.delete().await;
}
