//! Looking at queues before and while tasks are put into them.

use std::time::Duration;

use cloudtasks_sink::{
    AppEngineTask, Batch, CloudTasksSink, HttpTask, QueueState, SinkError, Task,
};
use futures::SinkExt;
use gcp_emulator::cloudtasks::proto::queue::State;
use gcp_emulator::cloudtasks::proto::{HttpTarget, UriOverride};
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::world::{Lines, Q1, Q2, World, order, orders, queue, send};

const FIVE_MINUTES: Duration = Duration::from_secs(300);

fn looks(world: &World) -> u64 {
    world.emulator.observe().count(Method::GetQueue)
}

fn set(world: &World, state: State) {
    world
        .emulator
        .change_queue(Q1, |queue| queue.state = state.into())
        .unwrap();
}

fn replace_urls(world: &World, mode: i32) {
    let uri = UriOverride {
        host: Some("proxy.example".to_owned()),
        uri_override_enforce_mode: mode,
        ..UriOverride::default()
    };
    let target = HttpTarget {
        uri_override: Some(uri),
        ..HttpTarget::default()
    };
    world
        .emulator
        .change_queue(Q1, |queue| queue.http_target = Some(target))
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fixed_queue_is_looked_at_before_any_record_comes() {
    let world = World::new();
    let sink = world.tasks().build().unwrap();
    let looked = world
        .emulator
        .wait_until(|seen| seen.count(Method::GetQueue) == 1, FIVE_MINUTES)
        .await;
    assert!(looked);
    assert_eq!(sink.stats().accepted, 0);
}

#[tokio::test(start_paused = true)]
async fn each_queue_is_looked_at_once_before_its_first_task() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    let mut records = orders(0..20);
    for order in records.iter_mut().skip(10) {
        order.queue = queue(Q2);
    }
    send(&mut sink, records).await.unwrap();
    let requests = world.emulator.observe();
    let methods: Vec<Method> = requests.requests.iter().map(|call| call.method).collect();
    assert_eq!(methods[0], Method::GetQueue, "{methods:?}");
    assert_eq!((looks(&world), world.creates()), (2, 20));
    let states = sink.queue_states();
    assert_eq!(states.len(), 2);
    assert!(states.values().all(|state| *state == QueueState::Running));
}

#[tokio::test(start_paused = true)]
async fn a_paused_or_disabled_queue_takes_tasks_and_is_told() {
    for (state, seen) in [
        (State::Paused, QueueState::Paused),
        (State::Disabled, QueueState::Disabled),
    ] {
        let world = World::new();
        set(&world, state);
        let lines = Lines::default();
        let _told = crate::listening::listen(lines.clone());
        let mut sink = world.sink().build().unwrap();
        send(&mut sink, orders(0..5)).await.unwrap();
        assert_eq!(world.bodies(Q1).len(), 5);
        assert_eq!(sink.queue_states()[&queue(Q1)], seen);
        assert_eq!((sink.stats().queues_stopped, lines.count()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_queue_is_seen_within_five_minutes_and_told_once() {
    let world = World::new();
    let lines = Lines::default();
    let _told = crate::listening::listen(lines.clone());
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, orders(0..1)).await.unwrap();
    assert_eq!((sink.stats().queues_stopped, lines.count()), (0, 0));
    set(&world, State::Paused);
    tokio::time::sleep(FIVE_MINUTES * 3).await;
    assert_eq!((sink.stats().queues_stopped, lines.count()), (1, 1));
    set(&world, State::Running);
    tokio::time::sleep(FIVE_MINUTES * 2).await;
    assert_eq!((sink.stats().queues_stopped, lines.count()), (0, 2));
    assert!(looks(&world) >= 5, "{}", looks(&world));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_replaces_urls_ends_the_sink_before_any_task_is_created() {
    for mode in [0, 2] {
        for size in [None, Some(Batch::up_to(100))] {
            let world = World::new();
            replace_urls(&world, mode);
            let mut sink = world.sink();
            if let Some(size) = size {
                sink = sink.batching(size);
            }
            let mut sink = sink.build().unwrap();
            let error = send(&mut sink, orders(0..5)).await.unwrap_err();
            assert!(
                matches!(&error, SinkError::UrlsReplaced { queue: of, pending: 5 } if *of == queue(Q1)),
                "{error:?}"
            );
            assert!(error.to_string().contains("allow_url_overrides"), "{error}");
            assert_eq!(world.emulator.observe().queue(Q1).tasks, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_is_accepted_where_the_host_says_so_or_it_never_applies() {
    let world = World::new();
    replace_urls(&world, 2);
    let mut sink = world.sink().allow_url_overrides(true).build().unwrap();
    send(&mut sink, orders(0..5)).await.unwrap();
    replace_urls(&world, 1);
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, orders(5..10)).await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_override_of_urls_is_nothing_to_tasks_of_app_engine() {
    let world = World::new();
    replace_urls(&world, 2);
    let mut sink = CloudTasksSink::builder(|url: &Option<&'static str>| {
        Ok(Some(match url {
            Some(url) => Task::from(HttpTask::post(*url)?),
            None => Task::from(AppEngineTask::post("/orders")),
        }))
    })
    .queue(queue(Q1))
    .endpoint(world.endpoint())
    .build()
    .unwrap();
    send(&mut sink, [None, None]).await.unwrap();
    let error = send(&mut sink, [Some("https://partner.example/")])
        .await
        .unwrap_err();
    assert!(matches!(error, SinkError::UrlsReplaced { .. }), "{error}");
    assert_eq!(world.emulator.observe().queue(Q1).tasks, 2);
}

#[tokio::test(start_paused = true)]
async fn an_override_that_comes_later_ends_the_sink_at_its_next_record() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, orders(0..5)).await.unwrap();
    replace_urls(&world, 2);
    tokio::time::sleep(FIVE_MINUTES * 2).await;
    let error = send(&mut sink, orders(5..6)).await.unwrap_err();
    assert!(matches!(error, SinkError::UrlsReplaced { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_may_not_be_looked_at_is_told_once_and_used() {
    let world = World::new();
    let denied = Fault::answer(Code::PermissionDenied, "cloudtasks.queues.get");
    world
        .emulator
        .faults()
        .add(Rule::on(Method::GetQueue).then(denied));
    let lines = Lines::default();
    let _told = crate::listening::listen(lines.clone());
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, orders(0..5)).await.unwrap();
    assert_eq!(world.bodies(Q1).len(), 5);
    assert_eq!(sink.queue_states()[&queue(Q1)], QueueState::Unknown);
    tokio::time::sleep(FIVE_MINUTES * 4).await;
    assert_eq!(lines.count(), 1, "told once");
    assert!(looks(&world) >= 4, "it may be granted later");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_is_never_answered_holds_the_records_up_for_five_seconds() {
    let world = World::new();
    world
        .emulator
        .faults()
        .add(Rule::on(Method::GetQueue).then(Fault::Never));
    let mut sink = world.sink().build().unwrap();
    let start = tokio::time::Instant::now();
    send(&mut sink, orders(0..5)).await.unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(5), "{took:?}");
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!(world.bodies(Q1).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_shall_not_look_never_asks() {
    let world = World::new();
    replace_urls(&world, 2);
    let mut sink = world.tasks().queue_check(false).build().unwrap();
    let task = HttpTask::post("https://partner.example/").unwrap();
    send(&mut sink, [task]).await.unwrap();
    assert_eq!((looks(&world), world.creates()), (0, 1));
    assert!(sink.queue_states().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_missing_queue_is_the_answer_of_the_creation_and_not_of_the_look() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    let mut missing = order("1");
    missing.queue = queue("projects/demo/locations/us-central1/queues/none");
    sink.feed(missing).await.unwrap();
    let error = sink.flush().await.unwrap_err();
    assert!(matches!(error, SinkError::QueueMissing { .. }), "{error}");
}
