//! How a source ends, and what others get then.

use std::time::Duration;

use connector_core::{Checkpoint, CheckpointError, Epoch};
use futures::StreamExt;
use gcp_emulator::{Body, Code, Fault, Method, Rule};
use pubsub_source::SourceError;

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_source_that_is_dropped_gives_everything_back_at_once() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 600,
    );
    world.publish(0..10);
    let mut source = world.source().max_extension(SECOND * 600).build().unwrap();
    read(&mut source, 4).await;
    drop(source);
    let mut other = world.source().build().unwrap();
    let all = tokio::time::timeout(SECOND * 5, read(&mut other, 10)).await;
    assert_eq!(sorted(all.unwrap()), (0..10).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_host_gives_everything_back_too() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 600,
    );
    world.publish(0..10);
    let mut source = world.source().max_extension(SECOND * 600).build().unwrap();
    let host = tokio::spawn(async move {
        read(&mut source, 10).await;
        panic!("the operator failed");
    });
    assert!(host.await.is_err());
    let mut other = world.source().build().unwrap();
    let all = tokio::time::timeout(SECOND * 5, read(&mut other, 10)).await;
    assert_eq!(all.unwrap().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn close_acknowledges_what_was_committed_and_gives_the_rest_back_in_chunks() {
    let world = World::with(|server| server.ack_id_length(500), |_| {});
    world.publish(0..5000);
    let mut source = world.source().first_outstanding(10_000).build().unwrap();
    read(&mut source, 1000).await;
    seal(&mut source, 1).await;
    read(&mut source, 500).await;
    seal(&mut source, 2).await;
    read(&mut source, 500).await;
    let receipt = source.commit(Epoch::new(1));
    source.close().await.unwrap();
    assert_eq!(receipt.await.unwrap().settled, 1000);

    let record = world.record();
    assert_eq!(record.acks, 1000);
    assert_eq!(
        record.nacks,
        record.delivered - 1000,
        "each of the others once"
    );
    assert!(source.next().await.is_none());
    let seen = world.emulator.observe();
    for call in seen.requests_of(Method::ModifyAckDeadline) {
        assert!(call.encoded_len <= 512_000);
        assert!(matches!(&call.body, Body::ModifyAckDeadline(request)
            if request.ack_deadline_seconds == 0 && request.ack_ids.len() <= 1000));
    }
}

/// A server that has not taken notice of the half-close has a stream to deliver on, and delivers what
/// it is given back at once, as another attempt.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_notice_the_half_close_delivers_nothing_in_circles() {
    let world = World::new();
    let stuck = Rule::on(Method::StreamingPull).then(Fault::StopReading(1));
    world.emulator.faults().add(stuck);
    world.publish(0..10);
    let mut source = world.source().build().unwrap();
    read(&mut source, 4).await;
    let started = tokio::time::Instant::now();
    source.close().await.unwrap();
    assert!(started.elapsed() <= SECOND * 2, "{:?}", started.elapsed());
    let record = world.record();
    assert_eq!((record.delivered, record.nacks), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn after_close_every_call_answers_closed() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    let message = next(&mut source).await;
    seal(&mut source, 1).await;
    source.close().await.unwrap();
    let snapshot = source.snapshot(Epoch::new(2)).await.unwrap_err();
    assert!(matches!(snapshot, CheckpointError::Closed { .. }));
    let commit = source.commit(Epoch::new(1)).await.unwrap_err();
    assert!(matches!(commit, CheckpointError::Closed { .. }));
    source.abort(Epoch::new(1));
    let settled = source.settle(message.delivery(), pubsub_source::Disposition::Ack);
    assert!(matches!(
        settled,
        Err(pubsub_source::SettleError::Closed { .. })
    ));
    source.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_close_that_cannot_finish_says_what_is_open() {
    let world = World::new();
    world.publish(0..10);
    let mut source = world.source().close_budget(SECOND * 3).build().unwrap();
    read(&mut source, 4).await;
    seal(&mut source, 1).await;
    world
        .emulator
        .faults()
        .add(Rule::on_any().then(Fault::Never));
    let receipt = source.commit(Epoch::new(1));
    let started = tokio::time::Instant::now();
    let error = source.close().await.unwrap_err();
    assert!(started.elapsed() <= SECOND * 4);
    let SourceError::CloseTimedOut {
        acknowledgements,
        releases,
        ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!((acknowledgements, releases), (4, 6));
    let unresolved = receipt.await.unwrap_err();
    assert!(matches!(unresolved, CheckpointError::Closed { .. }));
}

#[tokio::test(start_paused = true)]
async fn closing_before_the_first_poll_is_no_work() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    source.close().await.unwrap();
    assert!(source.next().await.is_none());
    assert_eq!(world.emulator.observe().connections_opened, 0);
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_that_is_committed_just_before_the_drop_reaches_the_service() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    drop(source.commit(Epoch::new(1)));
    drop(source);
    world.until_acked(1).await;
}

/// Whoever wants to wait for ever says so with the longest time there is.
#[tokio::test(start_paused = true)]
async fn times_beyond_all_clocks_are_never_over() {
    let world = World::new();
    world.publish(0..10);
    let mut source = world
        .source()
        .max_hold(Duration::MAX)
        .stall_after(Duration::MAX)
        .confirm_acks(Duration::MAX)
        .close_budget(Duration::MAX)
        .build()
        .unwrap();
    read(&mut source, 4).await;
    seal(&mut source, 1).await;
    tokio::time::sleep(SECOND * 7200).await;
    assert_eq!(commit(&mut source, 1).await.settled, 4);
    let down = Rule::on(Method::ModifyAckDeadline).times(6);
    let down = down.then(Fault::answer(Code::Unavailable, ""));
    world.emulator.faults().add(down);
    source.close().await.unwrap();
    assert_eq!(world.record().nacks, 6);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_tried_again() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 600,
    );
    world.publish(0..10);
    let mut source = world.source().max_extension(SECOND * 600).build().unwrap();
    read(&mut source, 10).await;
    world.emulator.faults().add(
        Rule::on(Method::ModifyAckDeadline)
            .times(2)
            .then(Fault::answer(Code::Unavailable, "")),
    );
    source.close().await.unwrap();
    assert_eq!(world.record().nacks, 10);
}
