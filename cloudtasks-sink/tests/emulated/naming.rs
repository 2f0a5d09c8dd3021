//! Names, and what they protect against.

use std::time::Duration;

use cloudtasks_sink::SinkError;
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::world::{Order, Q1, Q2, World, order, orders, queue, send};

#[tokio::test(start_paused = true)]
async fn keys_become_hashed_names_that_are_stable_over_restarts() {
    let long = "k".repeat(501);
    let keys = [
        "order:42", "a b", "\u{e9}", "x/y", &long, "%2F", "a:b", "a_b",
    ];
    let world = World::new();
    for _restart in 0..2 {
        let mut sink = world
            .sink()
            .task_id(|order: &Order| order.id.clone())
            .build()
            .unwrap();
        send(&mut sink, keys.map(order)).await.unwrap();
        sink.close().await.unwrap();
    }
    let tasks = world.created(Q1);
    assert_eq!(tasks.len(), keys.len(), "every key is its own task, once");
    for task in tasks {
        let id = task.name.rsplit('/').next().unwrap();
        assert_eq!(id.len(), 64);
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }
    assert_eq!(world.emulator.observe().queue(Q1).taken, keys.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_comes_again_is_a_duplicate_and_no_error() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    send(&mut sink, [order("n1")]).await.unwrap();
    send(&mut sink, [order("n1")]).await.unwrap();
    let stats = sink.stats();
    assert_eq!(
        (
            stats.created,
            stats.duplicates,
            stats.rejected,
            stats.retries
        ),
        (1, 1, 0, 0)
    );
    assert_eq!(world.bodies(Q1), ["n1"]);
}

#[tokio::test(start_paused = true)]
async fn one_key_in_two_queues_is_two_tasks() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    let other = Order {
        id: "k".to_owned(),
        queue: queue(Q2),
    };
    send(&mut sink, [order("k"), other]).await.unwrap();
    let id = |queue: &str| {
        world.created(queue)[0]
            .name
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(id(Q1), id(Q2));
    assert_eq!(sink.stats().duplicates, 0);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_records_of_one_second_do_not_collide() {
    let world = World::new();
    let mut sink = world.sink().minted_names().build().unwrap();
    let records = (0..1_000).map(|n| order((n % 10).to_string()));
    send(&mut sink, records).await.unwrap();
    let stats = sink.stats();
    assert_eq!((stats.created, stats.duplicates), (1_000, 0));
}

#[tokio::test(start_paused = true)]
async fn a_record_without_a_key_ends_the_sink_and_names_the_queue() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    send(&mut sink, [order("fine")]).await.unwrap();
    let error = send(&mut sink, [order("")]).await.unwrap_err();
    assert!(matches!(error, SinkError::NoKey { .. }), "{error}");
    assert!(error.to_string().contains(Q1), "{error}");
    let later = send(&mut sink, [order("later")]).await.unwrap_err();
    assert!(matches!(later, SinkError::Closed { .. }), "{later}");
    assert_eq!(world.bodies(Q1), ["fine"]);
}

/// The server stores the task and the answer is lost.
fn lost_answer() -> Rule {
    let fault = Fault::answer(Code::Unavailable, "the answer is lost").after_effect();
    Rule::on(Method::CreateTask).once().then(fault)
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_task_when_the_name_comes_from_the_record() {
    let world = World::new();
    world.emulator.faults().add(lost_answer());
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    send(&mut sink, [order("1")]).await.unwrap();
    assert_eq!(world.bodies(Q1), ["1"]);
    let stats = sink.stats();
    assert_eq!(
        (stats.attempts, stats.duplicates, stats.ambiguous_retries),
        (2, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_task_when_the_name_is_minted() {
    let world = World::new();
    let late = Fault::Never.after_effect();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).once().then(late));
    let mut sink = world.sink().minted_names().build().unwrap();
    send(&mut sink, [order("1")]).await.unwrap();
    assert_eq!(world.bodies(Q1), ["1"]);
    let stats = sink.stats();
    assert_eq!((stats.duplicates, stats.unexpected_duplicates), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_of_an_unnamed_task_may_make_a_second_one_and_is_counted() {
    let world = World::new();
    world.emulator.faults().add(lost_answer());
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, orders(0..3)).await.unwrap();
    assert_eq!(world.emulator.observe().queue(Q1).tasks, 4);
    let stats = sink.stats();
    assert_eq!((stats.created, stats.ambiguous_retries), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_exists_before_the_first_attempt_is_success_and_told_for_minted_ones() {
    let world = World::new();
    let exists = Fault::answer(Code::AlreadyExists, "Requested entity already exists");
    world
        .emulator
        .faults()
        .add(Rule::on(Method::CreateTask).times(2).then(exists));
    let mut keyed = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    send(&mut keyed, [order("1")]).await.unwrap();
    let stats = keyed.stats();
    assert_eq!((stats.duplicates, stats.unexpected_duplicates), (1, 0));
    let mut minted = world.sink().minted_names().build().unwrap();
    send(&mut minted, [order("1")]).await.unwrap();
    let stats = minted.stats();
    assert_eq!((stats.duplicates, stats.unexpected_duplicates), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_unnamed_records_makes_second_tasks_and_of_named_ones_none() {
    let world = World::new();
    for _ in 0..2 {
        let mut unnamed = world.sink().build().unwrap();
        send(&mut unnamed, orders(0..3)).await.unwrap();
    }
    assert_eq!(world.created(Q1).len(), 6);
    let world = World::new();
    for _ in 0..2 {
        let mut named = world
            .sink()
            .task_id(|order: &Order| order.id.clone())
            .build()
            .unwrap();
        send(&mut named, orders(0..3)).await.unwrap();
    }
    assert_eq!(world.created(Q1).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_free_again_when_the_window_after_its_task_is_over() {
    let window = Duration::from_secs(3_600);
    let world = World::with(|builder| builder.task_names_kept(window));
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    send(&mut sink, orders(0..1)).await.unwrap();
    // The window starts at the task's end, and not at its creation.
    tokio::time::sleep(window * 3).await;
    send(&mut sink, orders(0..1)).await.unwrap();
    assert_eq!((sink.stats().created, sink.stats().duplicates), (1, 1));
    let name = world.created(Q1)[0].name.clone();
    assert!(world.emulator.finish_task(&name));
    tokio::time::sleep(window - Duration::from_secs(1)).await;
    send(&mut sink, orders(0..1)).await.unwrap();
    assert_eq!((sink.stats().created, sink.stats().duplicates), (1, 2));
    tokio::time::sleep(Duration::from_secs(1)).await;
    send(&mut sink, orders(0..1)).await.unwrap();
    assert_eq!((sink.stats().created, sink.stats().duplicates), (2, 2));
}
