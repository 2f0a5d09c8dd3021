//! Outages, broken connections and missing queues.

use std::time::Duration;

use cloudtasks_sink::{Code as ErrorCode, RetryBudget, SinkError};
use connector_core::{Checkpoint, Epoch, host::StepError, next_when};
use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use tokio::time::Instant;

use crate::world::{
    Kept, LONG, Lines, Order, Q1, Q2, World, cause_of, chain, order, orders, queue, send,
};

const SECOND: Duration = Duration::from_secs(1);

fn named(world: &World) -> cloudtasks_sink::SinkBuilder<Order> {
    world.sink().task_id(|order: &Order| order.id.clone())
}

fn every(fault: Fault) -> Rule {
    Rule::on(Method::CreateTask).then(fault)
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_three_seconds_loses_nothing_and_floods_no_log() {
    let world = World::new();
    let lines = Lines::default();
    let _scope = crate::listening::listen(lines.clone());
    world.emulator.refuse_connections(true).await.unwrap();
    let mut sink = world.sink().build().unwrap();
    for order in orders(0..10) {
        sink.feed(order).await.unwrap();
    }
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(world.creates(), 0);
    world.emulator.refuse_connections(false).await.unwrap();
    sink.flush().await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 10);
    let stats = sink.stats();
    assert_eq!(stats.created, 10);
    assert_eq!(
        stats.ambiguous_retries, 0,
        "what never left cannot have created anything"
    );
    assert!((1..20).contains(&lines.count()), "{} lines", lines.count());
}

#[tokio::test(start_paused = true)]
async fn connections_that_break_in_the_middle_lose_nothing() {
    let world = World::new();
    for (skip, fault) in [
        (3, Fault::DropConnection),
        (5, Fault::GoAway(0)),
        (7, Fault::GoAwayUnseen(0)),
        (9, Fault::ResetStream(7)),
        (11, Fault::DropConnection.after_effect()),
    ] {
        world
            .emulator
            .faults()
            .add(Rule::on(Method::CreateTask).skip(skip).once().then(fault));
    }
    let mut sink = named(&world).build().unwrap();
    send(&mut sink, orders(0..200)).await.unwrap();
    let mut expected: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    expected.sort();
    assert_eq!(world.bodies(Q1), expected, "each once");
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_for_five_seconds_delays_the_records_and_duplicates_none() {
    let world = World::new();
    let refusal = Fault::answer(Code::ResourceExhausted, "quota");
    let rule = world.emulator.faults().add(every(refusal));
    let mut sink = world.sink().build().unwrap();
    for order in orders(0..20) {
        sink.feed(order).await.unwrap();
    }
    tokio::time::sleep(5 * SECOND).await;
    world.emulator.faults().remove(rule);
    sink.flush().await.unwrap();
    assert_eq!(world.emulator.observe().queue(Q1).tasks, 20);
    assert_eq!(sink.stats().ambiguous_retries, 0);
}

#[tokio::test(start_paused = true)]
async fn a_parked_task_is_sent_again_although_nobody_writes_or_flushes() {
    let world = World::new();
    let unavailable = Fault::answer(Code::Unavailable, "not now");
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).once().then(unavailable));
    let mut sink = world.sink().build().unwrap();
    sink.feed(order("1")).await.unwrap();
    let created = world
        .emulator
        .wait_until(|seen| seen.queue(Q1).tasks == 1, 2 * SECOND)
        .await;
    assert!(created, "the sink's own timer sends it");
}

#[tokio::test(start_paused = true)]
async fn a_spent_retry_budget_ends_the_sink_with_the_queue_and_the_last_answer() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(every(Fault::answer(Code::Unavailable, "gone for lunch")));
    let kept = Kept::default();
    let mut sink = world.sink().on_rejected(kept.clone()).build().unwrap();
    let before = Instant::now();
    let error = send(&mut sink, orders(0..3)).await.unwrap_err();
    let waited = before.elapsed();
    match &error {
        SinkError::RetriesSpent {
            queue,
            attempts: 8,
            source,
            ..
        } => {
            assert_eq!(queue.as_str(), Q1);
            assert_eq!(source.code(), ErrorCode::Unavailable);
        }
        other => panic!("{other:?}"),
    }
    let text = chain(&error);
    assert!(
        text.contains(Q1) && text.contains("gone for lunch"),
        "{text}"
    );
    assert!(
        text.contains("stay owed"),
        "it says what became of the data: {text}"
    );
    assert!(
        waited >= Duration::from_millis(9_525) && waited < 16 * SECOND,
        "{waited:?}"
    );
    assert!(kept.all().is_empty(), "an outage is not the data's fault");
    let receipt = sink.snapshot(Epoch::new(1));
    let closed = receipt.await.unwrap_err();
    assert!(cause_of(&closed).to_string().contains(Q1));
}

#[tokio::test(start_paused = true)]
async fn a_missing_queue_ends_the_sink_soon_and_names_it_in_full() {
    for code in [None, Some(Code::NotFound), Some(Code::FailedPrecondition)] {
        let world = World::new();
        if let Some(code) = code {
            world
                .emulator
                .faults()
                .add(every(Fault::answer(code, "no such queue")));
        }
        let nope = "projects/demo/locations/us-central1/queues/nope";
        let mut sink = named(&world).build().unwrap();
        let before = Instant::now();
        let missing = Order {
            id: "1".to_owned(),
            queue: queue(nope),
        };
        let error = send(&mut sink, [missing]).await.unwrap_err();
        let waited = before.elapsed();
        assert!(
            matches!(error, SinkError::QueueMissing { attempts: 3, .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(nope), "{error}");
        assert!(
            waited >= Duration::from_millis(1_125) && waited < 2 * SECOND,
            "{waited:?}"
        );
        assert_eq!(world.creates(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn two_of_a_hundred_records_for_a_missing_queue_leave_the_others_created() {
    let world = World::new();
    let nope = "projects/demo/locations/us-central1/queues/nope";
    let mut sink = named(&world).build().unwrap();
    let mut records = orders(0..100);
    for at in [10, 20] {
        records[at].queue = queue(nope);
    }
    let error = send(&mut sink, records).await.unwrap_err();
    assert!(error.to_string().contains(nope), "{error}");
    assert_eq!(world.bodies(Q1).len(), 98);
    assert!(
        matches!(error, SinkError::QueueMissing { pending: 1 | 2, .. }),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_appears_within_the_budget_is_used() {
    let world = World::new();
    let late = "projects/demo/locations/us-central1/queues/late";
    let budget = RetryBudget::new(5, SECOND, 2 * SECOND);
    let mut sink = named(&world).queue_missing_retries(budget).build().unwrap();
    sink.feed(Order {
        id: "1".to_owned(),
        queue: queue(late),
    })
    .await
    .unwrap();
    tokio::time::sleep(2 * SECOND).await;
    world.emulator.create_queue(late).unwrap();
    sink.flush().await.unwrap();
    assert_eq!(world.bodies(late), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn a_denied_permission_ends_the_sink_at_the_first_answer() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(every(Fault::answer(Code::PermissionDenied, "not you")));
    let mut sink = world.sink().build().unwrap();
    let error = send(&mut sink, [order("1")]).await.unwrap_err();
    assert!(matches!(error, SinkError::Refused { .. }), "{error:?}");
    assert!(chain(&error).contains("not you"));
    assert_eq!(world.creates(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_requests_and_never_answers_fails_the_checkpoint_in_bounded_time() {
    let world = World::new();
    world.emulator.faults().add(every(Fault::Never));
    let mut sink = named(&world).progress_timeout(60 * SECOND).build().unwrap();
    for order in orders(0..5) {
        sink.feed(order).await.unwrap();
    }
    let before = Instant::now();
    let receipt = sink.snapshot(Epoch::new(1));
    let error = receipt.await.unwrap_err();
    assert_eq!(before.elapsed().as_secs(), 60);
    let text = chain(&error);
    assert!(
        text.contains(Q1) && text.contains("5 accepted records"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_ends_while_the_source_is_idle_ends_the_hosts_loop() {
    let world = World::new();
    world.emulator.faults().add(every(Fault::Never));
    let mut sink = named(&world).progress_timeout(60 * SECOND).build().unwrap();
    sink.feed(order("1")).await.unwrap();
    // Nobody waits for the receipt; it is the loop that must hear of the end.
    drop(sink.snapshot(Epoch::new(1)));
    let mut idle = futures::stream::pending::<Result<Order, SinkError>>();
    let before = Instant::now();
    let step = tokio::time::timeout(LONG, next_when(&mut idle, &mut sink)).await;
    // Whoever is not woken looks once more when the limit has passed, and finds the end then.
    assert_eq!(before.elapsed().as_secs(), 60);
    let error = step.expect("the end wakes the loop").unwrap_err();
    assert!(matches!(error, StepError::Sink { index: 0, .. }), "{error}");
    let text = chain(&error);
    assert!(text.contains(Q1), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_dead_connection_is_replaced_and_the_records_arrive() {
    let world = World::new();
    let mut sink = named(&world).build().unwrap();
    send(&mut sink, [order("1")]).await.unwrap();
    world.emulator.silence_connections();
    let before = Instant::now();
    send(&mut sink, orders(2..5)).await.unwrap();
    assert_eq!(world.bodies(Q1), ["1", "2", "3", "4"]);
    assert!(before.elapsed() < 90 * SECOND, "{:?}", before.elapsed());
    assert!(world.emulator.observe().connections_opened >= 2);
}

#[tokio::test(start_paused = true)]
async fn one_queue_in_trouble_does_not_hold_up_the_records_of_another() {
    let world = World::new();
    let rule = Rule::on(Method::CreateTask).when(|call| call.resource() == Some(Q2));
    world.emulator.faults().add(rule.then(Fault::Delay(LONG)));
    let mut sink = world.sink().build().unwrap();
    let stuck = (0..50).map(|n| Order {
        id: n.to_string(),
        queue: queue(Q2),
    });
    for order in stuck.chain(orders(0..200)) {
        sink.feed(order).await.unwrap();
    }
    let created = world
        .emulator
        .wait_until(|seen| seen.queue(Q1).tasks == 200, 5 * SECOND)
        .await;
    assert!(created);
}

#[tokio::test(start_paused = true)]
async fn a_parked_task_counts_against_the_cap() {
    let world = World::new();
    let unavailable = Fault::answer(Code::Unavailable, "not now");
    let rule = Rule::on(Method::CreateTask).times(2).then(unavailable);
    world.emulator.faults().add(rule);
    let mut sink = world.sink().in_flight(1).build().unwrap();
    let mut records = orders(0..2).into_iter();
    sink.feed(records.next().unwrap()).await.unwrap();
    let start = Instant::now();
    sink.feed(records.next().unwrap()).await.unwrap();
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_millis(225),
        "100 and 200 ms, ±25 %"
    );
    let stats = sink.stats();
    assert_eq!(
        (stats.created, stats.attempts),
        (1, 3),
        "the first went first"
    );
    sink.flush().await.unwrap();
    assert_eq!(world.bodies(Q1), ["0", "1"]);
}
