//! What a start says.

use super::{
    scripted::{dead_letters, earliest, ordered},
    world::*,
};
use crate::{
    prepare::{notice::Notice, wishes::Wishes},
    start::SeekTarget,
};

#[test]
fn going_back_without_any_retention_is_told_and_goes_on() {
    let mut world = World::of(1);
    let retaining = facts(|one| one.retain_acked_messages = true);
    world.existing.insert(subscription(1), retaining);
    world
        .start(Wishes {
            target: earliest(),
            ..wishes(2)
        })
        .unwrap();
    let told = Notice::NothingRetained {
        subscription: subscription(0),
    };
    let of_retention = |notice: &&Notice| matches!(notice, Notice::NothingRetained { .. });
    assert_eq!(world.notices.iter().filter(of_retention).count(), 1);
    assert!(world.notices.contains(&told));

    // Not for a start that stays where it is, or that goes on.
    let mut world = World::of(1);
    world
        .start(Wishes {
            target: Some(SeekTarget::Time(wishes(1).moment)),
            ..wishes(1)
        })
        .unwrap();
    assert_eq!(world.notices.iter().filter(of_retention).count(), 0);
}

#[test]
fn a_policy_of_few_attempts_a_deleted_topic_and_idle_readers_are_told() {
    let mut world = World::of(0);
    let few = facts(|one| dead_letters(one, 9));
    world.existing.insert(subscription(0), few);
    let enough = facts(|one| dead_letters(one, 10));
    world.existing.insert(subscription(1), enough);
    let orphan = facts(|one| one.topic = "_deleted-topic_".into());
    world.existing.insert(subscription(2), orphan);
    world.start(wishes(3)).unwrap();
    assert_eq!(
        world.notices,
        [
            Notice::FewAttempts {
                subscription: subscription(0),
                attempts: 9
            },
            Notice::TopicDeleted {
                subscription: subscription(2)
            },
        ]
    );

    let mut world = World::of(0);
    let keeps_order = facts(|one| one.enable_message_ordering = true);
    world.existing.insert(subscription(0), keeps_order);
    let plan = ordered(1, 3);
    world.start(Wishes { plan, ..wishes(1) }).unwrap();
    assert_eq!(
        world.notices,
        [Notice::IdleReaders {
            idle: 2,
            readers: 3,
            subscriptions: 1
        }]
    );
}

#[test]
fn a_created_subscription_that_shares_its_topic_is_told_and_existing_ones_are_not() {
    let shared = |notice: &Notice| matches!(notice, Notice::SharedTopic { .. });
    let mut world = World::of(1);
    world
        .start(Wishes {
            plan: wishes(2).plan,
            creations: [(subscription(1), creation())].into(),
            ..wishes(2)
        })
        .unwrap();
    assert!(world.notices.iter().any(shared), "{:?}", world.notices);

    let mut world = World::of(2);
    world.start(wishes(2)).unwrap();
    assert!(!world.notices.iter().any(shared));
}
