//! Sources beside each other.

use std::collections::BTreeMap;

use pubsub_source::PubsubSource;
use tokio::{sync::mpsc, task::JoinSet};

use crate::world::*;

const SOURCES: usize = 3;

/// Messages of one epoch, so that none waits long for its acknowledgement.
const EPOCH: usize = 5;

/// Tells what it gets and commits, until nobody listens.
async fn work(mut source: PubsubSource, name: usize, got: mpsc::Sender<(usize, u64)>) {
    let mut epoch = 0;
    let mut open = 0;
    loop {
        tokio::select! {
            biased;
            () = got.closed() => break,
            message = next(&mut source) => {
                // An error means that nobody listens any more, which the next turn sees.
                got.send((name, number(&message))).await.ok();
                open += 1;
            }
        }
        if open == EPOCH {
            open = 0;
            epoch += 1;
            seal(&mut source, epoch).await;
            assert_eq!(commit(&mut source, epoch).await.settled, EPOCH);
        }
    }
    seal(&mut source, epoch + 1).await;
    assert_eq!(commit(&mut source, epoch + 1).await.settled, open);
    source.close().await.unwrap();
}

#[tokio::test]
async fn several_sources_share_a_subscription_and_nothing_is_lost_or_delivered_twice() {
    let world = World::new().await;
    let (sender, mut got) = mpsc::channel(1);
    let mut workers = JoinSet::new();
    for name in 0..SOURCES {
        let source = world.source().build().unwrap();
        workers.spawn(work(source, name, sender.clone()));
    }
    drop(sender);
    let mut taken_by: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let mut published = 0;
    let sharing = async {
        // This server gives a burst to whichever stream it likes: bursts until each had one.
        while taken_by.len() < SOURCES || published < 300 {
            world.publish_numbers(published..published + 20).await;
            published += 20;
            while taken_by.values().map(Vec::len).sum::<usize>()
                < usize::try_from(published).unwrap()
            {
                let (name, number) = got.recv().await.expect("the sources live");
                taken_by.entry(name).or_default().push(number);
            }
        }
    };
    tokio::time::timeout(LONG, sharing).await.unwrap();
    drop(got);
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    let mut all = taken_by.into_values().flatten().collect::<Vec<_>>();
    all.sort_unstable();
    assert_eq!(all, (0..published).collect::<Vec<_>>());
    world.assert_all_acknowledged().await;
    world.delete().await;
}
