//! Cuts between and inside messages.

use std::time::Duration;

use connector_core::{Checkpoint, Epoch};
use futures::StreamExt;
use pubsub_source::{Disposition, SettleError};

use crate::{lines::*, world::*};

const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

#[tokio::test(start_paused = true)]
async fn a_cut_after_any_record_and_a_crash_leave_each_record_once() {
    for at in 0..=5 {
        for commit in [false, true] {
            let world = World::new();
            world.publish_lines(&FIVE);
            let mut host = Staging::start(world.source(), to_lines(), None);
            host.read(at).await;
            let saved = host.save(1).await;
            let inside = usize::from((1..5).contains(&at));
            assert_eq!(saved.restored.state.unfinished(), inside, "cut at {at}");
            assert_eq!(saved.restored.state.named(), usize::from(at == 5));
            if commit {
                let settled = committed(&mut host.source, 1).await.settled;
                assert_eq!(settled, usize::from(at == 5));
            }
            // What is read beyond the cut is gone with the crash.
            host.read((5 - at).min(2)).await;
            host.crash(&world).await;

            let mut host = Staging::start(world.source(), to_lines(), Some(saved));
            host.read_everything().await;
            assert_eq!(host.staged, FIVE, "cut at {at}");
            cut(&mut host.source, 2).await;
            committed(&mut host.source, 2).await;
            world.until_acked(1).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_every_record_leaves_each_record_once() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut saved = None;
    for epoch in 1..=5 {
        let mut host = Staging::start(world.source(), to_lines(), saved.take());
        host.read(1).await;
        saved = Some(host.save(epoch).await);
        host.crash(&world).await;
    }
    let mut host = Staging::start(world.source(), to_lines(), saved);
    host.read_everything().await;
    assert_eq!(host.staged, FIVE);
    assert_eq!(world.acked(), 1, "and the message is recognised");
}

#[tokio::test(start_paused = true)]
async fn many_messages_of_many_sizes_come_out_once_over_crashes() {
    let world = World::new();
    let mut expected = Vec::new();
    for message in 0..40 {
        let lines: Vec<String> = (0..message % 4)
            .map(|line| format!("{message}.{line}"))
            .collect();
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        // The service takes no message without data and attributes.
        let nothing: &[&str] = &["\n"];
        world.publish_lines(if texts.is_empty() { nothing } else { &texts });
        if texts.is_empty() {
            expected.push(String::new());
        }
        expected.extend(lines);
    }
    let mut saved = None;
    for epoch in 1..=12 {
        let mut host = Staging::start(world.source(), to_lines(), saved.take());
        host.read(5).await;
        saved = Some(host.save(epoch).await);
        // A host that never commits: what is restored commits by itself.
        host.crash(&world).await;
    }
    let mut host = Staging::start(world.source(), to_lines(), saved);
    host.read_everything().await;
    let mut staged = host.staged.clone();
    staged.sort();
    expected.sort();
    assert_eq!(staged, expected);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_handed_out_whole_is_leased_and_not_acknowledged() {
    let world = World::with(
        |server| server,
        |settings| settings.ack_deadline_seconds = 10,
    );
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source().max_extension(TEN), to_lines(), None);
    host.read(2).await;
    for epoch in 1..=30 {
        tokio::time::sleep(TEN).await;
        cut(&mut host.source, epoch).await;
        assert_eq!(committed(&mut host.source, epoch).await.settled, 0);
    }
    assert_eq!((world.acked(), world.record().lapses), (0, 0));
    let stats = host.source.stats();
    assert_eq!((stats.buffered, stats.leased, stats.unfinished), (1, 1, 1));
    assert_eq!((stats.records, stats.handed_out), (2, 0));

    host.read(3).await;
    cut(&mut host.source, 31).await;
    assert_eq!(committed(&mut host.source, 31).await.settled, 1);
    assert_eq!(host.staged, FIVE);
    assert_eq!(world.record().delivered, 1);
    let stats = host.source.stats();
    assert_eq!((stats.buffered, stats.leased, stats.unfinished), (0, 0, 0));
    assert_eq!((stats.records, stats.handed_out), (5, 1));
}

#[tokio::test(start_paused = true)]
async fn an_aborted_cut_inside_a_message_belongs_to_the_next() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    cut(&mut host.source, 1).await;
    host.read(1).await;
    host.source.abort(Epoch::new(1));
    let saved = host.save(2).await;
    host.crash(&world).await;
    let mut host = Staging::start(world.source(), to_lines(), Some(saved));
    host.read_everything().await;
    assert_eq!(host.staged, FIVE);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_records_is_settled_with_the_open_epoch() {
    let world = World::new();
    world.publish([1, 2, 3, 4]);
    // A filter is a decoder that makes no record of some messages.
    let odd = |message: pubsub_source::Message| {
        let number = number(&message);
        Ok((number % 2 == 1).then_some(number))
    };
    let mut source = world.source().build().unwrap().decode(odd);
    assert_eq!(everything(&mut source).await, [1, 3]);
    cut(&mut source, 1).await;
    assert_eq!(committed(&mut source, 1).await.settled, 4);
    let stats = source.stats();
    assert_eq!((stats.records, stats.without_records), (2, 2));
    assert_eq!(stats.handed_out, 4);
}

#[tokio::test(start_paused = true)]
async fn messages_without_records_let_the_driver_run() {
    let world = World::new();
    world.publish(0..3000);
    let builder = world.source().first_outstanding(10_000);
    let first_hundred = |message: pubsub_source::Message| {
        let number = number(&message);
        Ok((number < 100).then_some(number))
    };
    let mut source = builder.build().unwrap().decode(first_hundred);
    records(&mut source, 100).await;
    cut(&mut source, 1).await;
    let receipt = source.commit(Epoch::new(1));
    tokio::select! { biased;
        // Never ready, and would find 2,900 messages without once giving way.
        _ = record(&mut source) => panic!("no record is left"),
        committed = receipt => assert_eq!(committed.unwrap().settled, 100),
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_message_cannot_be_settled_and_a_finished_one_can() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let with_delivery = |message: pubsub_source::Message| {
        let delivery = message.delivery();
        Ok((0..5).map(move |_| delivery))
    };
    let mut source = world.source().build().unwrap().decode(with_delivery);
    let delivery = records(&mut source, 4).await[3];
    let settled = source.settle(delivery, Disposition::Ack);
    assert!(
        matches!(settled, Err(SettleError::Unfinished { .. })),
        "{settled:?}"
    );
    record(&mut source).await;
    let settled = source.settle(delivery, Disposition::Ack).unwrap();
    assert_eq!(settled.await.unwrap().settled, 1);
}

#[tokio::test(start_paused = true)]
async fn messages_of_several_subscriptions_are_unfinished_one_at_a_time() {
    let world = World::new().with_other(|_| {});
    world.publish_lines(&FIVE);
    world.publish_to(OTHER_TOPIC, 0..3);
    let builder = || world.source_of(&[SUBSCRIPTION, OTHER]);
    let expected = [&FIVE[..], &["0", "1", "2"]].concat();
    let mut saved = None;
    for epoch in 1..=8 {
        let mut host = Staging::start(builder(), to_lines(), saved.take());
        host.read(1).await;
        let now = host.save(epoch).await;
        assert!(now.restored.state.unfinished() <= 1);
        saved = Some(now);
        host.crash(&world).await;
    }
    let mut host = Staging::start(builder(), to_lines(), saved);
    host.read_everything().await;
    assert_each_once(&host.staged, &expected);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_paused_inside_a_message_goes_on_there() {
    let world = World::new().with_other(|_| {});
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source_of(&[SUBSCRIPTION, OTHER]), to_lines(), None);
    host.read(2).await;
    let paused = SUBSCRIPTION.parse().unwrap();
    assert!(host.source.get_mut().pause(&paused));
    world.publish_to(OTHER_TOPIC, 0..3);
    host.read(3).await;
    assert!(tokio::time::timeout(TEN, host.source.next()).await.is_err());
    assert_eq!(host.staged[2..], ["0", "1", "2"]);
    let saved = host.save(1).await;
    let state = &saved.restored.state;
    assert_eq!((state.named(), state.unfinished()), (3, 1));

    assert!(host.source.get_mut().resume(&paused));
    host.read(3).await;
    assert_eq!(host.staged[5..], FIVE[2..]);
    host.crash(&world).await;
    let builder = world.source_of(&[SUBSCRIPTION, OTHER]);
    let mut host = Staging::start(builder, to_lines(), Some(saved));
    host.read_everything().await;
    assert_each_once(&host.staged, &[&FIVE[..], &["0", "1", "2"]].concat());
}

const TEN: Duration = Duration::from_secs(10);
