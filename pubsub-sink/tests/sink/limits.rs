//! Requests and memory stay within their limits.

use std::time::Duration;

use connector_core::Limits;
use futures::SinkExt;
use gcp_emulator::{Emulator, Fault, pubsub::state::History};
use pubsub_sink::PublishMessage;

use crate::world::{Record, World, feed, full, numbers, record, wide};

#[tokio::test(start_paused = true)]
async fn small_records_make_requests_of_at_most_a_thousand_messages() {
    let world = World::new(&["events"]);
    let linger = Duration::from_secs(1);
    let mut sink = world
        .builder()
        .limits(wide())
        .linger(linger)
        .build()
        .unwrap();
    feed(&mut sink, (0..2_500).map(|_| record("events", "x"))).await;
    sink.flush().await.unwrap();
    assert_eq!(world.stored("events").len(), 2_500);
    let sizes: Vec<usize> = world
        .requests()
        .iter()
        .map(|(request, _)| request.messages.len())
        .collect();
    assert!(sizes.iter().all(|size| *size <= 1000), "{sizes:?}");
    assert_eq!(sizes.len(), 3, "{sizes:?}");
}

fn large(payload: usize, attributes: usize) -> Record {
    let message = PublishMessage::new(vec![b'a'; payload]);
    let message = (0..attributes).fold(message, |message, n| {
        message.attribute(format!("{n:0>20}"), "v".repeat(80))
    });
    Record {
        to: "events".to_owned(),
        message,
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_exceeds_ten_million_encoded_bytes_whatever_it_is_made_of() {
    let world = World::new(&["events"]);
    let linger = Duration::from_secs(1);
    let mut sink = world
        .builder()
        .limits(wide())
        .linger(linger)
        .build()
        .unwrap();
    let cases = [
        (999, large(10_009, 0)),
        (1000, large(9_000, 10)),
        (20, large(499_990, 0)),
    ];
    let mut stored = 0;
    for (count, record) in cases {
        feed(&mut sink, std::iter::repeat_n(record, count)).await;
        sink.flush().await.unwrap();
        stored += count;
        assert_eq!(world.stored("events").len(), stored);
    }
    let requests = world.requests();
    assert!(requests.iter().all(|(_, bytes)| *bytes <= 10_000_000));
    assert_eq!(sink.stats().requests_divided, 0, "none was refused");
    assert_eq!(sink.stats().requests_retried, 0);
    assert!(
        requests
            .iter()
            .filter(|(_, bytes)| *bytes > 9_000_000)
            .count()
            >= 3,
        "requests are filled, too"
    );
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded_by_the_limit_and_the_host_waits_instead_of_failing() {
    let history = History::default();
    let world = World::with(Emulator::builder().history(history), &["events"]);
    world.fault_on_publish(Fault::Delay(Duration::from_secs(2)));
    let limit = 4 << 20;
    let message = 256 << 10;
    let limits = Limits::new(1_000_000, limit);
    let mut sink = world.builder().limits(limits).build().unwrap();
    let mut most = 0;
    for _ in 0..256 {
        sink.feed(large(message, 0)).await.unwrap();
        most = most.max(sink.stats().in_flight_bytes);
    }
    sink.flush().await.unwrap();
    let most = usize::try_from(most).unwrap();
    assert!(most >= limit, "the limit was reached: {most}");
    assert!(
        most <= limit + message + 100,
        "and exceeded by one message at most: {most}"
    );
    assert_eq!(
        world.emulator.observe().topic(&full("events")).published,
        256
    );
    assert_eq!(sink.stats().in_flight_bytes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_larger_than_the_whole_limit_is_published_alone() {
    let world = World::new(&["events"]);
    let limits = Limits::new(10, 100);
    let mut sink = world.builder().limits(limits).build().unwrap();
    for size in [1000, 1, 1000, 1] {
        sink.feed(large(size, 0)).await.unwrap();
    }
    sink.flush().await.unwrap();
    assert_eq!(world.stored("events").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_batch_grows_while_four_requests_are_under_way() {
    let world = World::new(&["events"]);
    world.fault_on_publish(Fault::Delay(Duration::from_millis(20)));
    let mut sink = world.sink();
    for number in numbers(0..500) {
        sink.feed(record("events", number)).await.unwrap();
        tokio::task::yield_now().await;
    }
    sink.flush().await.unwrap();
    assert_eq!(world.stored("events").len(), 500);
    let requests = world.requests().len();
    assert!(requests < 20, "{requests} requests for 500 records");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_has_to_wait_still_lets_the_driver_run() {
    let world = World::new(&["events"]);
    let mut sink = world.builder().limits(wide()).build().unwrap();
    feed(&mut sink, (0..3_000).map(|_| record("events", "x"))).await;
    let sent = sink.stats().requests_sent;
    assert!(
        sent > 0,
        "on this runtime of one thread the driver has had its turn"
    );
    sink.flush().await.unwrap();
    assert_eq!(world.stored("events").len(), 3_000);
}
