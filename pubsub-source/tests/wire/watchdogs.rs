//! What a source says about a host that takes no checkpoints, or takes them late.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch};
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_source::PubsubSource;

use crate::{listening::listen, log::Loud, world::*};

const SECOND: Duration = Duration::from_secs(1);

/// Takes a checkpoint after each interval, in seconds, and expects that so many lines say `what` by
/// then.
async fn seal_at<const N: usize>(
    source: &mut PubsubSource,
    intervals: [(u32, usize); N],
    loud: &Loud,
    what: &str,
) {
    for (epoch, (interval, lines)) in (1..).zip(intervals) {
        nothing_for(source, SECOND * interval).await;
        seal(source, epoch).await;
        nothing_for(source, SECOND / 10).await;
        assert_eq!(loud.matching(what).len(), lines, "after epoch {epoch}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_checkpoint_is_told_once_and_shows_as_the_age_of_what_is_held() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    commit(&mut source, 1).await;
    let late = |loud: &Loud| loud.matching("No checkpoint was taken for long").len();
    for (epoch, gaps) in [(2, 1), (3, 2)] {
        world.publish([epoch]);
        read(&mut source, 1).await;
        nothing_for(&mut source, SECOND * 1500).await;
        assert_eq!(late(&loud), gaps, "one line for each gap");
        let age = source.stats().oldest_held_seconds;
        assert!((1499.0..=1501.0).contains(&age), "{age}");
        seal(&mut source, epoch).await;
        commit(&mut source, epoch).await;
        assert!(source.stats().oldest_held_seconds < 1.0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_host_is_not_late() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND).await;
    seal(&mut source, 1).await;
    nothing_for(&mut source, SECOND * 3600).await;
    assert_eq!(loud.count(), 0, "{:?}", loud.lines());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_idle_is_late_once_something_waits_for_its_checkpoint() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    let mut source = world.source().build().unwrap();
    nothing_for(&mut source, SECOND).await;
    seal(&mut source, 1).await;
    nothing_for(&mut source, SECOND * 3600).await;
    world.publish([1]);
    read(&mut source, 1).await;
    nothing_for(&mut source, SECOND * 599).await;
    assert_eq!(loud.count(), 0, "{:?}", loud.lines());
    nothing_for(&mut source, SECOND * 1200).await;
    let late = loud.matching("No checkpoint was taken for long");
    assert_eq!(late.len(), 1, "{:?}", loud.lines());
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_zero_watches_nothing() {
    let world = World::new();
    world.publish([1]);
    let mut source = world.source().stall_after(Duration::ZERO).build().unwrap();
    read(&mut source, 1).await;
    nothing_for(&mut source, SECOND * 3000).await;
}

#[tokio::test(start_paused = true)]
async fn checkpoints_that_are_far_apart_for_max_hold_are_told_before_anything_is_given_back() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    let mut source = world.source().max_hold(SECOND * 120).build().unwrap();
    let far_apart = "Checkpoints are so far apart";
    nothing_for(&mut source, SECOND).await;
    let intervals = [(1, 0), (59, 0), (61, 1), (70, 1), (10, 1)];
    seal_at(&mut source, intervals, &loud, far_apart).await;
    let line = loud.only(far_apart);
    assert!(
        line.contains("interval=61") && line.contains("max_hold=120s"),
        "{line}"
    );
    assert_eq!(source.stats().held_too_long, 0);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_commits_is_told_before_anything_is_given_back() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.publish(0..5);
    let mut source = world.source().build().unwrap();
    read(&mut source, 5).await;
    let uncommitted = "none is committed";
    let intervals = [(1, 0), (31, 0), (31, 1), (31, 1)];
    seal_at(&mut source, intervals, &loud, uncommitted).await;
    let line = loud.only(uncommitted);
    assert!(
        line.contains("checkpoints=3") && line.contains("unacknowledged=5"),
        "{line}"
    );
    assert_eq!(source.stats().held_too_long, 0);
    assert_eq!(commit(&mut source, 4).await.settled, 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_for_being_held_too_long_is_told_in_one_line() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.publish(0..500);
    let mut source = world.source().max_hold(SECOND * 120).build().unwrap();
    // Some handed out, some buffered.
    read(&mut source, 300).await;
    seal(&mut source, 1).await;
    tokio::time::sleep(SECOND * 130).await;
    let lines = loud.matching("held for too long");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("deliveries=500"), "{lines:?}");
    assert_eq!(source.stats().held_too_long, 500);
    assert!(
        loud.matching("Leases ended").len() <= 1,
        "{:?}",
        loud.lines()
    );
    assert_eq!(
        read(&mut source, 500).await.len(),
        500,
        "their room is free again"
    );
}

/// What waits in a stream is leased to us and ages unseen.
#[tokio::test(start_paused = true)]
async fn streams_that_nobody_reads_for_a_quarter_of_a_lease_are_closed_until_there_is_room() {
    let world = World::with(|server| server.response_messages(10), |_| {});
    world.publish(0..200);
    let limits = connector_core::Limits::items(10);
    let mut source = world.source().buffer(limits).build().unwrap();
    read(&mut source, 1).await;
    assert_eq!(source.stats().open_streams, 1);
    tokio::time::sleep(SECOND * 14).await;
    assert_eq!(
        source.stats().open_streams,
        1,
        "a quarter of 60 s is not over"
    );
    tokio::time::sleep(SECOND * 2).await;
    assert_eq!(source.stats().open_streams, 0);
    let rest = read(&mut source, 199).await;
    assert_eq!(rest.len(), 199);
    assert_eq!(source.stats().open_streams, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lapsed_delivery_that_comes_back_to_us_is_settled_with_its_epoch() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 10,
    );
    world.publish([1]);
    let mut source = world.source().max_extension(SECOND * 10).build().unwrap();
    read(&mut source, 1).await;
    seal(&mut source, 1).await;
    let down = Fault::answer(Code::Unavailable, "");
    let deaf = Rule::on(Method::ModifyAckDeadline).then(down.clone());
    let deaf = world.emulator.faults().add(deaf);
    let pulls = Rule::on(Method::StreamingPull).then(down);
    let pulls = world.emulator.faults().add(pulls);
    world.emulator.drop_connections();
    nothing_for(&mut source, SECOND * 15).await;
    assert_eq!(source.stats().leased, 0, "its slot is free");
    assert!(world.emulator.faults().remove(deaf) && world.emulator.faults().remove(pulls));
    nothing_for(&mut source, SECOND * 15).await;
    assert_eq!(source.stats().redelivered, 1);
    assert_eq!(source.stats().leased, 1);
    let committed = source.commit(Epoch::new(1)).await.unwrap();
    assert_eq!((committed.settled, committed.lapsed), (1, 0));
    assert_eq!(world.acked(), 1);
}
