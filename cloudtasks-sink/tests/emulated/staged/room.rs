//! How much is staged, and who makes room.

use std::time::Duration;

use cloudtasks_sink::SinkError;
use connector_core::host::{Admission, Room};
use connector_core::{Checkpoint, Epoch, Limits};
use futures::future::poll_fn;
use futures::{FutureExt, SinkExt};
use gcp_emulator::{Fault, Method, Rule};

use super::{Running, Stage, pass, run, settled};
use crate::world::{Q1, order};

fn room(running: &mut Running) -> Option<Room> {
    poll_fn(|cx| running.sink.poll_room(cx))
        .now_or_never()
        .transpose()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn half_a_stage_wants_a_checkpoint_and_a_full_one_takes_a_snapshot() {
    let stage = Stage::new();
    let mut running = run(stage.sink().stage(Limits::items(10)));
    running.feed(0..4).await;
    assert_eq!(room(&mut running), Some(Room::Ready));
    running.feed(4..5).await;
    assert_eq!(room(&mut running), Some(Room::CheckpointWanted));
    assert_eq!(room(&mut running), Some(Room::Ready), "told once");
    running.feed(5..10).await;
    assert_eq!(room(&mut running), None, "full");
    // The host's loop is not stuck in a send: it can always cut, and that makes room.
    running.checkpoint(1).await;
    assert_eq!(room(&mut running), Some(Room::Ready));
    running.feed(10..15).await;
    running.checkpoint(2).await;
    assert_eq!(stage.world.created(Q1).len(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_host_of_one_task_a_stage_goes_on() {
    let stage = Stage::new();
    let mut running = run(stage.sink().stage(Limits::items(1)));
    for epoch in 1..20 {
        running.feed([u32::try_from(epoch).unwrap()]).await;
        assert_eq!(room(&mut running), Some(Room::CheckpointWanted));
        running.checkpoint(epoch).await;
    }
    assert_eq!(stage.world.created(Q1).len(), 19);
}

#[tokio::test(start_paused = true)]
async fn a_full_stage_without_a_checkpoint_is_an_error_and_not_silence() {
    let stage = Stage::new();
    let mut running = run(stage.sink().stage(Limits::items(3)));
    running.feed(0..3).await;
    let started = tokio::time::Instant::now();
    match running.sink.feed(order("more")).await {
        Err(error @ SinkError::StageFull { items: 3, .. }) => {
            let text = error.to_string();
            assert!(text.contains("stage") && text.contains("600s"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(started.elapsed(), Duration::from_secs(600));
    assert!(stage.world.bodies(Q1).is_empty(), "nothing got out");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cuts_is_given_time_as_long_as_it_cuts() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    let never = faults.add(Rule::on(Method::CreateTask).then(Fault::Never));
    let mut running = run(stage.sink().stage(Limits::items(3)));
    running.feed(0..3).await;
    running.snapshot(1).await;
    let commit = running.commit(1);
    for epoch in 2..12 {
        let full = tokio::time::timeout(Duration::from_secs(200), running.sink.ready()).await;
        assert!(full.is_err(), "full of what is committed");
        drop(running.sink.snapshot(Epoch::new(epoch)).await.unwrap());
    }
    faults.remove(never);
    assert_eq!(settled(commit).await.settled, 3);
    running.feed(3..4).await;
    running.checkpoint(12).await;
    assert_eq!(stage.world.created(Q1).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_flush_resolves_when_everything_is_staged() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..3).await;
    running.sink.flush().await.unwrap();
    assert_eq!(running.sink.stats().staged, 3);
    pass(Duration::from_secs(60)).await;
    assert!(stage.world.bodies(Q1).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_restore_brings_counts_as_staged() {
    let stage = Stage::new();
    let mut first = run(stage.sink().stage(Limits::items(3)));
    first.feed(0..3).await;
    let saved = first.snapshot(1).await;
    stage.crash(first).await;
    let faults = stage.world.emulator.faults();
    let never = faults.add(Rule::on(Method::CreateTask).then(Fault::Never));
    let mut second = run(stage.sink().stage(Limits::items(3)).restore(Some(saved)));
    assert_eq!(room(&mut second), None);
    faults.remove(never);
    settled(second.sink.restored()).await;
    assert_eq!(room(&mut second), Some(Room::Ready));
    assert_eq!(second.sink.stats().pending_bytes, 0);
}
