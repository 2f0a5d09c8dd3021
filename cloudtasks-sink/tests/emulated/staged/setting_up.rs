//! What `build` says of sinks that stage.

use std::time::Duration;

use cloudtasks_sink::{BuildError, CloudTasksSink, Delivery, SinkBuilder};
use connector_core::{Budget, Limits};

use super::{HOUR, Stage};
use crate::world::Order;

fn text(builder: SinkBuilder<Order>) -> String {
    builder.build().unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_other_delivery_are_refused_with_both_named() {
    let stage = Stage::new();
    let limits = Limits::new(1, 1);
    let staged = "Delivery::Staged";
    let flush = "Delivery::Flush";
    let plain = || stage.world.sink();
    for (refused, setting, delivery) in [
        (text(stage.sink().limits(limits)), "limits", staged),
        (text(stage.sink().in_flight(1)), "in_flight", staged),
        (
            text(stage.sink().budget(Budget::new(limits))),
            "budget",
            staged,
        ),
        (text(plain().stage(limits)), "stage", flush),
        (text(plain().quarantine(limits)), "quarantine", flush),
        (
            text(plain().retention_margin(HOUR)),
            "retention_margin",
            flush,
        ),
        (text(plain().keep_expired()), "keep_expired", flush),
    ] {
        assert!(refused.contains(setting), "{refused}");
        assert!(refused.contains(delivery), "{refused}");
    }
    assert!(text(stage.sink().stage(Limits::items(0))).contains("stage"));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_its_margin_eats_up_is_refused_with_both_named() {
    let stage = Stage::new();
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let of = |retention: Duration| Delivery::Staged {
        name_retention: retention,
    };
    for refused in [
        text(stage.sink().delivery(of(minutes(10)))),
        text(stage.sink().retention_margin(HOUR)),
    ] {
        assert!(refused.contains("name_retention"), "{refused}");
        assert!(refused.contains("retention_margin"), "{refused}");
    }
    assert!(stage.sink().delivery(of(minutes(11))).build().is_ok());
    let short = text(stage.sink().retention_margin(minutes(9)));
    assert!(short.contains("retention_margin is 540s"), "{short}");
}

#[tokio::test(start_paused = true)]
async fn a_staged_state_is_not_taken_by_a_sink_that_would_forget_it() {
    let stage = Stage::new();
    let mut first = stage.start(None);
    first.feed(0..2).await;
    let saved = first.snapshot(1).await;
    let flushing = |saved| -> Result<CloudTasksSink<Order>, BuildError> {
        stage.world.sink().restore(Some(saved)).build()
    };
    match flushing(saved.clone()) {
        Err(BuildError::StagedState {
            tasks: 2, kept: 0, ..
        }) => {}
        other => panic!("{other:?}"),
    }
    assert!(flushing(saved.settled(true)).is_ok());
    super::settled(first.commit(1)).await;
    assert!(flushing(first.checkpoint(2).await).is_ok());
}
