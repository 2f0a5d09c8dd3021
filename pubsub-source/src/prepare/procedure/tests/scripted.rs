//! One start, one behaviour.

use gcp_wire::{SnapshotName, proto::pubsub};

use super::world::*;
use crate::{
    creation::{SubscriptionCreation, SubscriptionCreationBuilder},
    decode::DecodeFailure,
    plan::SplitPlan,
    prepare::{PrepareError, notice::Notice, wishes::Wishes},
    start::{Seek, SeekId, SeekTarget, StartRecord},
};

pub(super) fn earliest() -> Option<SeekTarget> {
    Some(SeekTarget::Time(std::time::Duration::ZERO))
}

pub(super) fn ordered(subscriptions: usize, readers: usize) -> SplitPlan {
    SplitPlan::ordered((0..subscriptions).map(subscription), readers).unwrap()
}

fn creating(creation: SubscriptionCreation) -> Wishes {
    Wishes {
        creations: [(subscription(0), creation)].into(),
        ..wishes(1)
    }
}

fn of_orders() -> SubscriptionCreationBuilder {
    SubscriptionCreation::builder(topic("orders"))
}

pub(super) fn dead_letters(one: &mut pubsub::Subscription, attempts: i32) {
    one.dead_letter_policy = Some(pubsub::DeadLetterPolicy {
        dead_letter_topic: topic("dead").to_string(),
        max_delivery_attempts: attempts,
    });
}

#[test]
fn what_cannot_be_read_is_refused_by_name_with_the_way_out() {
    type Change = fn(&mut pubsub::Subscription);
    let cases: [(Change, &str); 6] = [
        (|_| {}, "create another subscription with message ordering"),
        (
            |one| one.enable_message_ordering = true,
            "add a policy to the subscription",
        ),
        (|one| one.detached = true, "delete it and create it again"),
        (
            |one| one.push_config.get_or_insert_default().push_endpoint = "https://x".into(),
            "clear its push configuration",
        ),
        (
            |one| one.bigquery_config = Some(pubsub::BigQueryConfig::default()),
            "to BigQuery",
        ),
        (
            |one| one.cloud_storage_config = Some(pubsub::CloudStorageConfig::default()),
            "to Cloud Storage",
        ),
    ];
    for (change, way_out) in cases {
        let mut world = World::of(2);
        world.existing.insert(subscription(1), facts(change));
        world.existing.insert(
            subscription(0),
            facts(|one| {
                one.enable_message_ordering = true;
                dead_letters(one, 20);
            }),
        );
        let error = world.start(Wishes {
            plan: ordered(2, 1),
            target: earliest(),
            decode_failure: DecodeFailure::Nack,
            ..wishes(2)
        });
        let text = error.unwrap_err().to_string();
        assert!(text.contains(subscription(1).as_str()), "{text}");
        assert!(text.contains(way_out), "{text}");
        assert_eq!((world.saves, world.sought.len()), (0, 0));
    }
}

#[test]
fn undecodable_messages_that_are_not_given_back_need_no_dead_letter_policy() {
    World::of(1).start(wishes(1)).unwrap();
}

#[test]
fn creation_settings_that_could_not_be_read_are_refused_before_anybody_is_asked() {
    let unordered = Wishes {
        plan: ordered(1, 1),
        ..creating(creation())
    };
    let mut world = World::of(0);
    let error = world.start(unordered).unwrap_err();
    assert!(
        matches!(error, PrepareError::CreationUnordered { .. }),
        "{error}"
    );
    let without_policy = Wishes {
        decode_failure: DecodeFailure::Nack,
        ..creating(creation())
    };
    let error = world.start(without_policy).unwrap_err();
    assert!(
        matches!(error, PrepareError::CreationWithoutDeadLetters { .. }),
        "{error}"
    );
    let elsewhere = Wishes {
        creations: [(subscription(7), creation())].into(),
        ..wishes(1)
    };
    let error = world.start(elsewhere).unwrap_err();
    assert!(matches!(error, PrepareError::NotPlanned { .. }), "{error}");
    assert!(world.created.is_empty());
}

#[test]
fn a_missing_subscription_is_created_where_settings_were_given_for_it_and_only_there() {
    let mut world = World::of(0);
    world.start(creating(creation())).unwrap();
    assert_eq!(world.created, [subscription(0)]);

    let mut world = World::of(0);
    let error = world
        .start(Wishes {
            plan: wishes(2).plan,
            ..creating(creation())
        })
        .unwrap_err();
    let PrepareError::Missing {
        subscription: missing,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(missing, subscription(1));
    assert!(world.created.is_empty(), "not even the one that may be");
}

#[test]
fn a_missing_topic_is_named_before_anything_is_created() {
    let with_dead_letters = of_orders().dead_letter_policy(topic("dead"), 20).build();
    for missing in ["orders", "dead"] {
        let mut world = World::of(0);
        world.missing_topics.insert(topic(missing));
        let mut asked = creating(with_dead_letters.clone().unwrap());
        // Another one could be created; it is left alone too.
        asked.plan = wishes(2).plan;
        let other = SubscriptionCreation::builder(topic("refunds")).build();
        asked.creations.insert(subscription(1), other.unwrap());
        let text = world.start(asked).unwrap_err().to_string();
        assert!(text.contains(topic(missing).as_str()), "{text}");
        assert!(text.contains("create the topic first"), "{text}");
        assert!(world.created.is_empty());
    }
}

#[test]
fn topics_that_may_not_be_looked_at_do_not_keep_a_subscription_from_being_created() {
    let mut world = World::of(0);
    world.hidden_topics.insert(topic("orders"));
    world.start(creating(creation())).unwrap();
    assert_eq!(world.created, [subscription(0)]);
}

#[test]
fn the_settings_of_whoever_created_it_first_are_the_ones_that_are_checked() {
    let ordered_creation = of_orders().message_ordering(true).build().unwrap();
    let asked = || Wishes {
        plan: ordered(1, 1),
        ..creating(ordered_creation.clone())
    };
    let mut world = World::of(0);
    world.raced.insert(subscription(0), facts(|_| {}));
    let error = world.start(asked()).unwrap_err();
    assert!(matches!(error, PrepareError::Unordered { .. }), "{error}");

    let mut world = World::of(0);
    let winner = facts(|one| one.enable_message_ordering = true);
    world.raced.insert(subscription(0), winner);
    world.start(asked()).unwrap();
    assert!(world.created.is_empty());
}

#[test]
fn a_subscription_that_exists_is_not_compared_with_its_creation_settings() {
    let mut world = World::of(1);
    let different = SubscriptionCreation::builder(topic("refunds")).build();
    world.missing_topics.insert(topic("refunds"));
    world.start(creating(different.unwrap())).unwrap();
    assert!(world.created.is_empty());
}

#[test]
fn continuing_seeks_nothing_and_is_recorded_as_this_jobs_start() {
    let mut world = World::of(2);
    let prepared = world.start(wishes(2)).unwrap();
    assert!(world.sought.is_empty());
    assert!(world.stored.as_ref().unwrap().is_done());
    // A position that is configured afterwards is not that of the first start.
    let later = world.start(Wishes {
        target: earliest(),
        ..wishes(2)
    });
    assert_eq!(later.unwrap(), prepared);
    assert!(world.sought.is_empty());
    assert!(world.notices.contains(&Notice::StartedBefore));
}

#[test]
fn every_subscription_is_sought_once_and_never_again() {
    let mut world = World::of(3);
    let asked = || Wishes {
        target: earliest(),
        ..wishes(3)
    };
    let first = world.start(asked()).unwrap();
    assert_eq!(world.sought.len(), 3);
    assert_eq!(world.saves, 2, "intended, then done");
    assert_eq!(world.start(asked()).unwrap(), first);
    assert_eq!((world.sought.len(), world.saves), (3, 2));
}

#[test]
fn a_start_that_finds_an_intent_seeks_to_the_recorded_target_whatever_is_asked_now() {
    let recorded = SeekTarget::Time(std::time::Duration::from_secs(77));
    let seek = Seek {
        id: SeekId(5),
        target: recorded.clone(),
    };
    for asked in [None, earliest()] {
        let mut world = World::of(1);
        let subscriptions = vec![subscription(0)];
        world.stored = Some(StartRecord::intended(
            "job".into(),
            subscriptions,
            seek.clone(),
        ));
        world
            .start(Wishes {
                target: asked,
                ..wishes(1)
            })
            .unwrap();
        assert_eq!(world.sought, [(subscription(0), recorded.clone())]);
        let done = world.stored.as_ref().unwrap();
        assert_eq!(done.seek(), Some(&seek), "the seek keeps its name");
        let resumed = Notice::Resumed {
            target: recorded.clone(),
            planned: vec![subscription(0)],
        };
        assert!(world.notices.contains(&resumed), "{:?}", world.notices);
    }
}

#[test]
fn a_start_that_was_cut_short_and_comes_again_with_other_subscriptions_seeks_all_of_those() {
    let target = SeekTarget::Time(std::time::Duration::from_secs(77));
    let seek = Seek {
        id: SeekId(5),
        target: target.clone(),
    };
    let recorded = vec![subscription(0), subscription(2)];
    let mut world = World::of(3);
    world.stored = Some(StartRecord::intended("job".into(), recorded, seek));
    world
        .start(Wishes {
            target: earliest(),
            ..wishes(2)
        })
        .unwrap();
    let planned = vec![subscription(0), subscription(1)];
    let sought = planned.iter().map(|one| (one.clone(), target.clone()));
    assert_eq!(world.sought, sought.collect::<Vec<_>>());
    let record = world.stored.as_ref().unwrap();
    assert!(record.is_done());
    assert_eq!(record.subscriptions(), planned);
    // Nothing is "read from where it stands", as it is after a start that is over.
    let told = |notice: &Notice| matches!(notice, Notice::OtherSubscriptions { .. });
    assert!(!world.notices.iter().any(told), "{:?}", world.notices);
    let resumed = Notice::Resumed { target, planned };
    assert!(world.notices.contains(&resumed), "{:?}", world.notices);
}

#[test]
fn a_subscription_that_joins_later_is_not_sought_and_the_change_is_told_once() {
    let mut world = World::of(2);
    let asked = |subscriptions| Wishes {
        target: earliest(),
        ..wishes(subscriptions)
    };
    world.start(asked(1)).unwrap();
    let seek = world.stored.as_ref().unwrap().seek().cloned();
    for _ in 0..2 {
        world.start(asked(2)).unwrap();
        let record = world.stored.as_ref().unwrap();
        assert_eq!(
            record.seek(),
            seek.as_ref(),
            "states of before it stay valid"
        );
    }
    assert_eq!((world.sought.len(), world.saves), (1, 3));
    let change = Notice::OtherSubscriptions {
        recorded: vec![subscription(0)],
        planned: vec![subscription(0), subscription(1)],
    };
    let told = world.notices.iter().filter(|notice| **notice == change);
    assert_eq!(told.count(), 1);

    // In another order they are the same.
    let plan = SplitPlan::new([subscription(1), subscription(0)], 1).unwrap();
    world.start(Wishes { plan, ..asked(2) }).unwrap();
    let changes = world.notices.iter();
    let changes = changes.filter(|notice| matches!(notice, Notice::OtherSubscriptions { .. }));
    assert_eq!((changes.count(), world.saves), (1, 3));
}

#[test]
fn the_record_of_another_job_is_refused_before_anything_is_asked() {
    let mut world = World::of(1);
    let subscriptions = vec![subscription(0)];
    world.stored = Some(StartRecord::done("other".into(), subscriptions, None));
    let error = world.start(wishes(1)).unwrap_err();
    let PrepareError::Foreign { cause } = error else {
        panic!("{error}")
    };
    let text = cause.to_string();
    assert!(text.contains("other") && text.contains("job"), "{text}");
}

#[test]
fn a_snapshot_has_to_be_there_and_of_the_right_topic_before_anything_is_changed() {
    let name: SnapshotName = "projects/demo/snapshots/before".parse().unwrap();
    let asked = || Wishes {
        target: Some(SeekTarget::Snapshot(name.clone())),
        plan: wishes(2).plan,
        creations: [(subscription(1), creation())].into(),
        ..wishes(2)
    };
    let mut world = World::of(1);
    let error = world.start(asked()).unwrap_err();
    assert!(
        matches!(error, PrepareError::MissingSnapshot { .. }),
        "{error}"
    );
    world
        .snapshots
        .insert(name.clone(), topic("refunds").to_string());
    let text = world.start(asked()).unwrap_err().to_string();
    assert!(
        text.contains("refunds") && text.contains("orders"),
        "{text}"
    );
    assert!(world.created.is_empty() && world.stored.is_none());
    world
        .snapshots
        .insert(name.clone(), topic("orders").to_string());
    world.start(asked()).unwrap();
    assert_eq!(world.sought.len(), 2);
}

#[test]
fn exactly_once_subscriptions_are_read_like_others() {
    let mut world = World::of(0);
    let exactly_once = facts(|one| one.enable_exactly_once_delivery = true);
    world.existing.insert(subscription(0), exactly_once);
    world.start(wishes(1)).unwrap();
}
