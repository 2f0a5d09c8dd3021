//! What waits for everything before it, and how it ends.

use std::time::Duration;

use connector_core::{CheckpointError, Epoch, Verdict};

use super::world::{ordered, standard};
use crate::{
    SinkError, clock,
    machine::{Effect, Machine, Resumed},
    settings::Settings,
};

#[test]
fn a_snapshot_waits_for_the_handlers_flush_and_a_failed_one_stays_owed() {
    let mut world = standard();
    world.reject(0, "");
    let first = world.snapshot();
    world.perform();
    world.decide(0, Verdict::Drop);
    world.perform();
    assert!(world.resolved.is_empty(), "the handler has not flushed");
    world.end_flush(false);
    world.perform();
    assert!(matches!(
        world.resolved[..],
        [(Some(epoch), Err(CheckpointError::Incomplete { .. }))] if epoch == first
    ));
    world.abort(first);
    world.snapshot();
    world.perform();
    assert!(world.flushing.is_some(), "the next snapshot flushes again");
    world.end_flush(true);
    world.perform();
    assert!(matches!(world.resolved[1], (_, Ok(()))));
}

#[test]
fn records_after_the_cut_do_not_hold_up_the_snapshot() {
    let mut world = standard();
    world.accept(0, "", false);
    world.perform();
    world.snapshot();
    world.accept(1, "", false);
    world.perform();
    world.serve(0, false);
    world.perform();
    world.end_flush(true);
    world.perform();
    assert!(matches!(world.resolved[..], [(Some(_), Ok(()))]));
    assert_eq!(world.machine.held().items, 1);
}

#[test]
fn a_standstill_ends_the_sink_only_while_someone_waits() {
    let mut world = ordered();
    world.accept(3, "k", false);
    world.perform();
    world.pass(Duration::from_secs(3600));
    assert!(world.machine.ended().is_none(), "nobody waits");
    world.snapshot();
    world.pass(Duration::from_secs(599));
    assert!(world.machine.ended().is_none());
    world.pass(Duration::from_secs(1));
    let SinkError::Stalled { topic, items, .. } = world.ended() else {
        panic!("{}", world.ended());
    };
    assert_eq!(topic.as_ref().unwrap().id(), "topic-3");
    assert_eq!(*items, 1);
}

#[test]
fn epochs_go_on_above_the_restored_one() {
    let resumed = Resumed {
        epoch: Epoch::new(7),
        messages: Vec::new(),
        quarantined: Vec::new(),
    };
    let (mut machine, commit) = Machine::new(Settings::default(), Some(resumed));
    let now = clock::now();
    assert!(matches!(
        machine.snapshot(now, Epoch::new(7)),
        Err(CheckpointError::OutOfOrder { .. })
    ));
    match machine.poll_effect(now) {
        Some(Effect::Committed(id, committed)) => {
            assert_eq!(Some(id), commit);
            assert_eq!(committed.unwrap().total(), 0);
        }
        other => panic!("{other:?}"),
    }
    assert!(machine.snapshot(now, Epoch::new(8)).is_ok());
}

#[test]
fn close_sends_what_is_left_and_its_budget_ends_it_otherwise() {
    let mut world = standard();
    world.accept(0, "", false);
    let id = world.machine.close(world.now);
    world.cuts.insert(id, (None, 1));
    world.perform();
    world.pass(Duration::from_secs(29));
    assert!(world.machine.ended().is_none());
    world.serve(0, false);
    world.perform();
    world.end_flush(true);
    world.perform();
    assert!(matches!(world.resolved[..], [(None, Ok(()))]));
    assert!(matches!(world.ended(), SinkError::ClosedByHost));

    let mut world = standard();
    world.accept(0, "", false);
    world.machine.close(world.now);
    world.perform();
    world.pass(Duration::from_secs(30));
    assert!(matches!(world.ended(), SinkError::Unsent { items: 1, .. }));
}

#[test]
fn a_commit_that_is_complete_is_told_also_when_the_sink_ends_at_that_moment() {
    let mut world = standard();
    world.accept(0, "", false);
    let epoch = world.snapshot();
    world.perform();
    world.serve(0, false);
    world.commit(epoch);
    world.machine.fail(SinkError::DriverGone);
    world.perform();
    assert_eq!(world.committed.len(), 1);
    assert_eq!(world.committed[0].settled, 1);
}

#[test]
fn a_standstill_ends_the_sink_whose_host_waits_for_room_and_not_one_that_stopped_waiting() {
    let mut world = standard();
    world.accept(0, "", false);
    world.perform();
    world.machine.await_room(world.now);
    world.pass(Duration::from_secs(300));
    world.machine.stop_awaiting_room(world.now);
    world.pass(Duration::from_secs(3600));
    assert!(world.machine.ended().is_none(), "nobody waits");
    world.machine.await_room(world.now);
    world.pass(Duration::from_secs(599));
    assert!(world.machine.ended().is_none(), "a wait has its own budget");
    world.pass(Duration::from_secs(1));
    assert!(matches!(world.ended(), SinkError::Stalled { items: 1, .. }));
}
