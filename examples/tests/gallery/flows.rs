//! From a subscription to topics.

use examples::{backfill_from_timestamp, copy, fan_out, ordered};

use super::of;

#[tokio::test]
async fn a_copy_that_is_killed_loses_nothing() {
    let figures = copy::run().await.unwrap();
    let names = ["copied", "lost", "not acknowledged"];
    assert_eq!(of(&figures, names), [600, 0, 0], "{figures}");
    let [before] = of(&figures, ["copied before the crash"]);
    assert!((150..=300).contains(&before), "in the middle: {figures}");
    let [repeated] = of(&figures, ["copied more than once"]);
    assert!(
        repeated <= 300,
        "only what came before the crash: {figures}"
    );
}

#[tokio::test]
async fn each_order_goes_to_its_region_and_what_has_none_is_a_dead_letter() {
    let figures = fan_out::run().await.unwrap();
    let names = [
        "orders-eu",
        "orders-us",
        "orders-asia",
        "in a wrong topic",
        "not acknowledged",
    ];
    assert_eq!(of(&figures, names), [200, 200, 200, 0, 0], "{figures}");
    let [letters] = of(&figures, ["dead letters"]);
    assert!(
        (1..=2).contains(&letters),
        "once more after the crash at most: {figures}"
    );
}

#[tokio::test]
async fn a_key_goes_back_after_a_crash_and_leaves_nothing_out() {
    let figures = ordered::run().await.unwrap();
    let names = ["arrived", "keys", "gaps", "not acknowledged"];
    assert_eq!(of(&figures, names), [600, 10, 0, 0], "{figures}");
}

#[tokio::test]
async fn a_backfill_reads_what_was_published_since_and_begins_once() {
    let figures = backfill_from_timestamp::run().await.unwrap();
    let names = [
        "published since",
        "repaired",
        "of before",
        "seeks",
        "not acknowledged",
    ];
    assert_eq!(of(&figures, names), [400, 400, 0, 1, 0], "{figures}");
}
