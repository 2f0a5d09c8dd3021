//! Messages that wait for their commit, and those kept aside.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use connector_core::{CheckpointError, Epoch, Limits, Verdict};

use super::world::{World, identity, standard, topic};
use crate::{
    Delivery, PublishMessage,
    machine::{Machine, Resumed},
    message,
    settings::Settings,
    staged::Quarantined,
};

fn staged() -> Settings {
    Settings {
        delivery: Delivery::Staged,
        stage: Limits::items(4),
        ..Settings::default()
    }
}

#[test]
fn a_checkpoint_is_wanted_at_half_a_stage_until_it_was_asked_for_or_the_sink_has_ended() {
    let mut world = World::new(staged());
    let mut wants = Vec::new();
    for _ in 0..2 {
        world.accept(0, "", false);
        wants.push(world.machine.wants_checkpoint());
    }
    assert_eq!(wants, [false, true]);
    world.machine.checkpoint_asked();
    assert!(!world.machine.wants_checkpoint());
    world.snapshot();
    for _ in 0..2 {
        world.accept(0, "", false);
    }
    assert!(world.machine.wants_checkpoint(), "of the next epoch");
    assert!(!world.accept(0, "a key in a sink without order", false));
    world.ended();
    assert!(!world.machine.wants_checkpoint());

    let mut flushing = standard();
    for _ in 0..10 {
        flushing.accept(0, "", false);
    }
    assert!(
        !flushing.machine.wants_checkpoint(),
        "nothing waits for one"
    );
}

/// A machine that was restored with these messages aside.
fn restored(messages: &[Bytes]) -> Machine {
    let kept = messages.iter().enumerate().map(|(number, message)| {
        Arc::new(Quarantined {
            identity: identity(number),
            topic: topic(0),
            message: message.clone(),
            reason: "scripted".to_owned(),
        })
    });
    let resumed = Resumed {
        epoch: Epoch::new(1),
        messages: Vec::new(),
        quarantined: kept.collect(),
    };
    Machine::new(staged(), Some(resumed)).0
}

fn aside(machine: &Machine) -> Vec<u64> {
    let kept = machine.quarantined().into_iter();
    kept.map(|kept| kept.identity.sequence).collect()
}

#[test]
fn what_is_discarded_is_gone_and_counted() {
    let mut machine = restored(&[Bytes::new(), Bytes::new(), Bytes::new()]);
    assert_eq!(machine.discard_quarantined(|one| one.sequence > 7), 0);
    assert_eq!(machine.discard_quarantined(|one| one.sequence < 2), 2);
    assert_eq!(aside(&machine), [2]);
    machine.check_invariants();
}

#[test]
fn what_is_staged_again_takes_its_room_and_what_cannot_be_read_stays_aside() {
    let messages = ["one", "three"].map(|text| PublishMessage::new(text.to_owned()));
    let [one, three] = messages.each_ref().map(message::encode_alone);
    let damaged = Bytes::from_static(b"\xFF");
    let mut machine = restored(&[one, damaged, three]);
    let now = crate::clock::now();
    let staged = machine.stage_quarantined(now, |_| true);
    let bytes: usize = messages.iter().map(message::frame_len).sum();
    assert_eq!(staged, Limits::new(2, bytes));
    assert_eq!(machine.held(), staged);
    assert_eq!(aside(&machine), [1]);
    assert!(machine.wants_checkpoint(), "half of the stage");
    machine.check_invariants();
}

/// The state that its epoch was committed by names it as one to be published.
#[test]
fn a_commit_is_given_up_when_no_state_names_for_too_long_what_was_kept_aside() {
    const PATIENCE: Duration = Duration::from_secs(30);
    const MOMENT: Duration = Duration::from_millis(1);
    let mut world = World::new(staged());
    world.accept(0, "", true);
    let epoch = world.snapshot();
    world.perform();
    world.end_flush(true);
    world.perform();
    world.commit(epoch);
    world.perform();
    world.serve(0, false);
    world.perform();
    world.decide(0, Verdict::Fail);
    world.perform();
    assert!(world.machine.wants_checkpoint(), "to name it");
    assert_eq!(world.machine.poll_timeout(), Some(world.now + PATIENCE));
    world.pass(PATIENCE - MOMENT);
    world.perform();
    assert!(world.given_up.is_empty());
    world.pass(MOMENT);
    world.perform();
    let [CheckpointError::Retained { items, after, .. }] = &world.given_up[..] else {
        panic!("{:?}", world.given_up);
    };
    assert_eq!((*items, *after), (1, PATIENCE));
    assert!(world.committed.is_empty());
}
