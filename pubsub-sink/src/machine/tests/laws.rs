//! Laws of the machine over random histories: everything accepted is stored or handled, nothing is
//! overtaken within a key, every receipt resolves once, and nothing is left behind.

use std::{num::NonZeroU32, time::Duration};

use connector_core::{CheckpointError, Epoch, Verdict};
use proptest::prelude::*;

use super::world::World;
use crate::{MissingTopics, TopicCreation, machine::Class, settings::Settings};

#[derive(Debug, Clone)]
enum Step {
    Accept { topic: u8, key: u8, poisoned: bool },
    Reject { topic: u8, key: u8 },
    Perform,
    Serve { at: usize, lose_answer: bool },
    Refuse { at: usize, quota: bool },
    DeleteTopic(u8),
    TopicAppears(u8),
    Create { at: usize, works: bool },
    Decide(usize),
    EndFlush(bool),
    Snapshot,
    Commit(u64),
    Abort(u64),
    Flush,
    AwaitRoom(bool),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0u8..3, 0u8..3, proptest::bool::weighted(0.1))
            .prop_map(|(topic, key, poisoned)| Step::Accept { topic, key, poisoned }),
        1 => (0u8..3, 0u8..3).prop_map(|(topic, key)| Step::Reject { topic, key }),
        8 => Just(Step::Perform),
        6 => (any::<usize>(), proptest::bool::weighted(0.2))
            .prop_map(|(at, lose_answer)| Step::Serve { at, lose_answer }),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(at, quota)| Step::Refuse { at, quota }),
        2 => (0u8..3).prop_map(Step::DeleteTopic),
        1 => (0u8..3).prop_map(Step::TopicAppears),
        3 => (any::<usize>(), proptest::bool::weighted(0.7))
            .prop_map(|(at, works)| Step::Create { at, works }),
        3 => any::<usize>().prop_map(Step::Decide),
        2 => proptest::bool::weighted(0.7).prop_map(Step::EndFlush),
        2 => Just(Step::Snapshot),
        1 => (0u64..4).prop_map(Step::Commit),
        1 => (0u64..4).prop_map(Step::Abort),
        1 => Just(Step::Flush),
        1 => any::<bool>().prop_map(Step::AwaitRoom),
        4 => (0u64..300).prop_map(Step::Pass),
    ]
}

fn key(number: u8) -> &'static str {
    ["", "a", "b"][usize::from(number)]
}

fn settings(linger: bool) -> Settings {
    Settings {
        batch_messages: 4,
        batch_bytes: 90,
        linger: if linger {
            Duration::from_millis(100)
        } else {
            Duration::ZERO
        },
        in_flight: 2,
        max_destinations: 2,
        idle_destinations: Duration::from_millis(500),
        ordering: true,
        missing_topics: MissingTopics::Create(TopicCreation::default().attempts(NonZeroU32::MAX)),
        max_consecutive_rejections: None,
        retry: crate::machine::Retry {
            total: None,
            ..Settings::default().retry
        },
        progress_timeout: Duration::from_secs(3600),
        ..Settings::default()
    }
}

fn apply(world: &mut World, step: Step) {
    match step {
        Step::Accept {
            topic,
            key: k,
            poisoned,
        } => {
            assert!(world.accept(topic, key(k), poisoned));
        }
        Step::Reject { topic, key: k } => world.reject(topic, key(k)),
        Step::Perform => world.perform(),
        Step::Serve { at, lose_answer } => {
            if !world.calls.is_empty() {
                world.serve(at % world.calls.len(), lose_answer);
            }
        }
        Step::Refuse { at, quota } => {
            if !world.calls.is_empty() {
                let class = if quota {
                    Class::Exhausted
                } else {
                    Class::Transient
                };
                world.refuse(at % world.calls.len(), class);
            }
        }
        Step::DeleteTopic(number) => world.delete(number),
        Step::TopicAppears(number) => world.appear(number),
        Step::Create { at, works } => {
            if !world.creating.is_empty() {
                world.create(at % world.creating.len(), works);
            }
        }
        Step::Decide(at) => {
            if !world.handling.is_empty() {
                world.decide(at % world.handling.len(), Verdict::Drop);
            }
        }
        Step::EndFlush(ok) => {
            // The failed flush of a host that waits for it ends the sink, which other tests show.
            let only_snapshots = world.cuts.values().all(|(epoch, _)| epoch.is_some());
            world.end_flush(ok || !only_snapshots);
        }
        Step::Snapshot => {
            world.snapshot();
        }
        Step::Commit(back) => world.commit(Epoch::new(world.epoch.get().saturating_sub(back))),
        Step::Abort(back) => world.abort(Epoch::new(world.epoch.get().saturating_sub(back))),
        Step::Flush => world.flush(),
        Step::AwaitRoom(wait) => {
            if wait {
                world.machine.await_room(world.now);
            } else {
                world.machine.stop_awaiting_room(world.now);
            }
            world.machine.check_invariants();
        }
        Step::Pass(millis) => world.pass(Duration::from_millis(millis)),
    }
}

/// Each key's log goes up without a gap, or goes back to something stored before.
fn nothing_is_overtaken(world: &World) {
    for ((topic, key), log) in &world.stored_by_key {
        if key.is_empty() {
            continue;
        }
        let order: Vec<u32> = world
            .records
            .iter()
            .filter(|record| {
                record.topic.as_str() == topic
                    && record.key.as_deref() == Some(key)
                    && !record.poisoned
            })
            .map(|record| record.number)
            .collect();
        let mut next = 0;
        for number in log {
            let at = order.iter().position(|other| other == number).unwrap();
            assert!(
                at <= next,
                "{number} of key {key} overtook {}: {log:?}",
                order[next]
            );
            next = at + 1;
        }
        assert_eq!(
            next,
            order.len(),
            "the last of key {key} is stored last: {log:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn everything_accepted_is_stored_or_handled_in_order_and_every_receipt_resolves(
        linger in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new(settings(linger));
        for step in steps {
            apply(&mut world, step);
        }
        world.machine.stop_awaiting_room(world.now);
        let last = world.snapshot();
        world.heal();
        world.commit(last);
        world.heal();

        for record in &world.records {
            prop_assert_eq!(world.durable.contains(&record.number), record.poisoned);
            prop_assert_eq!(world.stored.contains(&record.number), !record.poisoned);
        }
        nothing_is_overtaken(&world);
        prop_assert!(world.cuts.is_empty(), "every cut resolved: {:?}", world.cuts);
        prop_assert!(world.commits.is_empty(), "every commit resolved");
        for (_, outcome) in &world.resolved {
            let expected = matches!(
                outcome,
                Ok(()) | Err(CheckpointError::Aborted { .. } | CheckpointError::Incomplete { .. })
            );
            prop_assert!(expected, "{:?}", outcome);
        }
        let settled: usize = world.committed.iter().map(|committed| committed.total()).sum();
        prop_assert_eq!(settled, world.records.len(), "commits count every record once");
        let stats = world.machine.stats();
        prop_assert_eq!(stats.in_flight_records, 0);
        prop_assert_eq!(stats.in_flight_bytes, 0);
        prop_assert_eq!(stats.in_flight_requests, 0);
        prop_assert!(stats.destinations <= 2);
        let released = world.machine.take_released();
        prop_assert_eq!(released.items, world.records.len(), "all room is given back");
        prop_assert_eq!(released.bytes as u64, stats.bytes_accepted);

        // At rest nothing is pending but the release of idle destinations, and after that nothing.
        world.pass(Duration::from_secs(1));
        prop_assert_eq!(world.machine.stats().destinations, 0);
        prop_assert_eq!(world.machine.poll_timeout(), None);
        prop_assert!(world.machine.poll_effect(world.now).is_none());
        prop_assert!(!world.machine.needs_driver());
    }
}
