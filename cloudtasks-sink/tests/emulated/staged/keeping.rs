//! Committed tasks that the service refuses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudtasks_sink::{Batch, KeptReason, Resolution, SinkError};
use connector_core::host::{Admission, Keep, Room, finish};
use connector_core::{
    Checkpoint, CheckpointError, Epoch, FailureHandler, Limits, Receipt, Rejected, Verdict,
};
use futures::future::poll_fn;
use gcp_emulator::{Code, Fault, Method, Rule};

use super::{Running, Stage, pass, run, settled};
use crate::world::{Kept, LONG, Q1};

const SECOND: Duration = Duration::from_secs(1);

/// The service refuses the task whose body is "poison", alone or in a batch.
fn refuse_bad(stage: &Stage) {
    let refused = Fault::answer(Code::InvalidArgument, "bad task");
    for method in [Method::CreateTask, Method::BatchCreateTasks] {
        let rule = Rule::on(method)
            .when(|call| format!("{call:?}").contains("poison"))
            .then(refused.clone());
        stage.world.emulator.faults().add(rule);
    }
}

async fn feed_with_bad(running: &mut Running) {
    running.feed(0..2).await;
    running.take(crate::world::order("poison")).await;
    running.feed(2..4).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_task_is_kept_aside_and_neither_ends_the_sink_nor_holds_up_others() {
    for batch in [None, Some(Batch::up_to(10))] {
        let stage = Stage::new();
        refuse_bad(&stage);
        let mut builder = stage.sink();
        if let Some(batch) = batch {
            builder = builder.batching(batch);
        }
        let mut running = run(builder);
        feed_with_bad(&mut running).await;
        running.snapshot(1).await;
        let first = running.commit(1);
        pass(SECOND).await;
        assert_eq!(stage.world.bodies(Q1), ["0", "1", "2", "3"]);
        let kept = running.sink.refused();
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].why(), KeptReason::Refused);
        assert!(kept[0].cause().unwrap().contains("bad task"));
        running.feed(4..6).await;
        let saved = running.checkpoint(2).await;
        let first = settled(first).await;
        assert_eq!((first.settled, first.retained), (4, 1));
        // A restart does not ask for it again.
        stage.crash(running).await;
        let calls = |stage: &Stage| {
            let seen = stage.world.emulator.observe();
            seen.count(Method::CreateTask) + seen.count(Method::BatchCreateTasks)
        };
        let before = calls(&stage);
        let again = stage.start(Some(saved.settled(true)));
        pass(LONG).await;
        assert_eq!(calls(&stage), before);
        assert_eq!(again.sink.refused().len(), 1);
    }
}

/// An epoch marked as settled is dropped as a whole: were it marked while only memory knows what
/// was kept aside, a crash would lose that.
#[tokio::test(start_paused = true)]
async fn a_commit_resolves_only_when_a_durable_state_names_what_was_kept_aside() {
    let stage = Stage::new();
    refuse_bad(&stage);
    let mut running = stage.start(None);
    feed_with_bad(&mut running).await;
    running.snapshot(1).await;
    let mut first = running.commit(1);
    pass(LONG / 10).await;
    assert!(first.try_now().is_none());
    let room = poll_fn(|cx| running.sink.poll_room(cx)).await.unwrap();
    assert_eq!(room, Room::CheckpointWanted, "it asks for the checkpoint");
    let aborted = running.snapshot(2).await;
    assert_eq!(aborted.state.kept().len(), 1);
    running.sink.abort(Epoch::new(2));
    assert!(first.try_now().is_none());
    let saved = running.snapshot(3).await;
    assert_eq!(saved.state.kept().len(), 1);
    assert!(first.try_now().is_none(), "sealed is not durable");
    drop(running.commit(3));
    assert_eq!(settled(first).await.retained, 1);
}

#[tokio::test(start_paused = true)]
async fn without_another_checkpoint_the_commit_is_told_as_unconfirmed() {
    let stage = Stage::new();
    refuse_bad(&stage);
    let mut running = stage.start(None);
    feed_with_bad(&mut running).await;
    running.snapshot(1).await;
    match running.commit(1).await {
        Err(CheckpointError::Unconfirmed {
            epoch,
            pending,
            after,
        }) => {
            assert_eq!((epoch.get(), pending), (1, 1));
            assert_eq!(after, Duration::from_secs(600));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(running.sink.refused().len(), 1, "and it is still there");
}

#[tokio::test(start_paused = true)]
async fn what_the_handler_took_leaves_the_state_when_the_handler_has_flushed() {
    let stage = Stage::new();
    refuse_bad(&stage);
    let handler = Flushing::default();
    let mut first = run(stage.sink().on_rejected(handler.clone()));
    feed_with_bad(&mut first).await;
    first.snapshot(1).await;
    let mut commit = first.commit(1);
    pass(SECOND).await;
    assert_eq!(handler.handled(), 1);
    assert!(commit.try_now().is_none());
    let saved = {
        // The handler's flush fails: nothing it has is durable, and the state still names the task.
        let snapshot = first.sink.snapshot(Epoch::new(2));
        pass(SECOND).await;
        drop(snapshot);
        handler.let_flush(true);
        pass(SECOND * 20).await;
        let committed = settled(commit).await;
        assert_eq!((committed.settled, committed.retained), (4, 1));
        first.snapshot(3).await
    };
    assert!(saved.state.tasks().is_empty() && saved.state.kept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_handler_flushed_offers_the_task_to_it_again() {
    let stage = Stage::new();
    refuse_bad(&stage);
    let handler = Flushing::default();
    let mut first = run(stage.sink().on_rejected(handler.clone()));
    feed_with_bad(&mut first).await;
    let saved = first.snapshot(1).await;
    drop(first.commit(1));
    pass(SECOND).await;
    stage.crash(first).await;
    let again = Kept::default();
    let mut second = run(stage.sink().on_rejected(again.clone()).restore(Some(saved)));
    assert_eq!(settled(second.sink.restored()).await.retained, 1);
    assert_eq!(again.all().len(), 1);
    assert_eq!(again.all()[0].epoch, Some(Epoch::new(1)));
    assert!(second.sink.refused().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_quarantine_ends_the_sink_with_nothing_lost() {
    let stage = Stage::new();
    let refused = Fault::answer(Code::InvalidArgument, "bad task");
    let faults = stage.world.emulator.faults();
    let rule = faults.add(Rule::on(Method::CreateTask).then(refused));
    let mut first = run(stage.sink().quarantine(Limits::items(2)));
    first.feed(0..3).await;
    let saved = first.snapshot(1).await;
    drop(first.commit(1));
    pass(SECOND).await;
    match first.sink.ready().await {
        Err(SinkError::QuarantineFull { kept: 2, .. }) => {}
        other => panic!("{other:?}"),
    }
    stage.crash(first).await;
    faults.remove(rule);
    let mut second = stage.start(Some(saved));
    assert_eq!(settled(second.sink.restored()).await.settled, 3);
}

#[tokio::test(start_paused = true)]
async fn finishing_takes_the_checkpoint_that_names_what_was_kept_aside() {
    let stage = Stage::new();
    refuse_bad(&stage);
    let mut running = stage.start(None);
    feed_with_bad(&mut running).await;
    let mut seen = Vec::new();
    let finished = finish(&mut running.sink, Epoch::default(), async |step| {
        seen.push(match step {
            Keep::Save(epoch, state) => (epoch.get(), "save", state.kept().len()),
            Keep::Committing(epoch) => (epoch.get(), "committing", 0),
            Keep::Settled(epoch) => (epoch.get(), "settled", 0),
        });
        Ok::<(), std::io::Error>(())
    })
    .await
    .unwrap();
    assert_eq!(finished.epoch, Epoch::new(2));
    assert_eq!(finished.committed.settled, 4);
    assert_eq!(finished.committed.retained, 1);
    let steps = [
        (1, "save", 0),
        (1, "committing", 0),
        (2, "save", 1),
        (2, "committing", 0),
        (2, "settled", 0),
    ];
    assert_eq!(seen, steps);
    running.sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_task_can_be_forced_when_the_service_has_changed_its_mind() {
    let stage = Stage::new();
    let refused = Fault::answer(Code::InvalidArgument, "bad task");
    let faults = stage.world.emulator.faults();
    faults.add(Rule::on(Method::CreateTask).once().then(refused));
    let mut running = stage.start(None);
    running.feed(0..1).await;
    running.snapshot(1).await;
    let commit = running.commit(1);
    pass(SECOND).await;
    let name = running.sink.refused()[0].name();
    running.sink.resolve(&name, Resolution::Force).unwrap();
    assert_eq!(settled(commit).await.settled, 1);
    assert_eq!(stage.world.created(Q1)[0].name, name);
    assert_eq!(running.sink.stats().pending_bytes, 0);
}

/// A handler that takes everything and flushes only when it is let.
#[derive(Clone, Default)]
struct Flushing(Arc<Mutex<(usize, bool)>>);

impl Flushing {
    fn handled(&self) -> usize {
        self.0.lock().unwrap().0
    }

    fn let_flush(&self, may: bool) {
        self.0.lock().unwrap().1 = may;
    }
}

impl FailureHandler for Flushing {
    fn handle(&mut self, _rejected: Rejected) -> Receipt<Verdict> {
        self.0.lock().unwrap().0 += 1;
        Receipt::ready(Verdict::Drop)
    }

    fn flush(&mut self) -> Receipt<()> {
        if self.0.lock().unwrap().1 {
            Receipt::ready(())
        } else {
            Receipt::failed(CheckpointError::driver_gone())
        }
    }
}
