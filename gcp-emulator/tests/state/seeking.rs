//! Seek and snapshots.

use std::time::Duration;

use gcp_emulator::Code;
use gcp_emulator::pubsub::proto::{CreateSnapshotRequest, Topic, UpdateTopicRequest};
use gcp_emulator::pubsub::state::{Refusal, StreamPoll};

use crate::world::{SUB, TOPIC, World, texts};

const SNAPSHOT: &str = "projects/demo/snapshots/before";

fn snapshot(world: &mut World) -> Result<gcp_emulator::pubsub::proto::Snapshot, Refusal> {
    let request = CreateSnapshotRequest {
        name: SNAPSHOT.to_owned(),
        subscription: SUB.to_owned(),
        ..CreateSnapshotRequest::default()
    };
    world.state.create_snapshot(world.now, request)
}

fn publish_each_second(world: &mut World, texts: &[&str]) {
    for text in texts {
        world.publish(&[text]);
        world.pass_secs(1);
    }
}

#[test]
fn seeking_to_a_time_leaves_what_was_published_exactly_then_acknowledged() {
    let mut world = World::new(|sub| sub.retain_acked_messages = true);
    let start = world.now;
    publish_each_second(&mut world, &["0", "1", "2", "3"]);
    let got = world.pull(10);
    world.ack(&got.iter().collect::<Vec<_>>()).unwrap();
    let target = start + Duration::from_secs(1);
    world.state.seek_to_time(world.now, SUB, target).unwrap();
    world.state.check_invariants();
    assert_eq!(texts(&world.pull(10)), ["2", "3"]);
}

#[test]
fn without_retaining_only_what_was_never_acknowledged_comes_again() {
    let mut world = World::new(|_| ());
    let start = world.now;
    publish_each_second(&mut world, &["0", "1", "2"]);
    let got = world.pull(10);
    world.ack(&[&got[0], &got[2]]).unwrap();
    let ids: Vec<String> = got.iter().map(|message| message.ack_id.clone()).collect();
    world
        .state
        .seek_to_time(world.now, SUB, start.before(Duration::from_secs(1)))
        .unwrap();
    let again = world.pull(10);
    assert_eq!(texts(&again), ["1"], "outstanding, and back at once");
    assert!(!ids.contains(&again[0].ack_id));
}

#[test]
fn seeking_to_the_future_purges_the_backlog_and_lets_later_messages_through() {
    let mut world = World::new(|_| ());
    publish_each_second(&mut world, &["0", "1"]);
    let stream = world.open_with(|first| first.max_outstanding_messages = 1);
    world.drain(stream);
    world.state.seek_to_time(world.now, SUB, world.now).unwrap();
    assert_eq!(world.record().backlog, 0);
    assert_eq!(world.poll(stream), StreamPoll::Idle);
    world.pass_secs(1);
    world.publish(&["2"]);
    assert!(world.state.take_woken().contains(&stream));
    assert_eq!(
        texts(&world.drain(stream)),
        ["2"],
        "the purged message gave its room back"
    );
}

#[test]
fn a_topic_with_retention_brings_back_what_the_subscription_never_had() {
    let mut world = World::new(|_| ());
    let update = UpdateTopicRequest {
        topic: Some(Topic {
            name: TOPIC.to_owned(),
            message_retention_duration: Some(prost_types::Duration {
                seconds: 3600,
                nanos: 0,
            }),
            ..Topic::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["message_retention_duration".to_owned()],
        }),
    };
    world.state.update_topic(world.now, update).unwrap();
    let start = world.now;
    publish_each_second(&mut world, &["0", "1"]);
    let got = world.pull(10);
    world.ack(&got.iter().collect::<Vec<_>>()).unwrap();
    let late = "projects/demo/subscriptions/late";
    world.subscription(late, TOPIC, |_| ()).unwrap();
    for name in [SUB, late] {
        let before = start.before(Duration::from_secs(1));
        world.state.seek_to_time(world.now, name, before).unwrap();
        let again = world.state.pull(world.now, name, 10).unwrap();
        assert_eq!(texts(&again), ["0", "1"], "{name}");
    }
    let config = world.state.subscription(world.now, SUB).unwrap();
    assert_eq!(
        config.topic_message_retention_duration.unwrap().seconds,
        3600
    );
}

#[test]
fn a_snapshot_brings_back_what_was_unacknowledged_then_and_everything_since() {
    let mut world = World::new(|sub| sub.retain_acked_messages = true);
    world.publish(&["0", "1", "2"]);
    let got = world.pull(3);
    world.ack(&[&got[0]]).unwrap();
    let made = snapshot(&mut world).unwrap();
    assert_eq!(made.topic, TOPIC);
    let week = world.now + Duration::from_secs(7 * 24 * 3600);
    assert_eq!(made.expire_time, Some(week.to_timestamp()));
    world.ack(&[&got[1], &got[2]]).unwrap();
    world.publish(&["3"]);
    let later = world.pull(1);
    world.ack(&[&later[0]]).unwrap();
    world
        .state
        .seek_to_snapshot(world.now, SUB, SNAPSHOT)
        .unwrap();
    world.state.check_invariants();
    assert_eq!(texts(&world.pull(10)), ["1", "2", "3"]);
}

#[test]
fn seeking_on_an_ordered_subscription_keeps_the_order() {
    let mut world = World::new(|sub| {
        sub.enable_message_ordering = true;
        sub.retain_acked_messages = true;
    });
    world.publish_keyed("k", &["0", "1", "2"]);
    let got = world.pull(3);
    world.ack(&[&got[0], &got[1]]).unwrap();
    world
        .state
        .seek_to_time(world.now, SUB, world.now.before(Duration::from_secs(1)))
        .unwrap();
    world.state.check_invariants();
    assert_eq!(texts(&world.pull(3)), ["0", "1", "2"]);
}

#[test]
fn snapshots_have_their_rules() {
    let mut world = World::new(|_| ());
    snapshot(&mut world).unwrap();
    assert_eq!(
        snapshot(&mut world).unwrap_err().code(),
        Code::AlreadyExists
    );
    let other = "projects/demo/topics/other";
    world.topic(other);
    let stranger = "projects/demo/subscriptions/stranger";
    world.subscription(stranger, other, |_| ()).unwrap();
    let refused = world.state.seek_to_snapshot(world.now, stranger, SNAPSHOT);
    assert_eq!(refused, Err(Refusal::SnapshotOfOtherTopic));
    let (names, _) = world
        .state
        .list_topic_snapshots(world.now, TOPIC, 0, "")
        .unwrap();
    assert_eq!(names, [SNAPSHOT]);
    world.state.delete_snapshot(world.now, SNAPSHOT).unwrap();
    let gone = world
        .state
        .seek_to_snapshot(world.now, SUB, SNAPSHOT)
        .unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[test]
fn a_snapshot_of_an_old_backlog_is_shorter_and_one_of_a_very_old_one_refused() {
    let kept = Some(prost_types::Duration {
        seconds: 14 * 24 * 3600,
        nanos: 0,
    });
    let mut world = World::new(|sub| sub.message_retention_duration = kept);
    world.publish(&["old"]);
    world.pass_secs(3 * 24 * 3600);
    let made = snapshot(&mut world).unwrap();
    let four_days = world.now + Duration::from_secs(4 * 24 * 3600);
    assert_eq!(made.expire_time, Some(four_days.to_timestamp()));
    world.pass_secs(4 * 24 * 3600);
    let gone = world.state.snapshot(world.now, SNAPSHOT).unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert_eq!(snapshot(&mut world), Err(Refusal::SnapshotTooShort));
}
