use std::collections::BTreeSet;

use gcp_wire::QueueName;
use proptest::prelude::*;

use super::*;

fn queue() -> QueueName {
    "projects/demo/locations/us-central1/queues/q1"
        .parse()
        .unwrap()
}

#[test]
fn the_id_of_a_key_is_its_sha_256_in_hexadecimal() {
    assert_eq!(
        hashed("order-1"),
        "0bafe22156d2698c143b86040446d366ead863ba600d5c924f3d15c786ef4057"
    );
}

#[test]
fn keys_that_no_task_id_could_hold_become_valid_ids_without_colliding() {
    let long = "k".repeat(501);
    let keys = [
        "order:42", "a b", "é", "x/y", " ", &long, "%2F", "a:b", "a_b", "A_b",
    ];
    let ids: BTreeSet<String> = keys.iter().map(|key| hashed(key)).collect();
    assert_eq!(ids.len(), keys.len());
    for id in ids {
        assert!(queue().task(&id).is_ok(), "{id}");
        assert_eq!(hashed("order:42"), hashed("order:42"), "stable");
    }
}

#[test]
fn the_beginnings_of_ids_are_spread_evenly_over_sequential_keys() {
    let keys = 10_000u32;
    let spread = |id: &dyn Fn(u32) -> String| -> Vec<f64> {
        // Each of the first eight characters by itself, over its 16 values.
        (0..8)
            .map(|place| {
                let mut counts = [0u32; 16];
                for key in 0..keys {
                    let digit = id(key).chars().nth(place).unwrap().to_digit(16).unwrap();
                    counts[digit as usize] += 1;
                }
                let expected = f64::from(keys) / 16.0;
                counts
                    .iter()
                    .map(|n| (f64::from(*n) - expected).powi(2) / expected)
                    .sum()
            })
            .collect()
    };
    // Chi-square with 15 degrees of freedom: 44.3 is exceeded once in ten thousand.
    for value in spread(&|key| hashed(&key.to_string())) {
        assert!(value < 44.3, "{value}");
    }
    let ids: BTreeSet<String> = (0..keys).map(|_| minted()).collect();
    assert_eq!(ids.len(), keys as usize);
    let beginnings: BTreeSet<String> = ids.iter().map(|id| id.chars().take(8).collect()).collect();
    assert!(
        beginnings.len() > 9_900,
        "minted ids do not share their beginnings"
    );
}

#[test]
fn a_closure_may_answer_text_an_option_or_a_result() {
    assert!(matches!(TaskKey::from("k"), TaskKey::Key(key) if key == "k"));
    assert!(matches!(
        TaskKey::from(Some("k".to_owned())),
        TaskKey::Key(_)
    ));
    assert!(matches!(TaskKey::from(None::<&str>), TaskKey::Missing));
    assert!(matches!(
        TaskKey::from(Ok::<_, BoxError>(None::<&str>)),
        TaskKey::Missing
    ));
    let failed = TaskKey::from(Err::<&str, _>(BoxError::from("no id")));
    assert!(matches!(failed, TaskKey::Failed(cause) if cause.to_string() == "no id"));
}

proptest! {
    #[test]
    fn every_key_gives_an_id_that_the_service_accepts(key in ".*") {
        prop_assert!(queue().task(&hashed(&key)).is_ok());
        prop_assert!(queue().task(&minted()).is_ok());
    }
}
