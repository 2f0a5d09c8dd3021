//! Many tasks in one call.

use std::time::Duration;

use cloudtasks_sink::{Batch, HttpTask, SinkError, Submitted};
use connector_core::{Checkpoint, Epoch, RejectedReason};
use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::world::{Kept, Q1, Q2, World, body, chain, order, orders, send};

fn batches(world: &World) -> u64 {
    world.emulator.observe().count(Method::BatchCreateTasks)
}

fn lost() -> Fault {
    Fault::answer(Code::Unavailable, "the answer is lost").after_effect()
}

fn all(count: u32) -> Vec<String> {
    let mut all: Vec<String> = (0..count).map(|id| id.to_string()).collect();
    all.sort();
    all
}

#[tokio::test(start_paused = true)]
async fn many_records_take_few_calls_and_each_becomes_one_task() {
    let world = World::new();
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    send(&mut sink, orders(0..1_000)).await.unwrap();
    assert_eq!(world.bodies(Q1), all(1_000));
    assert_eq!(world.creates(), 0, "none was created alone");
    let calls = batches(&world);
    assert!((10..=25).contains(&calls), "{calls} calls");
    let stats = sink.stats();
    assert_eq!(
        (stats.created, stats.attempts, stats.retries),
        (1_000, 1_000, 0)
    );
    assert_eq!((stats.batches, stats.operation_reads), (calls, 0));
    assert_eq!((stats.in_flight, stats.pending), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_answer_was_lost_makes_no_second_task_even_without_names() {
    let world = World::new();
    let rule = Rule::on(Method::BatchCreateTasks).times(3).then(lost());
    let rule = world.emulator.faults().add(rule);
    let mut sink = world.sink().batching(Batch::up_to(50)).build().unwrap();
    send(&mut sink, orders(0..300)).await.unwrap();
    assert_eq!(world.emulator.faults().fired(rule), 3);
    assert_eq!(world.bodies(Q1), all(300), "each exactly once");
    let stats = sink.stats();
    assert_eq!((stats.created, stats.ambiguous_retries), (300, 0));
    assert!(stats.operation_reads >= 1, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_under_a_batch_neither_loses_nor_repeats_a_task() {
    for fault in [
        Fault::DropConnection,
        Fault::DropConnection.after_effect(),
        Fault::GoAway(0),
        Fault::Never,
        Fault::Never.after_effect(),
    ] {
        let world = World::new();
        let text = format!("{fault:?}");
        let rule = Rule::on(Method::BatchCreateTasks)
            .skip(1)
            .once()
            .then(fault);
        let rule = world.emulator.faults().add(rule);
        let mut sink = world.sink().batching(Batch::up_to(20)).build().unwrap();
        send(&mut sink, orders(0..100)).await.unwrap();
        assert_eq!(world.emulator.faults().fired(rule), 1, "{text}");
        assert_eq!(world.bodies(Q1), all(100), "{text}");
        assert_eq!(sink.stats().ambiguous_retries, 0, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_an_operation_that_fails_is_tried_again() {
    let world = World::new();
    let faults = world.emulator.faults();
    faults.add(Rule::on(Method::BatchCreateTasks).once().then(lost()));
    let unavailable = Fault::answer(Code::Unavailable, "not now");
    faults.add(Rule::on(Method::GetOperation).times(2).then(unavailable));
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    send(&mut sink, orders(0..5)).await.unwrap();
    assert_eq!(world.bodies(Q1), all(5));
    assert_eq!(sink.stats().operation_reads, 3);
}

#[tokio::test(start_paused = true)]
async fn one_task_that_the_service_refuses_harms_no_other_of_its_batch() {
    let world = World::new();
    let kept = Kept::default();
    let mut sink = world
        .tasks()
        .batching(Batch::up_to(100))
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    let task = || HttpTask::post("https://partner.example/").unwrap();
    // Too large for the service by what it counts, which is less than what is checked here.
    let mut tasks: Vec<HttpTask> = (0..10).map(|id| task().body(id.to_string())).collect();
    tasks.insert(5, task().body(vec![b'a'; 1_048_000]));
    send(&mut sink, tasks).await.unwrap();
    assert_eq!(world.bodies(Q1), all(10));
    let rejected = kept.all();
    assert_eq!(rejected.len(), 1);
    assert_eq!(rejected[0].reason, RejectedReason::Refused);
    assert_eq!(rejected[0].destination, Q1);
    assert!(rejected[0].payload.as_ref().unwrap().len() > 1_048_000);
    assert_eq!(sink.stats().retries, 0, "its verdict was its own");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_whole_batch_is_narrowed_down_to_nobody() {
    let world = World::new();
    let kept = Kept::default();
    let refusal = Fault::answer(Code::InvalidArgument, "not this one");
    let rule = Rule::on(Method::BatchCreateTasks)
        .skip(2)
        .once()
        .then(refusal);
    world.emulator.faults().add(rule);
    let mut sink = world
        .sink()
        .batching(Batch::up_to(100))
        .on_rejected(kept.clone())
        .build()
        .unwrap();
    send(&mut sink, orders(0..50)).await.unwrap();
    assert_eq!(world.bodies(Q1), all(50));
    assert_eq!(kept.all().len(), 0, "each half was fine");
    assert_eq!(sink.stats().ambiguous_retries, 0);
}

#[tokio::test(start_paused = true)]
async fn equal_keys_never_meet_in_one_batch_and_make_one_task() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &crate::world::Order| order.id.clone())
        .batching(Batch::up_to(100))
        .build()
        .unwrap();
    let twice: Vec<_> = orders((0..40).flat_map(|id| [id, id]))
        .into_iter()
        .collect();
    send(&mut sink, twice).await.unwrap();
    assert_eq!(world.bodies(Q1), all(40));
    let stats = sink.stats();
    assert_eq!(
        (stats.created, stats.duplicates, stats.rejected),
        (40, 40, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn every_queue_has_batches_of_its_own() {
    let world = World::new();
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    let records = orders(0..200)
        .into_iter()
        .enumerate()
        .map(|(index, mut order)| {
            if index % 2 == 1 {
                order.queue = Q2.parse().unwrap();
            }
            order
        });
    send(&mut sink, records).await.unwrap();
    assert_eq!((world.bodies(Q1).len(), world.bodies(Q2).len()), (100, 100));
    assert!(batches(&world) < 20);
}

#[tokio::test(start_paused = true)]
async fn a_missing_queue_ends_a_sink_with_batches_and_is_named() {
    let world = World::new();
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    let mut missing = order("1");
    missing.queue = "projects/demo/locations/us-central1/queues/none"
        .parse()
        .unwrap();
    let error = send(&mut sink, [missing]).await.unwrap_err();
    assert!(
        matches!(error, SinkError::QueueMissing { attempts: 3, .. }),
        "{error}"
    );
    assert!(chain(&error).contains("queues/none"));
}

#[tokio::test(start_paused = true)]
async fn an_outage_ends_a_sink_with_batches_after_as_many_attempts_as_without() {
    let world = World::new();
    let unavailable = Fault::answer(Code::Unavailable, "gone for lunch");
    let rule = Rule::on(Method::BatchCreateTasks).then(unavailable);
    world.emulator.faults().add(rule);
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    let error = send(&mut sink, orders(0..10)).await.unwrap_err();
    assert!(
        matches!(
            error,
            SinkError::RetriesSpent {
                attempts: 8,
                pending: 10,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_waits_for_the_batches_before_it() {
    let world = World::new();
    let delay = Fault::Delay(Duration::from_secs(5));
    let rule = Rule::on(Method::BatchCreateTasks).then(delay);
    world.emulator.faults().add(rule);
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    for order in orders(0..30) {
        sink.feed(order).await.unwrap();
    }
    let epoch = Epoch::default().next();
    sink.snapshot(epoch).await.unwrap();
    assert_eq!(world.bodies(Q1), all(30));
    sink.commit(epoch).await.unwrap();
    sink.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_submitted_record_learns_the_name_that_its_batch_gave_it() {
    let world = World::new();
    let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
    let mut receipts = Vec::new();
    for order in orders(0..10) {
        sink.ready().await.unwrap();
        receipts.push((order.id.clone(), sink.submit(order)));
    }
    for (id, receipt) in receipts {
        let Submitted::Created { name, .. } = receipt.await.unwrap() else {
            panic!("order {id} was not created")
        };
        let tasks = world.created(Q1);
        let task = tasks.iter().find(|task| task.stored.name == name).unwrap();
        assert_eq!(body(task), id);
    }
}
