//! Dead-letter topics and retry policies.

use std::time::Duration;

use gcp_emulator::pubsub::proto::{
    DeadLetterPolicy, PubsubMessage, RetryPolicy, Subscription, Topic,
};

use crate::world::{SUB, TOPIC, World, texts};

const DEAD: &str = "projects/demo/topics/dead";
const DEAD_SUB: &str = "projects/demo/subscriptions/dead";

fn policy(attempts: i32) -> Option<DeadLetterPolicy> {
    let dead_letter_topic = DEAD.to_owned();
    Some(DeadLetterPolicy {
        dead_letter_topic,
        max_delivery_attempts: attempts,
    })
}

fn world(change: impl FnOnce(&mut Subscription)) -> World {
    let mut world = World::new(|_| ());
    world.state.delete_subscription(world.now, SUB).unwrap();
    world.topic(DEAD);
    world.subscription(DEAD_SUB, DEAD, |_| ()).unwrap();
    world
        .subscription(SUB, TOPIC, |sub| {
            sub.dead_letter_policy = policy(0);
            change(sub);
        })
        .unwrap();
    world
}

#[test]
fn a_message_is_forwarded_after_its_attempts_with_everything_it_had_and_where_it_came_from() {
    let mut world = world(|_| ());
    let published_at = world.now;
    let message = PubsubMessage {
        data: "x".into(),
        ordering_key: "k".to_owned(),
        attributes: [("a".to_owned(), "b".to_owned())].into(),
        ..PubsubMessage::default()
    };
    world
        .state
        .publish(world.now, TOPIC, vec![message])
        .unwrap();
    for attempt in 1..=5 {
        world.pass_secs(1);
        let got = world.pull(1);
        assert_eq!(got[0].delivery_attempt, attempt);
        world.nack(&[&got[0]]);
    }
    assert!(world.pull(1).is_empty());
    assert_eq!(world.record().backlog, 0);
    let dead = world.state.pull(world.now, DEAD_SUB, 10).unwrap();
    let message = dead[0].message.as_ref().unwrap();
    assert_eq!(message.data.as_ref(), b"x");
    assert_eq!(message.ordering_key, "k");
    assert_eq!(message.attributes["a"], "b");
    assert_eq!(
        message.attributes["CloudPubSubDeadLetterSourceDeliveryCount"],
        "5"
    );
    assert_eq!(
        message.attributes["CloudPubSubDeadLetterSourceSubscription"],
        "orders"
    );
    assert_eq!(
        message.attributes["CloudPubSubDeadLetterSourceSubscriptionProject"],
        "demo"
    );
    assert_eq!(
        message.attributes["CloudPubSubDeadLetterSourceTopicPublishTime"],
        published_at.to_string()
    );
    let record = world.record();
    assert_eq!(*record.dead_lettered[0].forwarded_as, *message.message_id);
    assert_ne!(
        record.dead_lettered[0].message_id,
        record.dead_lettered[0].forwarded_as
    );
    assert_eq!(
        dead[0].delivery_attempt, 0,
        "the dead-letter subscription has no policy"
    );
}

#[test]
fn lapses_count_like_nacks_and_counting_goes_on_across_streams() {
    let mut world = world(|_| ());
    world.publish(&["x"]);
    for _ in 0..5 {
        let stream = world.open();
        assert_eq!(world.drain(stream).len(), 1);
        world.state.close_stream(world.now, stream);
        world.pass_secs(10);
    }
    assert_eq!(world.record().lapses, 5);
    assert_eq!(
        texts(&world.state.pull(world.now, DEAD_SUB, 10).unwrap()),
        ["x"]
    );
}

#[test]
fn on_an_ordered_subscription_the_key_goes_on_behind_a_forwarded_message() {
    let mut world = world(|sub| sub.enable_message_ordering = true);
    world.publish_keyed("k", &["0", "1", "2"]);
    for _ in 0..5 {
        let got = world.pull(3);
        assert_eq!(texts(&got), ["0", "1", "2"]);
        world.nack(&[&got[0]]);
    }
    // The last failure forwards it; what was delivered behind it is not delivered again for that.
    assert_eq!(
        texts(&world.state.pull(world.now, DEAD_SUB, 10).unwrap()),
        ["0"]
    );
    assert!(world.pull(3).is_empty());
    world.pass_secs(10);
    assert_eq!(texts(&world.pull(3)), ["1", "2"]);
}

#[test]
fn without_its_topic_a_message_keeps_coming() {
    let mut world = world(|_| ());
    world.publish(&["x"]);
    world.state.delete_topic(world.now, DEAD).unwrap();
    for attempt in 1..=8 {
        let got = world.pull(1);
        assert_eq!(got[0].delivery_attempt, attempt);
        world.nack(&[&got[0]]);
    }
    let topic = Topic {
        name: DEAD.to_owned(),
        ..Topic::default()
    };
    world.state.create_topic(world.now, topic).unwrap();
    let got = world.pull(1);
    world.nack(&[&got[0]]);
    assert_eq!(world.record().dead_lettered.len(), 1);
}

#[test]
fn a_policy_needs_a_topic_that_exists() {
    let mut world = World::new(|_| ());
    let refused = world.subscription("projects/demo/subscriptions/other", TOPIC, |sub| {
        sub.dead_letter_policy = policy(5);
    });
    assert_eq!(refused.unwrap_err().code(), gcp_emulator::Code::NotFound);
}

#[test]
fn a_retry_policy_doubles_the_pause_after_nack_and_lapse_alike() {
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let mut world = World::new(|sub| {
        sub.retry_policy = Some(RetryPolicy {
            minimum_backoff: seconds(5),
            maximum_backoff: seconds(15),
        });
    });
    world.publish(&["x"]);
    for (round, pause) in [5, 10, 15, 15].into_iter().enumerate() {
        let got = world.pull(1);
        assert_eq!(got.len(), 1, "round {round}");
        if round % 2 == 0 {
            world.nack(&[&got[0]]);
        } else {
            world.pass_secs(10);
        }
        world.pass(Duration::from_millis(pause * 1000 - 1));
        assert!(world.pull(1).is_empty(), "round {round}");
        world.pass(Duration::from_millis(1));
    }
}

#[test]
fn without_a_retry_policy_a_nacked_message_comes_at_once() {
    let mut world = World::new(|_| ());
    world.publish(&["x"]);
    let got = world.pull(1);
    world.nack(&[&got[0]]);
    assert_eq!(world.pull(1).len(), 1);
    world.nack(&[&got[0]]);
    assert_eq!(
        world.record().ignored,
        1,
        "the old ack id gives nothing back"
    );
}
