//! Where a job begins, and that it begins once.

use std::time::{Duration, SystemTime};

use connector_core::{Checkpoint, CheckpointError, Epoch};
use gcp_emulator::{Body, Fault, Method, Rule, pubsub::proto::seek_request::Target};
use gcp_wire::{
    Connection, ConnectionOptions, Credentials, method::CREATE_SNAPSHOT,
    proto::pubsub::CreateSnapshotRequest,
};
use pubsub_source::{PrepareError, Prepared, StartPosition, SubscriptionCreation, Unrecorded};

use crate::{job::*, world::*};

const SECOND: Duration = Duration::from_secs(1);

fn retaining() -> World {
    World::with(|server| server, |one| one.retain_acked_messages = true)
}

/// Reads and acknowledges so many messages.
async fn acknowledge(world: &World, count: usize) {
    let mut source = world.source().build().unwrap();
    read(&mut source, count).await;
    seal(&mut source, 1).await;
    commit(&mut source, 1).await;
    source.close().await.unwrap();
}

async fn start(world: &World, position: StartPosition, kept: &mut Kept) -> Prepared {
    let prepared = world
        .prepare(&[SUBSCRIPTION], 1)
        .start(position)
        .run(kept)
        .await;
    prepared.unwrap()
}

/// The targets of all seeks that reached the service.
fn targets(world: &World) -> Vec<Target> {
    let seen = world.emulator.observe();
    let target = |call: &gcp_emulator::Call| match &call.body {
        Body::Seek(request) => request.target.clone().unwrap(),
        other => panic!("{other:?}"),
    };
    seen.requests_of(Method::Seek).map(target).collect()
}

#[tokio::test(start_paused = true)]
async fn continuing_goes_on_where_the_subscription_stands_and_never_seeks() {
    let world = retaining();
    world.publish(0..3);
    acknowledge(&world, 3).await;
    world.publish(3..5);
    let prepared = start(&world, StartPosition::Continue, &mut Kept::default()).await;
    let mut source = world.reader(&prepared, 0, 1).build().unwrap();
    assert_eq!(sorted(read(&mut source, 2).await), [3, 4]);
    nothing_for(&mut source, SECOND * 30).await;
    assert_eq!(world.count(Method::Seek), 0);
}

#[tokio::test(start_paused = true)]
async fn earliest_brings_back_what_was_acknowledged() {
    let world = retaining();
    world.publish(0..3);
    acknowledge(&world, 3).await;
    let prepared = start(&world, StartPosition::Earliest, &mut Kept::default()).await;
    let mut source = world.reader(&prepared, 0, 1).build().unwrap();
    assert_eq!(sorted(read(&mut source, 3).await), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_created_subscription_at_earliest_has_the_history_from_before_its_creation() {
    const NEW: &str = "projects/demo-project/subscriptions/new";
    let world = World::new();
    world.create_retaining_topic(OTHER_TOPIC).await;
    world.publish_to(OTHER_TOPIC, 0..5);
    let creation = SubscriptionCreation::builder(OTHER_TOPIC.parse().unwrap())
        .build()
        .unwrap();
    let prepared = world
        .prepare(&[NEW], 1)
        .create(name(NEW), creation)
        .start(StartPosition::Earliest)
        .run(&mut Kept::default())
        .await
        .unwrap();
    world.publish_to(OTHER_TOPIC, 5..7);
    let mut source = world.reader(&prepared, 0, 1).build().unwrap();
    assert_eq!(
        sorted(read(&mut source, 7).await),
        (0..7).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn latest_drops_the_backlog_and_keeps_what_is_published_while_the_start_is_checked() {
    let world = retaining();
    world.publish(0..3);
    let slow = Rule::on(Method::GetSubscription).then(Fault::Delay(SECOND * 5));
    world.emulator.faults().add(slow);
    let mut kept = Kept::default();
    let starting = start(&world, StartPosition::Latest, &mut kept);
    let publishing = async {
        tokio::time::sleep(SECOND * 2).await;
        world.publish(3..5);
    };
    let (prepared, ()) = tokio::join!(starting, publishing);
    world.publish(5..6);
    let mut source = world.reader(&prepared, 0, 1).build().unwrap();
    assert_eq!(sorted(read(&mut source, 3).await), [3, 4, 5]);
    nothing_for(&mut source, SECOND * 30).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_published_at_the_very_timestamp_counts_as_before_it() {
    let world = retaining();
    world.publish(0..1);
    tokio::time::sleep(SECOND).await;
    world.publish(1..2);
    tokio::time::sleep(SECOND).await;
    world.publish(2..3);
    let published = {
        let topic = world.emulator.observe().topic(TOPIC);
        let stamp = topic.messages[1].publish_time.unwrap();
        let since = Duration::new(
            u64::try_from(stamp.seconds).unwrap(),
            u32::try_from(stamp.nanos).unwrap(),
        );
        SystemTime::UNIX_EPOCH + since
    };
    acknowledge(&world, 3).await;
    let position = StartPosition::Timestamp(published);
    let prepared = start(&world, position, &mut Kept::default()).await;
    let mut source = world.reader(&prepared, 0, 1).build().unwrap();
    assert_eq!(read(&mut source, 1).await, [2]);
    nothing_for(&mut source, SECOND * 30).await;
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_brings_back_what_was_unacknowledged_when_it_was_taken() {
    let world = World::new();
    world.publish(0..2);
    let snapshot = "projects/demo-project/snapshots/before";
    let connection = Connection::unary(
        world.endpoint(),
        Credentials::anonymous(),
        ConnectionOptions::default(),
    );
    let request = CreateSnapshotRequest {
        name: snapshot.to_owned(),
        subscription: SUBSCRIPTION.to_owned(),
        ..CreateSnapshotRequest::default()
    };
    let taken = connection
        .unwrap()
        .call(&CREATE_SNAPSHOT, snapshot, request, LONG)
        .await;
    taken.unwrap();
    acknowledge(&world, 2).await;
    let position = StartPosition::Snapshot(snapshot.parse().unwrap());
    let prepared = start(&world, position, &mut Kept::default()).await;
    let mut source = world.reader(&prepared, 0, 1).build().unwrap();
    assert_eq!(sorted(read(&mut source, 2).await), [0, 1]);

    let gone = StartPosition::Snapshot("projects/demo-project/snapshots/gone".parse().unwrap());
    let error = world
        .prepare(&[SUBSCRIPTION], 1)
        .start(gone)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PrepareError::MissingSnapshot { .. }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn many_readers_and_later_ones_and_later_starts_come_of_one_seek() {
    let world = retaining();
    world.publish(0..50);
    acknowledge(&world, 50).await;
    let mut kept = Kept::default();
    let prepared = world
        .prepare(&[SUBSCRIPTION], 4)
        .start(StartPosition::Earliest)
        .run(&mut kept)
        .await
        .unwrap();
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..4 {
        let mut source = world.reader(&prepared, reader, 4).build().unwrap();
        readers.spawn(async move {
            let mut got = Vec::new();
            while let Ok(message) = tokio::time::timeout(SECOND * 5, next(&mut source)).await {
                got.push(number(&message));
            }
            seal(&mut source, 1).await;
            commit(&mut source, 1).await;
            source.close().await.unwrap();
            got
        });
    }
    let got = sorted(readers.join_all().await.concat());
    assert_eq!(got, (0..50).collect::<Vec<_>>(), "each once");

    // One more replica, of what was handed over; and the job again, by its record.
    let mut replica = world.reader(&prepared, 4, 5).build().unwrap();
    nothing_for(&mut replica, SECOND * 30).await;
    let again = world
        .prepare(&[SUBSCRIPTION], 4)
        .start(StartPosition::Latest)
        .run(&mut kept)
        .await;
    assert_eq!(again.unwrap(), prepared);
    assert_eq!(world.count(Method::Seek), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_record_each_start_seeks_again() {
    let world = retaining();
    for start in 1..=3 {
        world
            .prepare(&[SUBSCRIPTION], 1)
            .start(StartPosition::Earliest)
            .run(&mut Unrecorded)
            .await
            .unwrap();
        assert_eq!(world.count(Method::Seek), start);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_dies_anywhere_around_its_seek_seeks_to_the_recorded_moment_again() {
    let deaths = [
        (Fails::AfterSave { done: false }, 0),
        (Fails::Save { done: true }, 1),
    ];
    for (fails, sought) in deaths {
        let world = retaining();
        let mut kept = Kept::default();
        kept.fails(Some(fails));
        let error = world
            .prepare(&[SUBSCRIPTION], 1)
            .start(StartPosition::Latest)
            .run(&mut kept)
            .await
            .unwrap_err();
        let text = error.to_string();
        let expected = match error {
            PrepareError::IntentNotSaved { .. } => 0,
            PrepareError::DoneNotSaved { .. } => 1,
            other => panic!("{other}"),
        };
        assert_eq!(sought, expected, "{text}");
        assert_eq!(world.count(Method::Seek), sought);
        assert!(!kept.record().unwrap().is_done());

        // What is published until the next start is not dropped by it.
        tokio::time::sleep(SECOND * 60).await;
        world.publish(0..3);
        kept.fails(None);
        let prepared = start(&world, StartPosition::Latest, &mut kept).await;
        let all = targets(&world);
        assert_eq!(all.len() as u64, sought + 1);
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        let mut source = world.reader(&prepared, 0, 1).build().unwrap();
        assert_eq!(sorted(read(&mut source, 3).await), [0, 1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sought_that_could_not_be_recorded_before() {
    for fails in [Fails::Load, Fails::Save { done: false }, Fails::Answering] {
        let world = retaining();
        let mut kept = Kept::default();
        kept.fails(Some(fails));
        let begun = tokio::time::Instant::now();
        let error = world
            .prepare(&[SUBSCRIPTION], 1)
            .start(StartPosition::Latest)
            .run(&mut kept)
            .await
            .unwrap_err();
        assert_eq!(world.count(Method::Seek), 0, "{error}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        if fails == Fails::Answering {
            assert_eq!(begun.elapsed().as_secs(), 60);
            assert!(source.contains("within 60s"), "{source}");
        } else {
            assert!(source.contains("the shelf is broken"), "{source}");
        }
    }
}

/// Reads three messages, saves a state that names them, and dies before they are acknowledged.
async fn die_with_a_state(world: &World, prepared: &Prepared) -> pubsub_source::SourceState {
    let reader = world.reader(prepared, 0, 1).max_extension(SECOND * 10);
    let (mut source, driver) = reader.build_with_driver().unwrap();
    let driver = tokio::spawn(driver);
    assert_eq!(sorted(read(&mut source, 3).await), [0, 1, 2]);
    let state = seal(&mut source, 7).await;
    assert_eq!(state.named(), 3);
    driver.abort();
    drop(driver.await);
    state
}

#[tokio::test(start_paused = true)]
async fn what_was_saved_after_the_seek_is_recognised() {
    let world = retaining();
    world.publish(0..3);
    let mut kept = Kept::default();
    let prepared = start(&world, StartPosition::Earliest, &mut kept).await;
    let state = die_with_a_state(&world, &prepared).await;
    // The job starts again by its record.
    let prepared = start(&world, StartPosition::Earliest, &mut kept).await;
    let reader = world.reader(&prepared, 0, 1).restore([restored(7, &state)]);
    let mut source = reader.build().unwrap();
    nothing_for(&mut source, SECOND * 60).await;
    assert_eq!(source.stats().recognised, 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_saved_before_a_seek_is_handed_out_again_and_its_epoch_still_counts() {
    for (first, dies_between) in [
        (StartPosition::Continue, false),
        (StartPosition::Earliest, false),
        (StartPosition::Earliest, true),
    ] {
        let world = retaining();
        world.publish(0..3);
        let mut kept = Kept::default();
        let prepared = start(&world, first, &mut kept).await;
        let state = die_with_a_state(&world, &prepared).await;
        // The operator wants all of it again.
        kept.delete();
        if dies_between {
            kept.fails(Some(Fails::Save { done: true }));
            let cut_short = world
                .prepare(&[SUBSCRIPTION], 1)
                .start(StartPosition::Earliest)
                .run(&mut kept)
                .await;
            cut_short.unwrap_err();
            kept.fails(None);
        }
        let prepared = start(&world, StartPosition::Earliest, &mut kept).await;
        let reader = world.reader(&prepared, 0, 1).restore([restored(7, &state)]);
        let mut source = reader.build().unwrap();
        assert_eq!(sorted(read(&mut source, 3).await), [0, 1, 2]);
        assert_eq!(source.stats().recognised, 0);
        let refused = source.snapshot(Epoch::new(7)).await.unwrap_err();
        assert!(matches!(refused, CheckpointError::OutOfOrder { .. }));

        // From here on states are of after the seek, and are used.
        let state = seal(&mut source, 8).await;
        drop(source);
        let reader = world.reader(&prepared, 0, 1).restore([restored(8, &state)]);
        let mut source = reader.build().unwrap();
        nothing_for(&mut source, SECOND * 60).await;
        assert_eq!(source.stats().recognised, 3);
    }
}
