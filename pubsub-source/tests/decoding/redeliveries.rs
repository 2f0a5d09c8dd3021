//! Messages that come again before they were handed out whole.

use std::time::Duration;

use connector_core::Limits;
use futures::StreamExt;
use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_source::{Message, SavedDeliveries, SourceError, decode::FewerRecords};

use crate::{lines::*, world::*};

const SECOND: Duration = Duration::from_secs(1);
const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_inside_a_message_repeats_no_record() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    // Nothing gets through until the lease is over.
    let down = || Fault::answer(Code::Unavailable, "");
    let methods = [Method::ModifyAckDeadline, Method::StreamingPull];
    let rules = methods.map(|method| world.emulator.faults().add(Rule::on(method).then(down())));
    world.emulator.drop_connections();
    tokio::time::sleep(SECOND * 65).await;
    for rule in rules {
        assert!(world.emulator.faults().remove(rule));
    }
    goes_on_with_the_third_record(&mut host).await;
    assert_eq!(host.source.stats().lapsed_in_buffer, 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_held_too_long_in_the_middle_repeats_no_record() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let builder = world.source().max_hold(SECOND * 60);
    let mut host = Staging::start(builder, to_lines(), None);
    host.read(2).await;
    // The source lets go of what is held for so long.
    tokio::time::sleep(SECOND * 61).await;
    goes_on_with_the_third_record(&mut host).await;
    let stats = host.source.stats();
    let lapsed = (stats.held_too_long, stats.lapsed_in_buffer);
    assert_eq!(lapsed, (1, 1), "{stats:?}");
}

async fn goes_on_with_the_third_record(host: &mut Staging<impl ToLines>) {
    host.read(3).await;
    assert_eq!(host.staged, FIVE);
    assert_eq!(host.source.stats().skipped_records, 2);
    cut(&mut host.source, 1).await;
    assert_eq!(committed(&mut host.source, 1).await.settled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_while_the_message_is_in_hand_takes_its_lease_over() {
    let world = World::new();
    let id = world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    assert!(world.emulator.redeliver_early(SUBSCRIPTION, &id));
    nothing_but_time(SECOND * 5).await;
    host.read(3).await;
    assert_eq!(host.staged, FIVE);
    let stats = host.source.stats();
    assert_eq!((stats.redelivered, stats.skipped_records), (1, 0));
    cut(&mut host.source, 1).await;
    assert_eq!(committed(&mut host.source, 1).await.settled, 1);
    assert_eq!(world.acked(), 1, "under the newest id");
}

/// What a paused subscription holds too much is given back, a message in the middle included.
#[tokio::test(start_paused = true)]
async fn a_message_that_is_parked_in_the_middle_goes_on_after_its_last_record() {
    let world = World::new().with_other(|_| {});
    world.publish_lines(&FIVE);
    world.publish_lines(&["x"]);
    world.publish_lines(&["y"]);
    let builder = world
        .source_of(&[SUBSCRIPTION, OTHER])
        .paused_limit(Limits::new(1, 1 << 20));
    let mut host = Staging::start(builder, to_lines(), None);
    host.read(2).await;
    let paused = SUBSCRIPTION.parse().unwrap();
    assert!(host.source.get_mut().pause(&paused));
    host.read_everything().await;
    assert_eq!(host.staged, ["a", "b"]);
    assert_eq!(host.source.stats().parked, 1);
    assert_eq!(world.record().outstanding, 0, "all of it is given back");
    cut(&mut host.source, 1).await;
    assert_eq!(committed(&mut host.source, 1).await.settled, 0);

    host.source.get_mut().resume(&paused);
    host.read_everything().await;
    assert_each_once(&host.staged, &["a", "b", "c", "d", "e", "x", "y"]);
    cut(&mut host.source, 2).await;
    assert_eq!(committed(&mut host.source, 2).await.settled, 3);
}

#[tokio::test(start_paused = true)]
async fn whichever_reader_gets_the_message_goes_on_where_the_state_says() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(3).await;
    let saved = host.save(1).await;
    host.crash(&world).await;

    let reader = || {
        let restored = saved.restored.clone();
        let source = world.source().restore([restored]).build().unwrap();
        source.decode(to_lines())
    };
    let (one, other) = (reader(), reader());
    let mut both = futures::stream::select(one, other);
    let mut rest = Vec::new();
    while let Ok(Some(line)) = tokio::time::timeout(SECOND * 200, both.next()).await {
        rest.push(line.unwrap());
    }
    assert_eq!(rest, ["d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_stays_unfinished_over_checkpoints_and_restores_until_it_comes_again() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    let mut saved = host.save(1).await;
    host.crash(&world).await;
    for epoch in 2..5 {
        // Too short for the lease of the crashed one to end.
        let mut host = Staging::start(world.source(), to_lines(), Some(saved));
        assert!(
            tokio::time::timeout(SECOND, host.source.next())
                .await
                .is_err()
        );
        saved = host.save(epoch).await;
        assert_eq!(saved.restored.state.unfinished(), 1);
        host.crash(&world).await;
    }
    let mut host = Staging::start(world.source(), to_lines(), Some(saved));
    host.read_everything().await;
    assert_eq!(host.staged, FIVE);
}

#[tokio::test(start_paused = true)]
async fn forgetting_what_was_seen_forgets_what_was_begun() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    let saved = host.save(1).await;
    host.crash(&world).await;
    let mut host = Staging::start(world.source(), to_lines(), Some(saved));
    host.source.forget_seen();
    host.read_everything().await;
    assert_eq!(host.staged, [&FIVE[..2], &FIVE].concat());
}

/// As before an operator's replay: what an older state names is to come out whole.
#[tokio::test(start_paused = true)]
async fn a_restart_that_saves_nothing_begins_an_unfinished_message_again_with_its_first_record() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    let saved = host.save(1).await;
    assert_eq!(saved.restored.state.unfinished(), 1);
    host.crash(&world).await;

    let builder = world.source().saved_deliveries(SavedDeliveries::Nothing);
    let mut host = Staging::start(builder, to_lines(), Some(saved));
    host.read(3).await;
    assert_eq!(host.staged, ["a", "b", "a", "b", "c"]);
    let saved = host.save(2).await;
    assert_eq!(saved.restored.state.unfinished(), 0, "nor does it name one");
    host.read_everything().await;
    assert_eq!(host.staged, [&FIVE[..2], &FIVE].concat());
    assert_eq!(host.source.stats().skipped_records, 0);
}

/// Such as a decoder that another version of the host brings along.
#[tokio::test(start_paused = true)]
async fn a_message_that_has_become_shorter_than_what_was_handed_out_is_told() {
    let world = World::new();
    let id = world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(3).await;
    let saved = host.save(1).await;
    host.crash(&world).await;

    let two_lines = |message: Message| {
        let text = String::from_utf8(message.data().to_vec())?;
        let lines: Vec<String> = text.lines().take(2).map(str::to_owned).collect();
        Ok(lines)
    };
    let mut host = Staging::start(world.source(), two_lines, Some(saved));
    let failed = error(&mut host.source).await;
    let SourceError::Decode {
        message,
        records,
        cause,
        ..
    } = failed
    else {
        panic!("{failed:?}")
    };
    assert_eq!((message, records), (id, 3));
    let fewer = cause.get().downcast_ref::<FewerRecords>().unwrap();
    assert_eq!((fewer.handed_out, fewer.yielded), (3, 2));
    assert_eq!(world.acked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_has_become_as_short_as_what_was_handed_out_is_done() {
    let world = World::new();
    world.publish_lines(&["a", "b", "!"]);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(1).await;
    let saved = host.save(1).await;
    host.crash(&world).await;

    let first = |message: Message| {
        let text = String::from_utf8(message.data().to_vec())?;
        Ok(text.lines().next().map(str::to_owned))
    };
    let mut host = Staging::start(world.source(), first, Some(saved));
    host.read_everything().await;
    assert_eq!(host.staged, ["a"]);
    let saved = host.save(2).await;
    assert_eq!(saved.restored.state.unfinished(), 0);
    assert_eq!(committed(&mut host.source, 2).await.settled, 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_of_whole_messages_hands_an_unfinished_one_out_whole() {
    let world = World::new();
    world.publish_lines(&FIVE);
    let mut host = Staging::start(world.source(), to_lines(), None);
    host.read(2).await;
    let saved = host.save(1).await;
    host.crash(&world).await;
    let mut source = world.source().restore([saved.restored]).build().unwrap();
    assert_eq!(next(&mut source).await.data(), &FIVE.join("\n"));
    let state = seal(&mut source, 2).await;
    assert_eq!((state.named(), state.unfinished()), (1, 0));
}

async fn nothing_but_time(span: Duration) {
    tokio::time::sleep(span).await;
}
