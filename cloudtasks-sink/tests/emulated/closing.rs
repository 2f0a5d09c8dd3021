//! How a sink ends.

use std::time::Duration;

use cloudtasks_sink::SinkError;
use connector_core::{Budget, Checkpoint, CheckpointError, Epoch, Limits};
use futures::{FutureExt, SinkExt};
use gcp_emulator::{Fault, Method, Rule};
use tokio::time::Instant;

use crate::world::{Lines, Q1, World, chain, order, orders, send};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn records_written_just_before_close_are_created() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    for order in orders(0..3) {
        sink.feed(order).await.unwrap();
    }
    sink.close().await.unwrap();
    assert_eq!(world.bodies(Q1), ["0", "1", "2"]);
    sink.close().await.unwrap();
    let late = sink.feed(order("late")).await.unwrap_err();
    assert!(matches!(late, SinkError::Closed { .. }), "{late}");
    assert!(chain(&late).contains("the host closed the sink"), "{late}");
    let receipt = sink.snapshot(Epoch::new(1));
    assert!(matches!(receipt.await, Err(CheckpointError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_dropped_still_creates_what_it_accepted_while_the_runtime_lives() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    for order in orders(0..3) {
        sink.feed(order).await.unwrap();
    }
    drop(sink);
    let created = world
        .emulator
        .wait_until(|seen| seen.queue(Q1).tasks == 3, 5 * SECOND)
        .await;
    assert!(created);
}

#[tokio::test(start_paused = true)]
async fn close_returns_within_its_time_and_says_how_many_records_have_no_verdict() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).then(Fault::Never));
    let mut sink = world.sink().close_timeout(5 * SECOND).build().unwrap();
    for order in orders(0..5) {
        sink.feed(order).await.unwrap();
    }
    let before = Instant::now();
    let error = sink.close().await.unwrap_err();
    assert_eq!(before.elapsed().as_secs(), 5);
    assert!(
        matches!(error, SinkError::CloseExpired { pending: 5, .. }),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn dropping_close_half_way_changes_nothing_but_what_is_learnt() {
    let world = World::new();
    let slow = Fault::Delay(2 * SECOND);
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).then(slow));
    let mut sink = world.sink().build().unwrap();
    sink.feed(order("1")).await.unwrap();
    assert!(sink.close().now_or_never().is_none());
    sink.close().await.unwrap();
    assert_eq!(world.bodies(Q1), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_gone_is_told_and_never_mistaken_for_a_slow_one() {
    let world = World::new();
    let (mut sink, driver) = world.sink().build_with_driver().unwrap();
    sink.feed(order("1")).await.unwrap();
    let snapshot = sink.snapshot(Epoch::new(1));
    drop(driver);
    let error = snapshot.await.unwrap_err();
    assert!(
        chain(&error).contains("driver is gone"),
        "{}",
        chain(&error)
    );
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::Closed { .. }), "{error:?}");
    assert!(
        chain(&error).contains("driver is gone"),
        "{}",
        chain(&error)
    );
    assert!(sink.close().await.is_err());
    assert_eq!(world.creates(), 0);
}

#[test]
fn a_runtime_that_is_gone_fails_the_checkpoint_and_close_instead_of_hanging_them() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
    };
    let first = runtime().unwrap();
    let (world, mut sink) = first.block_on(async {
        let world = World::new();
        let mut sink = world.sink().build().unwrap();
        sink.feed(order("1")).await.unwrap();
        (world, sink)
    });
    drop(first);
    runtime().unwrap().block_on(async {
        let error = sink.snapshot(Epoch::new(1)).await.unwrap_err();
        assert!(
            chain(&error).contains("driver is gone"),
            "{}",
            chain(&error)
        );
        let error = sink.close().await.unwrap_err();
        assert!(
            chain(&error).contains("driver is gone"),
            "{}",
            chain(&error)
        );
    });
    drop(world);
}

#[tokio::test(start_paused = true)]
async fn a_sink_dropped_with_records_on_their_way_says_so_and_one_that_owes_nothing_does_not() {
    let world = World::new();
    let lines = Lines::default();
    let _scope = crate::listening::listen(lines.clone());
    let mut idle = world.sink().build().unwrap();
    send(&mut idle, [order("1")]).await.unwrap();
    drop(idle);
    assert_eq!(lines.count(), 0);
    let mut busy = world.sink().build().unwrap();
    busy.feed(order("2")).await.unwrap();
    drop(busy);
    assert_eq!(lines.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_may_place_the_driver_itself() {
    let world = World::new();
    let (mut sink, driver) = world.sink().build_with_driver().unwrap();
    let host = async {
        send(&mut sink, orders(0..3)).await.unwrap();
        sink.close().await.unwrap();
    };
    tokio::join!(driver, host);
    assert_eq!(world.bodies(Q1).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_hosts_handler_ends_the_sink_with_its_message() {
    struct Panics;

    impl connector_core::FailureHandler for Panics {
        fn handle(
            &mut self,
            _rejected: connector_core::Rejected,
        ) -> connector_core::Receipt<connector_core::Verdict> {
            panic!("the handler's own bug");
        }

        fn flush(&mut self) -> connector_core::Receipt<()> {
            connector_core::Receipt::ready(())
        }
    }

    let world = World::new();
    let mut sink = world.tasks().on_rejected(Panics).build().unwrap();
    let bad = cloudtasks_sink::HttpTask::post("https://h/")
        .unwrap()
        .segment("..");
    let error = send(&mut sink, [bad]).await.unwrap_err();
    assert!(matches!(error, SinkError::Panicked { .. }), "{error:?}");
    assert!(
        error.to_string().contains("the handler's own bug"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_shared_and_given_back_in_full() {
    let world = World::new();
    let budget = Budget::new(Limits::new(8, 1 << 20));
    let one = world.sink().instance("one").budget(budget.clone()).build();
    let two = world.sink().instance("two").budget(budget.clone()).build();
    let (mut one, mut two) = (one.unwrap(), two.unwrap());
    for order in orders(0..50) {
        one.feed(order.clone()).await.unwrap();
        two.feed(order).await.unwrap();
        assert!(budget.held().items <= 8, "{:?}", budget.held());
    }
    one.flush().await.unwrap();
    two.close().await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 100);
    assert_eq!(budget.held(), Limits::new(0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_waits_long_for_room_says_so() {
    let world = World::new();
    let lines = Lines::default();
    let _scope = crate::listening::listen(lines.clone());
    let slow = Fault::Delay(15 * SECOND);
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).once().then(slow));
    let mut sink = world.sink().in_flight(1).build().unwrap();
    sink.feed(order("1")).await.unwrap();
    let waiting = tokio::time::timeout(9 * SECOND, sink.feed(order("2"))).await;
    assert!(waiting.is_err());
    assert_eq!(lines.count(), 0);
    sink.feed(order("2")).await.unwrap();
    assert_eq!(lines.count(), 1);
    sink.close().await.unwrap();
    assert_eq!(world.bodies(Q1), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_fails_gives_its_room_back() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).then(Fault::Never));
    let budget = Budget::new(Limits::new(3, 1 << 20));
    let mut sink = world
        .sink()
        .budget(budget.clone())
        .progress_timeout(30 * SECOND)
        .build()
        .unwrap();
    for order in orders(0..3) {
        sink.feed(order).await.unwrap();
    }
    let error = sink.feed(order("waits for room")).await.unwrap_err();
    assert!(
        matches!(error, SinkError::Stalled { pending: 3, .. }),
        "{error:?}"
    );
    assert_eq!(budget.held(), Limits::new(0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_record_given_without_room_is_refused_and_the_sink_goes_on() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).then(Fault::Delay(SECOND)));
    let mut sink = world.sink().in_flight(1).build().unwrap();
    sink.feed(order("1")).await.unwrap();
    let refused = sink.start_send_unpin(order("2")).unwrap_err();
    assert!(matches!(refused, SinkError::NotReady), "{refused:?}");
    assert!(matches!(
        sink.submit(order("2")).await,
        Ok(cloudtasks_sink::Submitted::NotAccepted)
    ));
    sink.send(order("3")).await.unwrap();
    assert_eq!(world.bodies(Q1), ["1", "3"]);
}

#[tokio::test(start_paused = true)]
async fn one_record_larger_than_the_limit_in_bytes_still_goes_through() {
    let world = World::new();
    let mut sink = world
        .tasks()
        .limits(Limits::new(10, 1_000))
        .build()
        .unwrap();
    let large = cloudtasks_sink::HttpTask::post("https://h/")
        .unwrap()
        .body(vec![b'a'; 100_000]);
    send(&mut sink, [large.clone(), large]).await.unwrap();
    assert_eq!(sink.stats().created, 2);
}
