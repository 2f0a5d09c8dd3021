//! What becomes of batches: operations that take a while, verdicts that leave something open.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudtasks_sink::{Batch, SinkBuilder};
use connector_core::{Checkpoint, Epoch};
use futures::SinkExt;
use gcp_emulator::cloudtasks::proto::task::MessageType;
use gcp_emulator::cloudtasks::proto::{BatchCreateTasksRequest, Task};
use gcp_emulator::{Body, Code, Fault, Method, Rule};

use crate::world::{Kept, Order, Q1, World, orders, send};

fn all(count: u32) -> Vec<String> {
    let mut all: Vec<String> = (0..count).map(|id| id.to_string()).collect();
    all.sort();
    all
}

fn slow(span: Duration) -> World {
    World::with(|builder| builder.operations_take(span))
}

fn batching(world: &World) -> SinkBuilder<Order> {
    world.sink().batching(Batch::up_to(20))
}

fn carries(task: &Task, body: &str) -> bool {
    match &task.message_type {
        Some(MessageType::HttpRequest(request)) => request.body == body,
        _ => false,
    }
}

fn calls(world: &World) -> Vec<BatchCreateTasksRequest> {
    let seen = world.emulator.observe();
    let calls = seen.requests_of(Method::BatchCreateTasks);
    calls
        .map(|call| match &call.body {
            Body::BatchCreateTasks(request) => request.clone(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_not_done_is_read_until_it_is() {
    let world = slow(Duration::from_secs(7));
    let mut sink = batching(&world).build().unwrap();
    send(&mut sink, orders(0..100)).await.unwrap();
    assert_eq!(world.bodies(Q1), all(100));
    let stats = sink.stats();
    assert_eq!((stats.created, stats.retries), (100, 0));
    assert_eq!(stats.ambiguous_retries, 0);
    // 100 ms doubling: seven reads in 6.4 s, and one after 7 s.
    let reads = stats.operation_reads / stats.batches;
    assert!((6..=9).contains(&reads), "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_waits_for_operations_that_are_not_done() {
    let world = slow(Duration::from_secs(30));
    let mut sink = batching(&world).build().unwrap();
    for order in orders(0..10) {
        sink.feed(order).await.unwrap();
    }
    let epoch = Epoch::default().next();
    let start = tokio::time::Instant::now();
    sink.snapshot(epoch).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(30));
    let committed = sink.commit(epoch).await.unwrap();
    assert_eq!(committed.settled, 10);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_never_ends_ends_the_sink_within_the_progress_timeout() {
    let world = slow(Duration::from_secs(100_000));
    let mut sink = batching(&world).build().unwrap();
    let start = tokio::time::Instant::now();
    let error = send(&mut sink, orders(0..10)).await.unwrap_err();
    assert!(
        matches!(
            error,
            cloudtasks_sink::SinkError::Stalled { pending: 10, .. }
        ),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(700));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_an_operation_that_takes_a_while_make_no_second_task() {
    let world = slow(Duration::from_secs(5));
    let faults = world.emulator.faults();
    let lost = Fault::answer(Code::Unavailable, "the answer is lost").after_effect();
    faults.add(Rule::on(Method::BatchCreateTasks).times(2).then(lost));
    let busy = Fault::answer(Code::Unavailable, "not now");
    faults.add(Rule::on(Method::GetOperation).times(3).then(busy));
    let mut sink = batching(&world).build().unwrap();
    send(&mut sink, orders(0..60)).await.unwrap();
    assert_eq!(world.bodies(Q1), all(60), "unnamed, and each of them once");
    assert_eq!(sink.stats().ambiguous_retries, 0);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_call_is_sent_again_as_the_same_bytes_under_the_same_request_id() {
    for fault in [
        Fault::answer(Code::Unavailable, "lost"),
        Fault::answer(Code::Unavailable, "lost").after_effect(),
        Fault::Never,
        Fault::DropConnection.after_effect(),
    ] {
        let world = World::new();
        let text = format!("{fault:?}");
        let rule = Rule::on(Method::BatchCreateTasks).once().then(fault);
        world.emulator.faults().add(rule);
        let mut sink = world.sink().batching(Batch::up_to(100)).build().unwrap();
        for order in orders(0..3) {
            sink.send(order).await.unwrap();
        }
        let calls = calls(&world);
        assert_eq!(calls.len(), 4, "{text}");
        assert_eq!(calls[0], calls[1], "{text}");
        assert!(!calls[0].request_id.is_empty());
        let ids: BTreeSet<&str> = calls.iter().map(|call| call.request_id.as_str()).collect();
        assert_eq!(
            ids.len(),
            3,
            "{text}: calls of their own have ids of their own"
        );
        assert_eq!(world.bodies(Q1), all(3), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_the_first_answer_is_split_under_ids_of_their_own() {
    let world = World::new();
    let kept = Kept::default();
    let refusal = Fault::answer(Code::InvalidArgument, "one of them is wrong");
    let rule = Rule::on(Method::BatchCreateTasks).when(|call| match &call.body {
        Body::BatchCreateTasks(request) => request
            .requests
            .iter()
            .any(|one| one.task.as_ref().is_some_and(|task| carries(task, "7"))),
        _ => false,
    });
    world.emulator.faults().add(rule.then(refusal));
    let mut sink = batching(&world).on_rejected(kept.clone()).build().unwrap();
    send(&mut sink, orders(0..40)).await.unwrap();
    let mut others = all(40);
    others.retain(|body| body != "7");
    assert_eq!(world.bodies(Q1), others);
    assert_eq!(kept.all().len(), 1);
    let calls = calls(&world);
    let ids: BTreeSet<&str> = calls.iter().map(|call| call.request_id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "no request id is used twice");
    assert_eq!(sink.stats().ambiguous_retries, 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_for_a_moment_is_tried_again_without_its_neighbours() {
    let world = World::new();
    let busy = Fault::answer(Code::ResourceExhausted, "busy");
    let rule = Rule::on_task()
        .when_task(|task| carries(task, "3"))
        .times(2);
    let rule = world.emulator.faults().add(rule.then(busy));
    let mut sink = batching(&world).build().unwrap();
    send(&mut sink, orders(0..20)).await.unwrap();
    assert_eq!(world.emulator.faults().fired(rule), 2);
    assert_eq!(world.bodies(Q1), all(20));
    let stats = sink.stats();
    assert_eq!((stats.retries, stats.ambiguous_retries), (2, 0));
    assert_eq!(
        sink.failures()[&cloudtasks_sink::Code::ResourceExhausted],
        2
    );
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_leaves_open_whether_an_unnamed_task_exists_is_counted() {
    let unsure = || Fault::answer(Code::Unavailable, "who knows").after_effect();
    let of_three = || Rule::on_task().when_task(|task| carries(task, "3")).once();
    let world = World::new();
    world.emulator.faults().add(of_three().then(unsure()));
    let mut sink = batching(&world).build().unwrap();
    send(&mut sink, orders(0..20)).await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 21, "one of them twice");
    assert_eq!(sink.stats().ambiguous_retries, 1);

    let world = World::new();
    world.emulator.faults().add(of_three().then(unsure()));
    let mut sink = batching(&world).minted_names().build().unwrap();
    send(&mut sink, orders(0..20)).await.unwrap();
    assert_eq!(world.bodies(Q1), all(20), "a name makes it known");
    let stats = sink.stats();
    assert_eq!((stats.ambiguous_retries, stats.duplicates), (0, 1));
    assert_eq!(stats.unexpected_duplicates, 0, "it was sent before");
}

#[tokio::test(start_paused = true)]
async fn no_call_has_two_equal_names_more_than_a_hundred_tasks_or_too_many_bytes() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .batching(Batch::up_to(100).bytes(20_000))
        .build()
        .unwrap();
    let twice = orders((0..300).map(|id| id / 2));
    send(&mut sink, twice).await.unwrap();
    assert_eq!(world.bodies(Q1), all(150));
    let mut largest = 0;
    for call in calls(&world) {
        let names: BTreeSet<&str> = call
            .requests
            .iter()
            .map(|one| one.task.as_ref().unwrap().name.as_str())
            .collect();
        assert_eq!(names.len(), call.requests.len());
        assert!(call.requests.len() <= 100);
        let size = prost::Message::encoded_len(&call);
        assert!(size <= 20_000, "{size} bytes");
        largest = largest.max(call.requests.len());
    }
    assert!(largest > 1, "they are batches");
}
