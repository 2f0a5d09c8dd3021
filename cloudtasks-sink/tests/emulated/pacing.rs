//! How fast tasks are created: ramps, limits, and too few streams.

use std::time::Duration;

use cloudtasks_sink::{Batch, BuildError, Ramp};
use connector_core::{Checkpoint, Epoch, Limits};
use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::staged::{Stage, WINDOW, pass, run};
use crate::world::{Lines, Q1, Q2, World, orders, queue, send};

/// How long 4,000 tasks take where each takes 20 ms and a connection has 100 streams.
async fn creating_over(channels: usize) -> f64 {
    let world = World::with(|builder| builder.max_concurrent_streams(100));
    let slow = Rule::on(Method::CreateTask).then(Fault::Delay(Duration::from_millis(20)));
    world.emulator.faults().add(slow);
    let sink = world.sink().channels(channels).limits(Limits::items(1_600));
    let mut sink = sink.build().unwrap();
    let start = tokio::time::Instant::now();
    send(&mut sink, orders(0..4_000)).await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 4_000);
    start.elapsed().as_secs_f64()
}

#[tokio::test(start_paused = true)]
async fn eight_channels_create_seven_times_as_many_tasks_as_one_and_more() {
    let (one, eight) = (creating_over(1).await, creating_over(8).await);
    assert!(one >= 0.8, "40 rounds of 100: {one} s");
    assert!(one >= 7.0 * eight, "{one} s and {eight} s");
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_for_each_queue_by_itself() {
    let world = World::new();
    let mut sink = world.sink().queue_rate(10.0).build().unwrap();
    let mut records = orders(0..200);
    for order in records.iter_mut().skip(100) {
        order.queue = queue(Q2);
    }
    let start = tokio::time::Instant::now();
    send(&mut sink, records).await.unwrap();
    let took = start.elapsed().as_secs_f64();
    assert!((9.5..11.0).contains(&took), "{took}");
    assert_eq!((world.bodies(Q1).len(), world.bodies(Q2).len()), (100, 100));
}

#[tokio::test(start_paused = true)]
async fn batches_are_paced_by_their_tasks() {
    let world = World::new();
    let mut sink = world
        .sink()
        .batching(Batch::up_to(100))
        .queue_rate(50.0)
        .build()
        .unwrap();
    let start = tokio::time::Instant::now();
    send(&mut sink, orders(0..500)).await.unwrap();
    let took = start.elapsed().as_secs_f64();
    assert!((9.0..11.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_ramp_lets_half_as_many_again_through_in_each_span() {
    let world = World::new();
    let span = Duration::from_secs(10);
    let mut sink = world
        .sink()
        .ramp(Ramp::new(20.0, 1.5, span))
        .build()
        .unwrap();
    let start = world.emulator.now();
    send(&mut sink, orders(0..1_000)).await.unwrap();
    let mut counts = [0usize; 4];
    for task in world.created(Q1) {
        let index = task.at.since(start).as_millis() / span.as_millis();
        if let Some(count) = counts.get_mut(usize::try_from(index).unwrap()) {
            *count += 1;
        }
    }
    for (count, expected) in counts.iter().zip([200usize, 300, 450]) {
        assert!(count.abs_diff(expected) <= 12, "{counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_its_turn_in_the_pace() {
    let world = World::new();
    let unavailable = Fault::answer(Code::Unavailable, "not now");
    let rule = Rule::on(Method::CreateTask).times(10).then(unavailable);
    world.emulator.faults().add(rule);
    let mut sink = world.sink().queue_rate(1.0).build().unwrap();
    let start = tokio::time::Instant::now();
    send(&mut sink, orders(0..10)).await.unwrap();
    let took = start.elapsed().as_secs_f64();
    assert!((18.5..21.0).contains(&took), "twenty attempts: {took}");
    assert_eq!(sink.stats().attempts, 20);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_covers_records_that_wait_for_their_turn() {
    let world = World::new();
    let mut sink = world.sink().queue_rate(5.0).build().unwrap();
    for order in orders(0..20) {
        sink.feed(order).await.unwrap();
    }
    let epoch = Epoch::default().next();
    sink.snapshot(epoch).await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 20);
    assert_eq!(sink.stats().held_back, 0);
    sink.commit(epoch).await.unwrap();
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_pace_nothing_waits() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    let start = tokio::time::Instant::now();
    send(&mut sink, orders(0..5_000)).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_pace_that_would_end_the_sink_is_refused() {
    let world = World::new();
    let slow = Ramp::new(0.001, 2.0, Duration::from_secs(60));
    let refused = world.sink().ramp(slow).build().map(drop).unwrap_err();
    assert!(
        matches!(
            refused,
            BuildError::Pace {
                setting: "ramp",
                ..
            }
        ),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_that_wait_long_for_a_stream_are_told_once_with_the_rule() {
    let world = World::new();
    let slow = Fault::Delay(Duration::from_secs(10));
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).then(slow));
    let lines = Lines::default();
    let _told = crate::listening::listen(lines.clone());
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, orders(0..250)).await.unwrap();
    assert_eq!(lines.count(), 0, "half a minute is not over");
    send(&mut sink, orders(250..900)).await.unwrap();
    assert_eq!(lines.count(), 1);
    send(&mut sink, orders(900..1_800)).await.unwrap();
    assert_eq!(lines.count(), 1, "once an hour");
}

#[tokio::test(start_paused = true)]
async fn a_cap_above_what_the_channels_carry_is_told_when_it_was_set_by_hand() {
    let world = World::new();
    let lines = Lines::default();
    let _told = crate::listening::listen(lines.clone());
    drop(world.sink().build().unwrap());
    assert_eq!(lines.count(), 0, "the default is not the host's doing");
    drop(world.sink().in_flight(100).build().unwrap());
    drop(world.sink().channels(3).in_flight(300).build().unwrap());
    let batches = world.sink().batching(Batch::up_to(100)).in_flight(10_000);
    drop(batches.build().unwrap());
    assert_eq!(lines.count(), 0, "the channels carry them");
    drop(world.sink().in_flight(101).build().unwrap());
    let limits = Limits::new(301, 1 << 20);
    drop(world.sink().channels(3).limits(limits).build().unwrap());
    assert_eq!(lines.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn committed_tasks_that_wait_for_their_turn_are_kept_once_it_is_too_late_for_them() {
    let stage = Stage::new();
    let mut running = run(stage.sink().queue_rate(0.01));
    running.feed(0..100).await;
    let _durable = running.snapshot(1).await;
    let _receipt = running.sink.commit(Epoch::new(1));
    pass(WINDOW + Duration::from_secs(150)).await;
    let (created, kept) = (stage.world.created(Q1).len(), running.sink.expired().len());
    assert!((29..=32).contains(&created), "one in 100 s: {created}");
    assert_eq!(
        created + kept,
        100,
        "and none of the others waits for a turn"
    );
    assert_eq!(running.sink.stats().held_back, 0);
}
