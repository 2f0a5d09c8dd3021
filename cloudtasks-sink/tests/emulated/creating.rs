//! What arrives at the service.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use cloudtasks_sink::{CloudTasksSink, Credentials, HttpMethod, HttpTask, Submitted};
use connector_core::{Checkpoint, Epoch};
use futures::SinkExt;
use gcp_emulator::Method;

use crate::world::{Order, Q1, Q2, World, body, order, orders, queue, request, send};

#[tokio::test(start_paused = true)]
async fn every_record_becomes_one_task_as_it_was_built() {
    let world = World::new();
    let mut sink = world.tasks().build().unwrap();
    let at = SystemTime::now() + Duration::from_secs(3_600);
    let task = HttpTask::put("https://partner.example/orders")
        .unwrap()
        .segment("a/1")
        .query("dry run", "no")
        .header("X-Tenant", "acme")
        .json(&BTreeMap::from([("a", 1)]))
        .unwrap()
        .schedule_at(at)
        .dispatch_deadline(Duration::from_millis(15_250))
        .oidc(
            "caller@demo.iam.gserviceaccount.com",
            Some("https://audience.example"),
        );
    send(&mut sink, [task]).await.unwrap();

    let tasks = world.created(Q1);
    assert_eq!(tasks.len(), 1);
    let request = request(&tasks[0]);
    assert_eq!(
        request.url,
        "https://partner.example/orders/a%2F1?dry%20run=no"
    );
    assert_eq!(request.http_method, 4, "PUT");
    assert_eq!(request.body, r#"{"a":1}"#.as_bytes());
    assert_eq!(request.headers["X-Tenant"], "acme");
    assert_eq!(request.headers["Content-Type"], "application/json");
    let sent = &tasks[0].sent;
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let schedule = sent.schedule_time.as_ref().unwrap();
    assert_eq!(schedule.seconds, i64::try_from(since.as_secs()).unwrap());
    assert_eq!(schedule.nanos, i32::try_from(since.subsec_nanos()).unwrap());
    let deadline = sent.dispatch_deadline.as_ref().unwrap();
    assert_eq!((deadline.seconds, deadline.nanos), (15, 250_000_000));
    assert_eq!(sent.name, "", "the service names the task");
    assert_eq!(sink.stats().created, 1);
}

#[tokio::test(start_paused = true)]
async fn every_method_arrives_and_only_some_carry_a_body() {
    let world = World::new();
    let mut sink = world.tasks().build().unwrap();
    let methods = [
        HttpMethod::Post,
        HttpMethod::Put,
        HttpMethod::Patch,
        HttpMethod::Get,
        HttpMethod::Head,
        HttpMethod::Delete,
        HttpMethod::Options,
    ];
    for method in methods {
        let mut task = HttpTask::new(method, "https://h/").unwrap();
        if method.takes_body() {
            task = task.body("x");
        }
        send(&mut sink, [task]).await.unwrap();
    }
    let arrived: Vec<(i32, bool)> = world
        .created(Q1)
        .iter()
        .map(|task| (request(task).http_method, request(task).body.is_empty()))
        .collect();
    assert_eq!(
        arrived,
        [
            (1, false),
            (4, false),
            (6, false),
            (2, true),
            (3, true),
            (5, true),
            (7, true),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_handler_sees_exactly_one_content_type_whatever_its_letter_case() {
    let world = World::new();
    let mut sink = world.tasks().build().unwrap();
    let json = || {
        HttpTask::post("https://h/")
            .unwrap()
            .json(&BTreeMap::from([("a", 1)]))
            .unwrap()
    };
    let tasks = [
        json().header("content-type", "application/json; charset=utf-8"),
        json()
            .header("Content-Type", "text/x")
            .header("content-TYPE", "text/y"),
        json(),
        HttpTask::post("https://h/").unwrap().body("{}"),
    ];
    send(&mut sink, tasks).await.unwrap();
    let types: Vec<Vec<String>> = world
        .created(Q1)
        .iter()
        .map(|task| {
            let headers = request(task).headers;
            headers
                .into_iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
                .map(|(_, value)| value)
                .collect()
        })
        .collect();
    assert_eq!(
        types,
        [
            vec!["application/json; charset=utf-8"],
            vec!["text/y"],
            vec!["application/json"],
            vec![],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_literal_authorization_header_is_kept() {
    let world = World::new();
    let mut sink = world.tasks().build().unwrap();
    let task = HttpTask::post("https://h/")
        .unwrap()
        .header("authorization", "Bearer x");
    send(&mut sink, [task]).await.unwrap();
    assert_eq!(
        request(&world.created(Q1)[0]).headers["authorization"],
        "Bearer x"
    );
}

#[tokio::test(start_paused = true)]
async fn every_create_carries_the_routing_header_with_the_queue_percent_encoded() {
    const SCOPED: &str = "projects/example.com:demo/locations/us-central1/queues/q1";
    let world = World::with(|builder| builder.queue(SCOPED));
    let mut sink = world.sink().build().unwrap();
    let scoped = Order {
        id: "2".to_owned(),
        queue: queue(SCOPED),
    };
    send(&mut sink, [order("1"), scoped]).await.unwrap();
    let observation = world.emulator.observe();
    let routing: Vec<&str> = observation
        .requests_of(Method::CreateTask)
        .map(|call| call.metadata["x-goog-request-params"].as_str())
        .collect();
    assert_eq!(
        routing,
        [
            "parent=projects%2Fdemo%2Flocations%2Fus-central1%2Fqueues%2Fq1",
            "parent=projects%2Fexample.com%3Ademo%2Flocations%2Fus-central1%2Fqueues%2Fq1",
        ]
    );
    assert_eq!(world.bodies(SCOPED), ["2"]);
}

#[tokio::test(start_paused = true)]
async fn an_emulator_is_sent_no_credentials_and_none_are_looked_up() {
    let world = World::new();
    let credentials = Credentials::service_account_key_file("/nonexistent.json");
    let mut sink = world.sink().credentials(credentials).build().unwrap();
    let before = tokio::time::Instant::now();
    send(&mut sink, orders(0..3)).await.unwrap();
    assert!(
        before.elapsed() < Duration::from_secs(1),
        "no metadata server was waited for"
    );
    let observation = world.emulator.observe();
    for call in observation.requests_of(Method::CreateTask) {
        assert!(
            !call.metadata.contains_key("authorization"),
            "{:?}",
            call.metadata
        );
    }
    assert_eq!(world.bodies(Q1), ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_tells_the_service_a_deadline_of_at_most_30_s() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    send(&mut sink, [order("1")]).await.unwrap();
    let observation = world.emulator.observe();
    let call = observation.requests_of(Method::CreateTask).next().unwrap();
    let timeout = &call.metadata["grpc-timeout"];
    let (number, unit) = timeout.split_at(timeout.len() - 1);
    let micros = number.parse::<u64>().unwrap()
        * match unit {
            "S" => 1_000_000,
            "m" => 1_000,
            "u" => 1,
            other => panic!("{other}"),
        };
    assert!((1..=20_000_000).contains(&micros), "{timeout}");
}

#[tokio::test(start_paused = true)]
async fn records_are_spread_over_queues_by_the_resolver() {
    let world = World::new();
    let mut sink = CloudTasksSink::builder(|id: &u32| {
        Ok(Some(HttpTask::post("https://h/")?.body(id.to_string())))
    })
    .resolve(|id: &u32| queue(if id.is_multiple_of(2) { Q2 } else { Q1 }))
    .endpoint(world.endpoint())
    .build()
    .unwrap();
    send(&mut sink, 0..6).await.unwrap();
    assert_eq!(world.bodies(Q1), ["1", "3", "5"]);
    assert_eq!(world.bodies(Q2), ["0", "2", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_the_encoder_skips_makes_no_task_and_is_counted() {
    let world = World::new();
    let mut sink = CloudTasksSink::builder(|id: &u32| {
        Ok(id
            .is_multiple_of(2)
            .then(|| HttpTask::post("https://h/").unwrap().body(id.to_string())))
    })
    .queue(queue(Q1))
    .endpoint(world.endpoint())
    .build()
    .unwrap();
    send(&mut sink, 0..10).await.unwrap();
    let stats = sink.stats();
    assert_eq!((stats.accepted, stats.created, stats.skipped), (5, 5, 5));
    assert_eq!(world.creates(), 5);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_records_go_through_a_thousand_at_a_time() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    let mut most = 0;
    for order in orders(0..10_000) {
        sink.feed(order).await.unwrap();
        most = most.max(sink.stats().pending);
    }
    sink.flush().await.unwrap();
    assert!(most <= 1_000, "{most}");
    let stats = sink.stats();
    assert_eq!(
        (stats.created, stats.attempts, stats.pending),
        (10_000, 10_000, 0)
    );
    assert_eq!(world.emulator.observe().queue(Q1).tasks, 10_000);
}

#[tokio::test(start_paused = true)]
async fn each_channel_is_a_connection() {
    let world = World::new();
    let mut sink = world.sink().channels(3).build().unwrap();
    send(&mut sink, orders(0..500)).await.unwrap();
    assert_eq!(world.emulator.observe().connections_opened, 3);
}

#[tokio::test(start_paused = true)]
async fn a_submitted_record_is_answered_by_itself() {
    let world = World::new();
    let mut sink = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .build()
        .unwrap();
    sink.ready().await.unwrap();
    let first = sink.submit(order("1"));
    sink.ready().await.unwrap();
    let again = sink.submit(order("1"));
    let Submitted::Created { name, .. } = first.await.unwrap() else {
        panic!("not created");
    };
    assert_eq!(name, world.created(Q1)[0].name);
    let Submitted::Duplicate { name: same, .. } = again.await.unwrap() else {
        panic!("not a duplicate");
    };
    assert_eq!(name, same);
    assert_eq!(body(&world.created(Q1)[0]), "1");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_needs_no_task_of_an_idle_sink() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    sink.snapshot(Epoch::new(1)).await.unwrap();
    let committed = sink.commit(Epoch::new(1)).await.unwrap();
    assert_eq!(committed.total(), 0);
    assert_eq!(
        world.emulator.observe().connections_opened,
        0,
        "it connects at the first record"
    );
}

/// The first look at a queue comes up when its first record does, and the record after that.
#[tokio::test(start_paused = true)]
async fn a_single_record_for_a_queue_not_seen_before_needs_no_other_call_to_be_sent() {
    let world = World::new();
    let mut sink = world.sink().build().unwrap();
    sink.feed(order("1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.bodies(Q1), ["1"]);
}
