//! Ordering keys.

use std::{collections::BTreeMap, time::Duration};

use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_sink::SinkError;

use crate::world::{Bin, POISON, World, feed, is_poisoned, keyed, published, record};

/// The payloads per ordering key, in the order in which they were stored.
fn by_key(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in &world
        .emulator
        .observe()
        .topic(&crate::world::full("events"))
        .messages
    {
        let payload = String::from_utf8_lossy(&message.data).into_owned();
        keys.entry(message.ordering_key.clone())
            .or_default()
            .push(payload);
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn each_request_has_one_key_and_an_empty_key_is_none() {
    let world = World::new(&["events"]);
    let linger = Duration::from_secs(1);
    let mut sink = world
        .builder()
        .message_ordering(true)
        .linger(linger)
        .build()
        .unwrap();
    let records = [
        keyed("events", "a", "1"),
        keyed("events", "b", "2"),
        record("events", "3"),
        keyed("events", "a", "4"),
        keyed("events", "", "5"),
    ];
    feed(&mut sink, records).await;
    sink.flush().await.unwrap();
    let keys = by_key(&world);
    assert_eq!(keys["a"], ["1", "4"]);
    assert_eq!(keys["b"], ["2"]);
    assert_eq!(keys[""], ["3", "5"]);
    for (request, _) in world.requests() {
        let first = &request.messages[0].ordering_key;
        assert!(
            request
                .messages
                .iter()
                .all(|message| message.ordering_key == *first)
        );
    }
    assert_eq!(world.requests().len(), 3, "one request per key");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_failed_for_long_goes_on_in_order_and_holds_up_no_other() {
    let world = World::new(&["events"]);
    let down = Fault::answer(Code::Unavailable, "down");
    // Longer than any retry budget an unordered sink would have.
    let rule = Rule::on(Method::Publish)
        .when(|call| published(call).messages[0].ordering_key == "k")
        .then(down);
    let rule = world.emulator.faults().add(rule);
    let mut sink = world
        .builder()
        .message_ordering(true)
        .progress_timeout(Duration::from_secs(7200))
        .build()
        .unwrap();
    for number in 1..=10 {
        feed(
            &mut sink,
            [
                keyed("events", "k", number.to_string()),
                keyed("events", "j", number.to_string()),
            ],
        )
        .await;
    }
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let expected: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
    assert_eq!(by_key(&world)["j"], expected, "the other key is unaffected");
    assert!(!by_key(&world).contains_key("k"));
    world.emulator.faults().remove(rule);
    sink.flush().await.unwrap();
    assert_eq!(
        by_key(&world)["k"],
        expected,
        "no gap, and nothing overtaken"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rejected_message_of_a_key_leaves_its_neighbours_in_order() {
    let world = World::new(&["events"]);
    let refuse = Fault::answer(Code::InvalidArgument, "does not match the schema");
    world.fault(Rule::on(Method::Publish).when(is_poisoned).then(refuse));
    let bin = Bin::default();
    let mut sink = world
        .builder()
        .message_ordering(true)
        .linger(Duration::from_secs(1))
        .on_rejected(bin.clone())
        .build()
        .unwrap();
    let poisoned = format!("5{}", char::from(POISON));
    let records = (0..20).map(|n| {
        let payload = if n == 5 {
            poisoned.clone()
        } else {
            n.to_string()
        };
        keyed("events", "k", payload)
    });
    feed(&mut sink, records).await;
    sink.flush().await.unwrap();
    let expected: Vec<String> = (0..20).filter(|n| *n != 5).map(|n| n.to_string()).collect();
    assert_eq!(by_key(&world)["k"], expected);
    assert_eq!(bin.content().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_without_ordering_ends_the_sink_and_the_text_says_what_to_set() {
    let world = World::new(&["events"]);
    let mut sink = world.sink();
    let error = sink
        .feed(keyed("events", "customer-7", "1"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, SinkError::OrderingDisabled { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("message_ordering(true)"),
        "{error}"
    );
    assert_eq!(world.count(Method::Publish), 0);
}
