//! How a run ends.

use std::time::Duration;

use checkpoint_store::{CheckpointStore, MemoryPlace, Progress};
use cloudtasks_sink::{SinkError, SinkState, Submitted};
use connector_core::host::{Keep, finish};
use connector_core::{Epoch, Restored};
use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};

use super::{HOUR, Running, Stage, pass};
use crate::world::{Q1, order};

/// Ends a run into a store.
async fn finish_into(running: &mut Running, place: &MemoryPlace, newest: Epoch) -> Epoch {
    let mut store = place.open();
    let finished = finish(&mut running.sink, newest, async |step| match step {
        Keep::Save(epoch, state) => {
            let bytes = postcard::to_stdvec(&state).unwrap();
            store.save(epoch, bytes.into()).await
        }
        Keep::Committing(epoch) => store.committing(epoch).await,
        Keep::Settled(epoch) => store.settled(epoch).await,
    });
    finished.await.unwrap().epoch
}

async fn newest(place: &MemoryPlace) -> Restored<SinkState> {
    let saved = place.open().newest().await.unwrap().unwrap();
    saved.map(|bytes| postcard::from_bytes(&bytes).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_finished_run_owes_nothing_however_late_the_next_one_starts() {
    let stage = Stage::new();
    let place = MemoryPlace::new();
    let mut first = stage.start(None);
    first.feed(0..20).await;
    let epoch = finish_into(&mut first, &place, Epoch::default()).await;
    first.sink.close().await.unwrap();
    assert_eq!(place.progress(), Some((epoch, Progress::Settled)));
    assert_eq!(stage.world.created(Q1).len(), 20);
    let creates = stage.world.creates();
    pass(24 * HOUR).await;
    let mut second = stage.start(Some(newest(&place).await));
    pass(HOUR).await;
    assert_eq!(stage.world.creates(), creates);
    second.feed(20..21).await;
    finish_into(&mut second, &place, epoch).await;
    assert_eq!(stage.world.created(Q1).len(), 21);
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_step_of_finishing_repeats_nothing_within_the_window() {
    for stop_after in 0..3 {
        let stage = Stage::new();
        let place = MemoryPlace::new();
        let mut first = stage.start(None);
        first.feed(0..4).await;
        let mut store = place.open();
        let mut steps = 0;
        let outcome = finish(&mut first.sink, Epoch::default(), async |step| {
            if steps == stop_after {
                return Err(std::io::Error::other("the process dies here"));
            }
            steps += 1;
            let kept = match step {
                Keep::Save(epoch, state) => {
                    let bytes = postcard::to_stdvec(&state).unwrap();
                    store.save(epoch, bytes.into()).await
                }
                Keep::Committing(epoch) => store.committing(epoch).await,
                Keep::Settled(epoch) => store.settled(epoch).await,
            };
            kept.map_err(std::io::Error::other)
        })
        .await;
        assert!(outcome.is_err());
        stage.crash(first).await;
        pass(HOUR / 2).await;
        let mut second = if stop_after == 0 {
            stage.start(None)
        } else {
            stage.start(Some(newest(&place).await))
        };
        if stop_after == 0 {
            second.feed(0..4).await;
        }
        finish_into(&mut second, &place, Epoch::new(1)).await;
        assert_eq!(stage.world.bodies(Q1), ["0", "1", "2", "3"], "{stop_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_finishes_what_is_committed_and_says_how_much_is_not() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..2).await;
    running.snapshot(1).await;
    drop(running.commit(1));
    running.feed(2..4).await;
    running.snapshot(2).await;
    running.feed(4..5).await;
    match running.sink.close().await {
        Err(error @ SinkError::Uncommitted { staged: 3 }) => {
            assert!(error.to_string().contains("finish()"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.world.bodies(Q1), ["0", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_dropped_still_finishes_what_is_committed() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..3).await;
    running.snapshot(1).await;
    drop(running.commit(1));
    running.feed(3..4).await;
    let Running { sink, driver } = running;
    drop(sink);
    pass(Duration::from_secs(60)).await;
    assert_eq!(stage.world.bodies(Q1), ["0", "1", "2"]);
    assert!(driver.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_no_retry_changes_ends_the_sink_and_the_state_has_everything() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    let gone = Fault::answer(Code::Unimplemented, "no such method");
    let rule = faults.add(Rule::on(Method::CreateTask).then(gone));
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let saved = first.snapshot(1).await;
    assert!(first.commit(1).await.is_err());
    let ended = first.sink.feed(order("x")).await;
    assert!(matches!(ended, Err(SinkError::Refused { .. })), "{ended:?}");
    stage.crash(first).await;
    faults.remove(rule);
    let mut second = stage.start(Some(saved));
    assert_eq!(super::settled(second.sink.restored()).await.settled, 3);
}

#[tokio::test(start_paused = true)]
async fn whoever_submits_a_record_hears_of_its_task_after_the_commit() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.sink.ready().await.unwrap();
    let mut created = running.sink.submit(order("1"));
    running.snapshot(1).await;
    pass(HOUR / 2).await;
    assert!(created.try_now().is_none());
    drop(running.commit(1));
    match created.await.unwrap() {
        Submitted::Created { name, .. } => assert_eq!(name, stage.world.created(Q1)[0].name),
        other => panic!("{other:?}"),
    }
}
