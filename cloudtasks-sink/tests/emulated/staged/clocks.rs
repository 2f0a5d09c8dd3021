//! A service whose clock is not ours.

use std::time::Duration;

use cloudtasks_sink::{Batch, SinkError};

use super::{HOUR, Stage, pass, run};
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);

/// Commits three tasks by a clock that is `step` seconds ahead of the server's.
async fn error_of(stage: Stage, batch: Option<Batch>, step: i64) -> Option<SinkError> {
    stage.step_clock(step);
    let mut builder = stage.sink();
    if let Some(batch) = batch {
        builder = builder.batching(batch);
    }
    let mut running = run(builder);
    running.feed(0..3).await;
    running.snapshot(1).await;
    drop(running.commit(1));
    pass(30 * SECOND).await;
    running.sink.ready().await.err()
}

fn assert_apart(error: Option<SinkError>, seconds: u64) {
    match error {
        Some(SinkError::ClockApart { apart }) => {
            assert!(apart.as_secs().abs_diff(seconds) <= 1, "{apart:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_far_apart_end_the_sink_with_their_distance() {
    for batch in [None, Some(Batch::up_to(2))] {
        for step in [-120, 120] {
            assert_apart(error_of(Stage::new(), batch, step).await, 120);
        }
    }
}

/// The operation says when it began, before it says what it made.
#[tokio::test(start_paused = true)]
async fn an_operation_that_is_not_done_tells_the_clock_too() {
    for step in [-120, 120] {
        let stage = Stage::of(World::with(|emulator| {
            emulator.task_names_kept(HOUR).operations_take(20 * SECOND)
        }));
        assert_apart(error_of(stage, Some(Batch::up_to(2)), step).await, 120);
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_are_a_little_apart_are_none_the_worse() {
    for batch in [None, Some(Batch::up_to(2))] {
        for step in [-45, 45] {
            let error = error_of(Stage::new(), batch, step).await;
            assert!(error.is_none(), "{error:?}");
        }
    }
}
