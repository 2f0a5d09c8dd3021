//! Retention, expiry, updates, lists.

use std::time::Duration;

use gcp_emulator::Code;
use gcp_emulator::pubsub::proto::{
    ExpirationPolicy, RetryPolicy, Subscription, UpdateSubscriptionRequest,
};
use gcp_emulator::pubsub::state::Refusal;

use crate::world::{SUB, TOPIC, World, texts};

const DAY: u64 = 24 * 3600;

fn update(
    world: &mut World,
    path: &str,
    change: impl FnOnce(&mut Subscription),
) -> Result<Subscription, Refusal> {
    let mut wanted = Subscription {
        name: SUB.to_owned(),
        ..Subscription::default()
    };
    change(&mut wanted);
    let request = UpdateSubscriptionRequest {
        subscription: Some(wanted),
        update_mask: Some(prost_types::FieldMask {
            paths: vec![path.to_owned()],
        }),
    };
    world.state.update_subscription(world.now, request)
}

#[test]
fn a_message_older_than_the_retention_is_gone_even_while_it_is_outstanding() {
    let kept = Some(prost_types::Duration {
        seconds: 600,
        nanos: 0,
    });
    let mut world = World::new(|sub| sub.message_retention_duration = kept);
    world.publish(&["old"]);
    world.pass_secs(1);
    world.publish(&["new"]);
    let stream = world.open_with(|first| {
        first.max_outstanding_messages = 1;
        first.stream_ack_deadline_seconds = 600;
    });
    let got = world.drain(stream);
    assert_eq!(texts(&got), ["old"]);
    world.pass_secs(599);
    assert_eq!(texts(&world.drain(stream)), ["new"]);
    world.ack(&[&got[0]]).unwrap();
    assert_eq!(world.record().acks, 0);
    world.pass_secs(1);
    assert_eq!(world.record().backlog, 0);
}

#[test]
fn an_unused_subscription_expires_and_a_used_one_does_not() {
    let ttl = Some(prost_types::Duration {
        seconds: 86_400,
        nanos: 0,
    });
    let mut world = World::new(|sub| sub.expiration_policy = Some(ExpirationPolicy { ttl }));
    world.pass_secs(DAY - 1);
    assert!(world.pull(1).is_empty());
    world.pass_secs(DAY - 1);
    let stream = world.open();
    world.pass_secs(3 * DAY);
    world.state.close_stream(world.now, stream);
    world.pass(Duration::from_secs(DAY) - Duration::from_nanos(1));
    assert!(world.record().backlog == 0 && world.state.poll_timeout().is_some());
    world.pass_secs(1);
    assert_eq!(world.state.poll_timeout(), None);
    assert_eq!(
        world.state.pull(world.now, SUB, 1).unwrap_err().code(),
        Code::NotFound
    );
    world.publish(&["for nobody"]);
}

#[test]
fn a_subscription_can_be_told_to_live_for_ever() {
    let policy = Some(ExpirationPolicy { ttl: None });
    let mut world = World::new(|sub| sub.expiration_policy = policy);
    world.pass_secs(400 * DAY);
    assert!(world.state.subscription(world.now, SUB).is_ok());
}

#[test]
fn only_the_fields_of_the_mask_change() {
    let mut world = World::new(|_| ());
    let changed = update(&mut world, "ack_deadline_seconds", |sub| {
        sub.ack_deadline_seconds = 30;
        sub.retain_acked_messages = true;
    })
    .unwrap();
    assert_eq!(changed.ack_deadline_seconds, 30);
    assert!(!changed.retain_acked_messages);
    assert_eq!(world.state.subscription(world.now, SUB).unwrap(), changed);
    world.publish(&["x"]);
    world.pull(1);
    world.pass_secs(29);
    assert_eq!(world.record().lapses, 0);
    world.pass_secs(1);
    assert_eq!(world.record().lapses, 1);
}

#[test]
fn fixed_and_unknown_fields_and_bad_values_are_refused() {
    let mut world = World::new(|_| ());
    for path in [
        "topic",
        "filter",
        "enable_message_ordering",
        "name",
        "detached",
    ] {
        let refused = update(&mut world, path, |_| ()).unwrap_err();
        assert!(matches!(refused, Refusal::Immutable { .. }), "{path}");
    }
    let refused = update(&mut world, "ackDeadlineSeconds", |_| ()).unwrap_err();
    assert!(matches!(refused, Refusal::UnknownField { .. }));
    let refused = update(&mut world, "ack_deadline_seconds", |s| {
        s.ack_deadline_seconds = 5
    });
    assert!(matches!(refused.unwrap_err(), Refusal::Range { .. }));
    let request = UpdateSubscriptionRequest {
        subscription: Some(Subscription {
            name: SUB.to_owned(),
            ..Subscription::default()
        }),
        update_mask: None,
    };
    let refused = world
        .state
        .update_subscription(world.now, request)
        .unwrap_err();
    assert!(matches!(refused, Refusal::EmptyMask { .. }));
}

#[test]
fn exactly_once_can_be_switched_on_under_an_open_stream() {
    let mut world = World::new(|_| ());
    let stream = world.open();
    update(&mut world, "enable_exactly_once_delivery", |s| {
        s.enable_exactly_once_delivery = true
    })
    .unwrap();
    world.publish(&["x"]);
    let properties = world.response(stream).subscription_properties.unwrap();
    assert!(properties.exactly_once_delivery_enabled);
}

#[test]
fn one_bound_of_a_retry_policy_can_change_alone() {
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let mut world = World::new(|sub| {
        sub.retry_policy = Some(RetryPolicy {
            minimum_backoff: seconds(5),
            maximum_backoff: seconds(15),
        });
    });
    let changed = update(&mut world, "retry_policy.maximum_backoff", |sub| {
        sub.retry_policy = Some(RetryPolicy {
            minimum_backoff: seconds(1),
            maximum_backoff: seconds(60),
        });
    })
    .unwrap();
    let policy = changed.retry_policy.unwrap();
    assert_eq!(
        (policy.minimum_backoff, policy.maximum_backoff),
        (seconds(5), seconds(60))
    );
}

#[test]
fn lists_come_in_pages() {
    let mut world = World::new(|_| ());
    for n in 0..5 {
        world
            .subscription(&format!("projects/demo/subscriptions/s-{n}"), TOPIC, |_| ())
            .unwrap();
    }
    world.topic("projects/other/topics/abc");
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let (page, next) = world
            .state
            .list_subscriptions("projects/demo", 4, &token)
            .unwrap();
        seen.extend(page.into_iter().map(|sub| sub.name));
        token = next;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), 6);
    let (of_topic, _) = world.state.list_topic_subscriptions(TOPIC, 0, "").unwrap();
    assert_eq!(of_topic, seen);
    let (topics, _) = world.state.list_topics("projects/other", 0, "").unwrap();
    assert_eq!(topics.len(), 1);
    assert!(world.state.list_topics("demo", 0, "").is_err());
}
