//! How often messages are delivered whose processing takes longer or shorter than their lease.
//!
//! The subscription has the default deadline of 10 s and forwards after 5 attempts. Six messages
//! are published at once; whatever is delivered is processed at once, each delivery by itself:
//!
//! | message | processing | deliveries | why |
//! |---|---|---|---|
//! | 1 | 2 s | 1 | acknowledged in time |
//! | 2 | 4 s | 1 | acknowledged in time |
//! | 3 | 25 s | 3 | leases end at 10 s and 20 s; acknowledged at 25 s, under the third |
//! | 4 | 3 s | 1 | acknowledged in time |
//! | 5 | 1 s, then rejected | 5 | given back five times, then forwarded |
//! | 6 | 12 s | 2 | the lease ends at 10 s; acknowledged at 12 s, under the second |
//!
//! A consumer that inserts a row on every delivery it accepts writes 8 rows (1 + 1 + 3 + 1 + 2); one
//! that keys its rows by message id writes 5.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gcp_emulator::Time;
use gcp_emulator::pubsub::proto::DeadLetterPolicy;
use gcp_emulator::pubsub::state::{LateAcks, Settings};

use crate::world::{SUB, TOPIC, World, text};

const DEAD: &str = "projects/demo/topics/dead";
const PROCESSING: [u64; 6] = [2, 4, 25, 3, 1, 12];
const REJECTED: usize = 5;

/// Which ack id a consumer uses when its processing ends.
#[derive(Clone, Copy, PartialEq)]
enum Acks {
    /// That of the message's newest delivery.
    Newest,
    /// That of the delivery it processed.
    Own,
}

struct Outcome {
    deliveries: Vec<usize>,
    inserted: usize,
    keyed: usize,
    dead: Vec<String>,
}

fn run(acks: Acks, late: LateAcks) -> Outcome {
    let mut settings = Settings::default();
    settings.late_acks = late;
    let mut world = World::with(settings, |_| ());
    world.topic(DEAD);
    let policy = DeadLetterPolicy {
        dead_letter_topic: DEAD.to_owned(),
        max_delivery_attempts: 5,
    };
    let update = gcp_emulator::pubsub::proto::UpdateSubscriptionRequest {
        subscription: Some(gcp_emulator::pubsub::proto::Subscription {
            name: SUB.to_owned(),
            dead_letter_policy: Some(policy),
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["dead_letter_policy".to_owned()],
        }),
    };
    world.state.update_subscription(world.now, update).unwrap();
    let texts: Vec<String> = (1..=6).map(|n| n.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    world.publish(&texts);
    let stream = world.open();

    let start = world.now;
    let mut finishes: BTreeSet<(Time, usize, String)> = BTreeSet::new();
    let mut newest: BTreeMap<usize, String> = BTreeMap::new();
    let mut deliveries = vec![0; 6];
    let (mut inserted, mut keyed) = (0, BTreeSet::new());
    loop {
        for received in world.drain(stream) {
            let number: usize = text(&received).parse().unwrap();
            deliveries[number - 1] += 1;
            if number != REJECTED {
                inserted += 1;
                keyed.insert(number);
            }
            newest.insert(number, received.ack_id.clone());
            let ends = world.now + Duration::from_secs(PROCESSING[number - 1]);
            finishes.insert((ends, number, received.ack_id));
        }
        let due = world.state.poll_timeout();
        let finish = finishes.first().map(|(at, ..)| *at);
        let quiet = start + Duration::from_secs(120);
        let Some(next) = [due, finish]
            .into_iter()
            .flatten()
            .min()
            .filter(|at| *at < quiet)
        else {
            break;
        };
        world.pass(next.since(world.now));
        while let Some((at, number, own)) = finishes.pop_first() {
            if at > world.now {
                finishes.insert((at, number, own));
                break;
            }
            let id = if acks == Acks::Own {
                own
            } else {
                newest[&number].clone()
            };
            let ids = [id];
            if number == REJECTED {
                world
                    .state
                    .modify_ack_deadline(world.now, SUB, &ids, 0)
                    .unwrap();
            } else {
                world.state.acknowledge(world.now, SUB, &ids).unwrap();
            }
        }
        world.state.check_invariants();
    }
    assert_eq!(world.record().backlog, 0);
    let dead = &world.state.record().topics[DEAD];
    let dead = dead
        .payloads()
        .map(|data| String::from_utf8(data.to_vec()).unwrap())
        .collect();
    assert_eq!(world.state.record().topics[TOPIC].published, 6);
    Outcome {
        deliveries,
        inserted,
        keyed: keyed.len(),
        dead,
    }
}

#[test]
fn deliveries_follow_from_processing_time_and_deadline() {
    let outcome = run(Acks::Newest, LateAcks::UntilRedelivered);
    assert_eq!(outcome.deliveries, [1, 1, 3, 1, 5, 2]);
    assert_eq!(outcome.dead, ["5"]);
}

#[test]
fn they_are_the_same_where_late_acknowledgements_count() {
    let outcome = run(Acks::Own, LateAcks::Always);
    assert_eq!(outcome.deliveries, [1, 1, 3, 1, 5, 2]);
    assert_eq!(outcome.dead, ["5"]);
}

#[test]
fn inserting_on_every_delivery_writes_eight_rows_and_keying_by_message_id_five() {
    let outcome = run(Acks::Newest, LateAcks::UntilRedelivered);
    assert_eq!(outcome.inserted, 8);
    assert_eq!(outcome.keyed, 5);
}

#[test]
fn where_only_the_newest_ack_id_counts_a_consumer_that_holds_on_to_its_own_never_finishes() {
    let outcome = run(Acks::Own, LateAcks::UntilRedelivered);
    assert_eq!(outcome.deliveries, [1, 1, 5, 1, 5, 5]);
    assert_eq!(outcome.dead, ["5", "3", "6"]);
}
