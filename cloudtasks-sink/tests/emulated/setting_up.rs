//! What `build` refuses, and what it needs.

use std::time::Duration;

use cloudtasks_sink::{BuildError, CloudTasksSink, HttpTask, RetryBudget, SinkState};
use connector_core::{Budget, Epoch, Limits, Restored, SavedState};

use crate::world::{Order, Q1, Q2, World, order, queue, send};

fn text(outcome: Result<CloudTasksSink<Order>, BuildError>) -> String {
    outcome.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn settings_that_exclude_each_other_are_refused_with_both_named() {
    let world = World::new();
    let budget = || Budget::new(Limits::new(1, 1));
    let names = world
        .sink()
        .task_id(|order: &Order| order.id.clone())
        .minted_names();
    let cases = [
        (text(names.build()), ["task_id", "minted_names"]),
        (
            text(
                world
                    .sink()
                    .limits(Limits::new(1, 1))
                    .budget(budget())
                    .build(),
            ),
            ["limits", "budget"],
        ),
        (
            text(world.sink().budget(budget()).in_flight(1).build()),
            ["in_flight", "budget"],
        ),
    ];
    for (text, settings) in cases {
        for setting in settings {
            assert!(text.contains(setting), "{text}");
        }
    }
    let delays = RetryBudget::new(3, Duration::from_secs(2), Duration::from_secs(1));
    let refused = text(world.sink().retries(delays).build());
    assert!(
        refused.contains("retries (2s)") && refused.contains("cap (1s)"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_required_and_the_last_one_named_is_used() {
    let world = World::new();
    let none = CloudTasksSink::builder(|_: &Order| Ok(Some(HttpTask::post("https://h/")?)))
        .endpoint(world.endpoint())
        .build();
    assert!(matches!(none, Err(BuildError::NoDestination)), "{none:?}");
    let mut sink = world.sink().queue(queue(Q2)).build().unwrap();
    send(&mut sink, [order("1")]).await.unwrap();
    assert_eq!(world.bodies(Q2), ["1"]);
    assert!(world.bodies(Q1).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_allowed_hosts_names_hosts_and_is_not_empty() {
    let world = World::new();
    for wrong in ["https://partner.example", "partner.example:443", ""] {
        let refused = text(world.sink().allow_hosts([wrong]).build());
        assert!(refused.contains(&format!("{wrong:?}")), "{refused}");
    }
    let refused = text(world.sink().allow_hosts(Vec::<String>::new()).build());
    assert!(refused.contains("allow_hosts"), "{refused}");
}

#[test]
fn building_outside_a_runtime_is_an_error_and_no_panic() {
    let sink = CloudTasksSink::builder(|_: &Order| Ok(Some(HttpTask::post("https://h/")?)))
        .queue(queue(Q1))
        .build();
    assert!(matches!(sink, Err(BuildError::NoRuntime)), "{sink:?}");
}

#[tokio::test(start_paused = true)]
async fn a_state_restores_only_the_sink_whose_name_it_carries() {
    let world = World::new();
    let state = |instance: &str| -> SinkState {
        let saved = serde_json::json!({
            "connector": "cloudtasks-sink", "instance": instance, "version": 1, "body": [8, 1],
        });
        serde_json::from_value(saved).unwrap()
    };
    let restored = |instance: &str| Some(Restored::new(Epoch::new(3), state(instance)));
    let refused = text(world.sink().instance("a").restore(restored("b")).build());
    assert!(refused.contains("cannot be restored"), "{refused}");
    let error = world
        .sink()
        .instance("a")
        .restore(restored("b"))
        .build()
        .unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("\"a\"") && why.contains("\"b\""), "{why}");
    assert!(
        world
            .sink()
            .instance("a")
            .restore(restored("a"))
            .build()
            .is_ok()
    );
    assert!(world.sink().instance("a").restore(None).build().is_ok());

    let other: SavedState = serde_json::from_value(serde_json::json!({
        "connector": "pubsub-sink", "instance": "a", "version": 1, "body": [8, 1],
    }))
    .unwrap();
    assert!(
        other
            .open::<SinkState>()
            .unwrap_err()
            .to_string()
            .contains("pubsub-sink")
    );
}

#[test]
fn every_public_type_can_cross_threads() {
    fn can_cross<T: Send>() {}
    fn can_be_shared<T: Send + Sync>() {}
    can_cross::<CloudTasksSink<Order>>();
    can_cross::<cloudtasks_sink::SinkBuilder<Order>>();
    can_cross::<cloudtasks_sink::SinkDriver>();
    can_be_shared::<HttpTask>();
    can_be_shared::<SinkState>();
    can_be_shared::<cloudtasks_sink::SinkError>();
    can_be_shared::<cloudtasks_sink::TaskError>();
    can_be_shared::<BuildError>();
}
