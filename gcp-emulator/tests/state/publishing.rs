//! Publishing and fan-out.

use gcp_emulator::Code;
use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_emulator::pubsub::state::Refusal;

use crate::world::{SUB, TOPIC, World, texts};

#[test]
fn a_message_carries_its_id_and_publish_time_whatever_the_publisher_put_there() {
    let mut world = World::new(|_| ());
    let message = PubsubMessage {
        data: "x".into(),
        message_id: "mine".to_owned(),
        publish_time: Some(prost_types::Timestamp {
            seconds: 1,
            nanos: 0,
        }),
        ..PubsubMessage::default()
    };
    let ids = world
        .state
        .publish(world.now, TOPIC, vec![message])
        .unwrap();
    let got = world.pull(1).remove(0).message.unwrap();
    assert_eq!(got.message_id, ids[0]);
    assert_eq!(got.publish_time, Some(world.now.to_timestamp()));
    assert_eq!(ids[0].len(), 16);
}

#[test]
fn one_request_has_one_publish_time() {
    let mut world = World::new(|_| ());
    world.publish(&["a", "b"]);
    let pulled = world.pull(2);
    let times: Vec<_> = pulled
        .iter()
        .map(|m| m.message.as_ref().unwrap().publish_time)
        .collect();
    assert_eq!(times[0], times[1]);
}

#[test]
fn a_refused_request_stores_nothing() {
    let mut world = World::new(|_| ());
    let good = PubsubMessage {
        data: "x".into(),
        ..PubsubMessage::default()
    };
    let batch = vec![good.clone(), PubsubMessage::default()];
    assert_eq!(
        world.state.publish(world.now, TOPIC, batch),
        Err(Refusal::EmptyMessage)
    );
    let many = vec![good; 1001];
    let refused = world.state.publish(world.now, TOPIC, many).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(world.record().backlog, 0);
}

#[test]
fn a_subscription_gets_what_is_published_after_it_was_created() {
    let mut world = World::new(|_| ());
    world.publish(&["before"]);
    let late = "projects/demo/subscriptions/late";
    world.subscription(late, TOPIC, |_| ()).unwrap();
    world.publish(&["after"]);
    assert_eq!(
        texts(&world.state.pull(world.now, late, 10).unwrap()),
        ["after"]
    );
    assert_eq!(texts(&world.pull(10)), ["before", "after"]);
}

#[test]
fn a_filter_lets_through_what_matches_and_the_rest_counts_as_acknowledged() {
    let mut world = World::new(|sub| sub.filter = "attributes.region = \"eu\"".to_owned());
    for region in ["eu", "us"] {
        let message = PubsubMessage {
            data: region.as_bytes().to_vec().into(),
            attributes: [("region".to_owned(), region.to_owned())].into(),
            ..PubsubMessage::default()
        };
        world
            .state
            .publish(world.now, TOPIC, vec![message])
            .unwrap();
    }
    assert_eq!(world.record().backlog, 1);
    assert_eq!(texts(&world.pull(10)), ["eu"]);
}

#[test]
fn missing_topics_and_malformed_names_are_told_apart() {
    let mut world = World::new(|_| ());
    let message = || {
        vec![PubsubMessage {
            data: "x".into(),
            ..PubsubMessage::default()
        }]
    };
    let missing = world
        .state
        .publish(world.now, "projects/demo/topics/nope", message());
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    let malformed = world.state.publish(world.now, "nope", message());
    assert_eq!(malformed.unwrap_err().code(), Code::InvalidArgument);
    let pulled = world
        .state
        .pull(world.now, "projects/demo/subscriptions/nope", 1);
    assert_eq!(pulled.unwrap_err().code(), Code::NotFound);
    let taken = world.subscription(SUB, TOPIC, |_| ());
    assert_eq!(taken.unwrap_err().code(), Code::AlreadyExists);
}

#[test]
fn a_deleted_topic_leaves_its_subscriptions_with_what_they_hold() {
    let mut world = World::new(|_| ());
    world.publish(&["x"]);
    world.state.delete_topic(world.now, TOPIC).unwrap();
    assert_eq!(
        world.state.subscription(world.now, SUB).unwrap().topic,
        "_deleted-topic_"
    );
    assert_eq!(texts(&world.pull(10)), ["x"]);
    world.topic(TOPIC);
    world.publish(&["y"]);
    assert_eq!(world.record().backlog, 1, "the new topic is another one");
}
