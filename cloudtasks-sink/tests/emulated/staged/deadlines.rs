//! How long a task may be asked for.

use std::time::Duration;

use cloudtasks_sink::{Batch, BuildError, Resolution};
use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{Code, Fault, Method, Rule};

use super::{HOUR, Stage, WINDOW, pass, run, settled};
use crate::world::{Lines, Q1};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 3_600);

#[tokio::test(start_paused = true)]
async fn a_restore_just_before_the_deadline_creates_and_one_just_after_does_not() {
    for (wait, created) in [(WINDOW - SECOND, 3), (WINDOW + SECOND, 0)] {
        let stage = Stage::new();
        let mut first = stage.start(None);
        first.feed(0..3).await;
        let durable = first.snapshot(1).await;
        stage.crash(first).await;
        pass(wait).await;
        let opened = stage.sink().restore(Some(durable.clone())).build();
        if created > 0 {
            settled(opened.unwrap().restored()).await;
        } else {
            match opened {
                Err(
                    error @ BuildError::Expired {
                        expired: 3,
                        tasks: 3,
                        ..
                    },
                ) => {
                    let text = error.to_string();
                    for way_out in ["keep_expired()", "settled(true)", "name_retention", "1s"] {
                        assert!(text.contains(way_out), "{text}");
                    }
                }
                other => panic!("{other:?}"),
            }
            let mut kept = run(stage.sink().restore(Some(durable)).keep_expired());
            let mut receipt = kept.sink.restored();
            pass(SECOND).await;
            assert!(receipt.try_now().is_none(), "no durable state names them");
            assert_eq!(kept.sink.expired().len(), 3);
            let next = kept.checkpoint(2).await;
            assert_eq!(settled(receipt).await.retained, 3);
            assert_eq!(next.state.kept().len(), 3);
            assert!(next.state.tasks().is_empty());
        }
        assert_eq!(stage.world.created(Q1).len(), created);
    }
}

/// The clean stop: a checkpoint, its commit, its mark.
#[tokio::test(start_paused = true)]
async fn an_epoch_marked_as_settled_is_not_asked_for_again_a_day_later() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let durable = first.checkpoint(1).await;
    first.sink.close().await.unwrap();
    let creates = stage.world.creates();
    pass(DAY).await;
    let mut second = stage.start(Some(durable.settled(true)));
    assert_eq!(settled(second.sink.restored()).await.total(), 0);
    pass(HOUR).await;
    assert_eq!(stage.world.creates(), creates, "nothing is asked for");
    assert!(second.sink.expired().is_empty());
    second.feed(3..5).await;
    second.checkpoint(2).await;
    assert_eq!(stage.world.bodies(Q1), ["0", "1", "2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_the_mark_is_as_good_as_a_clean_stop() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let durable = first.checkpoint(1).await;
    // Accepted and not sealed: the source gives them again.
    first.feed(3..5).await;
    stage.crash(first).await;
    for task in stage.world.created(Q1) {
        stage.world.emulator.finish_task(&task.name);
    }
    let creates = stage.world.creates();
    pass(DAY).await;
    let mut second = stage.start(Some(durable.settled(true)));
    pass(HOUR).await;
    assert_eq!(stage.world.creates(), creates);
    second.feed(3..5).await;
    second.checkpoint(2).await;
    assert_eq!(stage.world.bodies(Q1), ["0", "1", "2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_have_sent_has_no_deadline() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let durable = first.snapshot(1).await;
    stage.crash(first).await;
    pass(10 * HOUR).await;
    let refused = stage.sink().restore(Some(durable.clone())).build();
    assert!(
        matches!(refused, Err(BuildError::Expired { .. })),
        "{refused:?}"
    );
    let mut second = stage.start(Some(durable.committing(false)));
    assert_eq!(settled(second.sink.restored()).await.settled, 3);
    assert_eq!(stage.world.bodies(Q1), ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_mark_says_nothing_of_what_was_committed_before_the_cut() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    faults.add(Rule::on(Method::CreateTask).then(Fault::Never));
    let mut first = stage.start(None);
    first.feed(0..2).await;
    first.snapshot(1).await;
    drop(first.commit(1));
    first.feed(2..5).await;
    let durable = first.snapshot(2).await;
    stage.crash(first).await;
    pass(10 * HOUR).await;
    match stage
        .sink()
        .restore(Some(durable.committing(false)))
        .build()
    {
        Err(BuildError::Expired { expired, tasks, .. }) => assert_eq!((expired, tasks), (2, 5)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_seal_counts_from_the_last_cut_before_the_commit() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..2).await;
    first.snapshot(1).await;
    first.sink.abort(Epoch::new(1));
    pass(10 * HOUR).await;
    let durable = first.snapshot(2).await;
    stage.crash(first).await;
    pass(WINDOW - SECOND).await;
    let mut second = stage.start(Some(durable));
    assert_eq!(settled(second.sink.restored()).await.settled, 2);
}

/// The service is down for an hour; a clock that jumps does the same in a moment.
#[tokio::test(start_paused = true)]
async fn past_the_deadline_nothing_more_is_sent_single_or_in_batches() {
    for batch in [None, Some(Batch::up_to(3))] {
        let stage = Stage::new();
        let faults = stage.world.emulator.faults();
        let down = || Fault::answer(Code::Unavailable, "down");
        for method in [Method::CreateTask, Method::BatchCreateTasks] {
            faults.add(Rule::on(method).then(down()));
        }
        let mut builder = stage.sink();
        if let Some(batch) = batch {
            builder = builder.batching(batch);
        }
        let mut running = run(builder);
        running.feed(0..7).await;
        running.snapshot(1).await;
        let receipt = running.commit(1);
        pass(WINDOW / 2).await;
        assert!(
            running.sink.expired().is_empty(),
            "tried until the deadline"
        );
        stage.step_clock(i64::try_from(WINDOW.as_secs()).unwrap());
        pass(Duration::from_secs(60)).await;
        let calls = || {
            let seen = stage.world.emulator.observe();
            seen.count(Method::CreateTask) + seen.count(Method::BatchCreateTasks)
        };
        let before = calls();
        assert_eq!(running.sink.expired().len(), 7);
        running.snapshot(2).await;
        drop(running.commit(2));
        assert_eq!(settled(receipt).await.retained, 7);
        pass(10 * HOUR).await;
        assert_eq!(calls(), before, "{batch:?}");
        assert_eq!(running.sink.stats().expired, 7);
    }
}

#[tokio::test(start_paused = true)]
async fn the_nearest_deadline_is_told_before_it_is_over() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    let down = faults.add(Rule::on(Method::CreateTask).then(Fault::answer(Code::Unavailable, "")));
    let mut running = stage.start(None);
    let told = |running: &super::Running| {
        let used = running.sink.stats().window_used_percent;
        (running.sink.next_deadline().is_some(), used)
    };
    running.feed(0..2).await;
    pass(WINDOW / 2).await;
    assert_eq!(
        told(&running),
        (false, 0),
        "what is not committed is not late"
    );
    let sealed = stage.today();
    running.snapshot(1).await;
    let first = running.commit(1);
    pass(WINDOW / 2).await;
    running.feed(2..4).await;
    running.snapshot(2).await;
    let second = running.commit(2);
    pass(WINDOW / 4).await;
    assert_eq!(running.sink.next_deadline(), Some(sealed + WINDOW));
    assert_eq!(told(&running), (true, 75), "by the oldest of them");
    faults.remove(down);
    settled(first).await;
    settled(second).await;
    assert_eq!(told(&running), (false, 0));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_buys_no_time() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    faults.add(Rule::on(Method::CreateTask).then(Fault::answer(Code::Unavailable, "down")));
    let mut running = stage.start(None);
    running.feed(0..2).await;
    running.snapshot(1).await;
    drop(running.commit(1));
    pass(WINDOW / 2).await;
    stage.step_clock(-7_200);
    pass(WINDOW / 2 + Duration::from_secs(60)).await;
    assert_eq!(running.sink.expired().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_seal_that_lies_ahead_of_the_clock_is_not_trusted() {
    let stage = Stage::new();
    stage.step_clock(600);
    let mut first = stage.start(None);
    first.feed(0..2).await;
    let durable = first.snapshot(1).await;
    stage.crash(first).await;
    stage.step_clock(0);
    let refused = stage.sink().restore(Some(durable)).build();
    assert!(
        matches!(refused, Err(BuildError::Expired { expired: 2, .. })),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_operator_forces_discards_or_marks_what_expired() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..4).await;
    let durable = first.snapshot(1).await;
    stage.crash(first).await;
    pass(DAY).await;
    let mut second = run(stage.sink().restore(Some(durable)).keep_expired());
    pass(SECOND).await;
    let owed = second.sink.restored();
    let expired = second.sink.expired();
    let name_of = |body: &str| {
        let of = expired.iter().find(|task| {
            let bytes = task.task();
            bytes
                .windows(body.len())
                .any(|part| part == body.as_bytes())
                && task.name().len() > 9
        });
        of.map(|task| task.name())
    };
    assert!(name_of("https://partner.example/orders").is_some());
    let names: Vec<String> = expired.iter().map(|task| task.name()).collect();
    second.sink.resolve(&names[0], Resolution::Force).unwrap();
    second.sink.resolve(&names[1], Resolution::Discard).unwrap();
    second
        .sink
        .resolve(&names[2], Resolution::MarkCommitted)
        .unwrap();
    assert!(second.sink.resolve(&names[2], Resolution::Force).is_err());
    pass(SECOND).await;
    assert_eq!(stage.world.created(Q1).len(), 1);
    assert_eq!(stage.world.created(Q1)[0].name, names[0]);
    let left = second.checkpoint(2).await;
    let committed = settled(owed).await;
    assert_eq!((committed.settled, committed.retained), (2, 2));
    let kept: Vec<String> = left.state.kept().iter().map(|task| task.name()).collect();
    assert_eq!(kept, names[3..]);
    // Kept aside it stays, and no later start is refused for it.
    stage.crash(second).await;
    let third = stage.start(Some(left));
    assert_eq!(third.sink.expired().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_decides_is_written_to_the_log() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let durable = first.snapshot(1).await;
    stage.crash(first).await;
    pass(DAY).await;
    let mut second = run(stage.sink().restore(Some(durable)).keep_expired());
    pass(SECOND).await;
    let lines = Lines::default();
    let _log = crate::listening::listen(lines.clone());
    let decisions = [
        Resolution::Force,
        Resolution::Discard,
        Resolution::MarkCommitted,
    ];
    for (task, decision) in second.sink.expired().iter().zip(decisions) {
        let before = lines.count();
        second.sink.resolve(&task.name(), decision).unwrap();
        assert_eq!(lines.count(), before + 1, "{decision:?}");
        second.sink.resolve(&task.name(), decision).unwrap_err();
        assert_eq!(lines.count(), before + 1, "what did not happen is not told");
    }
}
