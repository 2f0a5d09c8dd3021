//! Crashes, and what is there afterwards.

use cloudtasks_sink::Batch;
use connector_core::Checkpoint;
use gcp_emulator::{Code, Fault, Method, Rule};

use super::{HOUR, Running, Stage, WINDOW, names, pass, run, settled};
use crate::world::{LONG, Q1, Q2, World, order, queue};

fn bodies(ids: std::ops::Range<u32>) -> Vec<String> {
    let mut bodies: Vec<String> = ids.map(|id| id.to_string()).collect();
    bodies.sort();
    bodies
}

#[tokio::test(start_paused = true)]
async fn before_any_checkpoint_no_task_exists_and_the_records_come_again() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..5).await;
    pass(LONG).await;
    stage.crash(first).await;
    assert!(stage.world.bodies(Q1).is_empty());
    let mut second = stage.start(None);
    second.feed(0..5).await;
    second.checkpoint(1).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..5));
}

#[tokio::test(start_paused = true)]
async fn what_was_sealed_and_never_durable_is_created_from_the_records_that_come_again() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let durable = first.checkpoint(1).await;
    first.feed(3..6).await;
    let lost = first.snapshot(2).await;
    stage.crash(first).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..3));
    let mut second = stage.start(Some(durable));
    second.feed(3..6).await;
    let again = second.snapshot(3).await;
    for name in names(&lost) {
        assert!(!names(&again).contains(&name), "the names are new ones");
    }
    settled(second.commit(3)).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..6));
}

#[tokio::test(start_paused = true)]
async fn what_is_durable_and_was_never_asked_for_is_created_once_by_the_restore() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..5).await;
    let durable = first.snapshot(1).await;
    stage.crash(first).await;
    let mut second = stage.start(Some(durable));
    assert_eq!(settled(second.sink.restored()).await.settled, 5);
    assert_eq!(stage.world.bodies(Q1), bodies(0..5));
    assert_eq!(second.sink.stats().duplicates, 0);
    assert_eq!(settled(second.sink.restored()).await.total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_commit_is_made_good_by_asking_for_all_of_it_again() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    let rule = faults.add(Rule::on(Method::CreateTask).skip(3).then(Fault::Never));
    let mut first = stage.start(None);
    first.feed(0..10).await;
    let durable = first.snapshot(1).await;
    drop(first.commit(1));
    pass(std::time::Duration::from_secs(1)).await;
    assert_eq!(stage.world.created(Q1).len(), 3);
    stage.crash(first).await;
    faults.remove(rule);
    let staged: Vec<_> = durable.state.tasks().to_vec();
    let mut second = stage.start(Some(durable));
    assert_eq!(settled(second.sink.restored()).await.settled, 10);
    let stats = second.sink.stats();
    assert_eq!((stats.created, stats.duplicates), (7, 3));
    assert_eq!(stats.unexpected_duplicates, 0);
    let created = stage.world.created(Q1);
    assert_eq!(created.len(), 10);
    for task in staged {
        use prost::Message;
        let there = created.iter().find(|there| there.name == task.name());
        assert_eq!(there.unwrap().sent.encode_to_vec(), *task.task());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_task() {
    let stage = Stage::new();
    let lost = Fault::answer(Code::DeadlineExceeded, "lost").after_effect();
    stage
        .world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).times(4).then(lost));
    let mut running = stage.start(None);
    running.feed(0..4).await;
    running.checkpoint(1).await;
    let stats = running.sink.stats();
    assert_eq!((stats.created, stats.duplicates), (0, 4));
    assert_eq!(stats.unexpected_duplicates, 0);
    assert_eq!(stage.world.bodies(Q1), bodies(0..4));
}

#[tokio::test(start_paused = true)]
async fn an_aborted_epoch_is_created_with_the_next_one_under_unchanged_names() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..2).await;
    let aborted = running.snapshot(1).await;
    running.sink.abort(connector_core::Epoch::new(1));
    running.feed(2..3).await;
    let next = running.snapshot(2).await;
    assert_eq!(names(&next)[..2], names(&aborted));
    settled(running.commit(2)).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..3));
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_was_never_told_is_healed_by_the_next_one() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..2).await;
    running.snapshot(1).await;
    running.feed(2..4).await;
    running.snapshot(2).await;
    assert_eq!(settled(running.commit(2)).await.settled, 4);
    assert_eq!(stage.world.bodies(Q1), bodies(0..4));
}

#[tokio::test(start_paused = true)]
async fn committed_twice_and_by_two_incarnations_each_task_exists_once() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..5).await;
    let durable = first.snapshot(1).await;
    let (one, again) = (first.commit(1), first.commit(1));
    let mut twin = stage.start(Some(durable.clone()));
    let mut third = stage.start(Some(durable));
    assert_eq!(settled(one).await.settled, 5);
    assert_eq!(settled(again).await.settled, 0);
    settled(twin.sink.restored()).await;
    settled(third.sink.restored()).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..5));
}

#[tokio::test(start_paused = true)]
async fn states_that_name_the_same_tasks_are_merged() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let one = first.snapshot(1).await;
    first.feed(3..5).await;
    let two = first.snapshot(2).await;
    stage.crash(first).await;
    let mut merged = stage.start([one, two]);
    assert_eq!(settled(merged.sink.restored()).await.settled, 5);
    assert_eq!(merged.sink.stats().duplicates, 0);
    assert_eq!(stage.world.bodies(Q1), bodies(0..5));
}

#[tokio::test(start_paused = true)]
async fn tasks_go_to_the_queue_they_were_staged_for_whatever_is_configured_now() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..3).await;
    let durable = first.snapshot(1).await;
    stage.crash(first).await;
    let mut second = run(stage.sink().queue(queue(Q2)).restore(Some(durable)));
    settled(second.sink.restored()).await;
    second.take(order("new")).await;
    second.checkpoint(2).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..3));
    assert_eq!(stage.world.bodies(Q2), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn a_state_names_what_is_committed_and_not_confirmed_and_nothing_that_is() {
    let stage = Stage::new();
    let mut running = stage.start(None);
    running.feed(0..4).await;
    running.checkpoint(1).await;
    running.feed(4..6).await;
    let faults = stage.world.emulator.faults();
    let rule = faults.add(Rule::on(Method::CreateTask).then(Fault::Never));
    let second = running.snapshot(2).await;
    let commit = running.commit(2);
    running.feed(6..7).await;
    let third = running.snapshot(3).await;
    assert_eq!(names(&second).len(), 2);
    assert_eq!(names(&third).len(), 3);
    assert_eq!(names(&third)[..2], names(&second));
    faults.remove(rule);
    settled(commit).await;
    settled(running.commit(3)).await;
    assert!(names(&running.checkpoint(4).await).is_empty());
}

/// Names make another call harmless, and the deadline bounds the asking.
#[tokio::test(start_paused = true)]
async fn operations_that_never_end_hold_up_no_commit_beyond_the_deadline() {
    let stage = Stage::of(World::with(|emulator| {
        emulator.task_names_kept(HOUR).operations_take(100 * HOUR)
    }));
    let mut running = run(stage.sink().batching(Batch::up_to(10)));
    running.feed(0..10).await;
    running.snapshot(1).await;
    let commit = running.commit(1);
    pass(WINDOW + HOUR / 30).await;
    assert_eq!(running.sink.expired().len(), 10);
    running.checkpoint(2).await;
    assert_eq!(settled(commit).await.retained, 10);
    assert_eq!(stage.world.created(Q1).len(), 10, "each exists once");
}

/// Rolled back past what was committed, the records come again under new names: a known limit.
#[tokio::test(start_paused = true)]
async fn a_rollback_behind_a_commit_repeats_what_was_committed_since() {
    let stage = Stage::new();
    let mut first: Running = stage.start(None);
    first.feed(0..2).await;
    let old = first.checkpoint(1).await;
    first.feed(2..4).await;
    first.checkpoint(2).await;
    stage.crash(first).await;
    let mut second = stage.start(Some(old));
    second.feed(2..4).await;
    second.checkpoint(3).await;
    assert_eq!(stage.world.bodies(Q1), ["0", "1", "2", "2", "3", "3"]);
}

#[tokio::test(start_paused = true)]
async fn named_by_key_not_even_a_rollback_repeats_a_task() {
    let stage = Stage::new();
    let keyed = || {
        stage
            .sink()
            .task_id(|order: &crate::world::Order| order.id.clone())
    };
    let mut first = run(keyed());
    first.feed(0..2).await;
    let old = first.checkpoint(1).await;
    first.feed(2..4).await;
    first.feed(2..4).await;
    first.checkpoint(2).await;
    assert_eq!(first.sink.stats().duplicates, 2, "equal keys in one epoch");
    stage.crash(first).await;
    let mut second = run(keyed().restore(Some(old)));
    second.feed(2..4).await;
    second.checkpoint(3).await;
    assert_eq!(stage.world.bodies(Q1), bodies(0..4));
}
