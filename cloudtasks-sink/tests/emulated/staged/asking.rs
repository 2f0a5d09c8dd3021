//! What a staged task is made of.

use std::collections::BTreeSet;

use cloudtasks_sink::Batch;
use connector_core::Checkpoint;

use super::{Stage, names, pass, run, settled};
use crate::world::{Kept, LONG, Order, Q1};

#[tokio::test(start_paused = true)]
async fn every_task_has_a_random_name_of_128_bits_and_no_two_are_alike() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..2_000).await;
    let saved = running.snapshot(1).await;
    let ids: BTreeSet<String> = names(&saved)
        .iter()
        .map(|name| name.rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 2_000);
    assert!(ids.iter().all(|id| id.len() == 32));
    // Each of the 32 digits takes every value: none of the bits is fixed.
    for at in 0..32 {
        let digits: BTreeSet<u8> = ids.iter().map(|id| id.as_bytes()[at]).collect();
        assert_eq!(digits.len(), 16, "digit {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn singles_and_batches_send_the_same_bytes_that_were_staged() {
    for batch in [None, Some(Batch::up_to(7))] {
        let stage = Stage::new();
        let mut builder = stage.sink();
        if let Some(batch) = batch {
            builder = builder.batching(batch);
        }
        let mut running = run(builder);
        running.feed(0..50).await;
        let saved = running.snapshot(1).await;
        settled(running.commit(1)).await;
        let created = stage.world.created(Q1);
        assert_eq!(created.len(), 50);
        for task in saved.state.tasks() {
            use prost::Message;
            let there = created.iter().find(|there| there.name == task.name());
            assert_eq!(there.unwrap().sent.encode_to_vec(), *task.task());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_refused_at_the_door_is_the_handlers_and_not_the_states() {
    let stage = Stage::new();
    let kept = Kept::default();
    let mut running = run(stage
        .sink()
        .allow_hosts(["other.example"])
        .on_rejected(kept.clone()));
    running.feed(0..2).await;
    let saved = running.snapshot(1).await;
    assert_eq!(kept.all().len(), 2);
    assert!(saved.state.tasks().is_empty());
    assert_eq!(settled(running.commit(1)).await.settled, 0);
    assert_eq!(stage.world.creates(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_taken_before_it_was_ever_sent_is_counted_apart() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..2).await;
    let saved = first.snapshot(1).await;
    // Somebody else creates the same names: a second owner of the same state.
    let mut twin = stage.start(Some(saved));
    settled(twin.sink.restored()).await;
    settled(first.commit(1)).await;
    let stats = first.sink.stats();
    assert_eq!((stats.duplicates, stats.unexpected_duplicates), (2, 2));
    assert_eq!(stage.world.bodies(Q1), ["0", "1"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_leaves_before_its_commit_however_long_that_takes() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..3).await;
    running.snapshot(1).await;
    pass(24 * LONG).await;
    running.sink.abort(connector_core::Epoch::new(1));
    pass(24 * LONG).await;
    assert_eq!(stage.world.creates(), 0);
    let order = Order {
        id: "last".into(),
        queue: crate::world::queue(Q1),
    };
    running.take(order).await;
    running.checkpoint(2).await;
    assert_eq!(stage.world.created(Q1).len(), 4, "and then all of it does");
}
