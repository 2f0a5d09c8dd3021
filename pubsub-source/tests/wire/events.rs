//! What a log says, and how often.

use std::time::Duration;

use connector_core::{Budget, Limits};
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::{listening::listen, log::Loud, world::*};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn routine_closure_of_streams_is_not_worth_a_line() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::with(|server| server.response_messages(3), |_| {});
    world.emulator.faults().add(
        Rule::on(Method::StreamingPull)
            .times(50)
            .then(Fault::answer(Code::Unavailable, "closing").after_responses(1)),
    );
    world.publish(0..150);
    let mut source = world.source().build().unwrap();
    read(&mut source, 150).await;
    seal(&mut source, 1).await;
    commit(&mut source, 1).await;
    source.close().await.unwrap();
    assert_eq!(loud.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_and_does_not_flood_the_log() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.emulator.refuse_connections(true).await.unwrap();
    let mut source = world.source().streams(4).build().unwrap();
    nothing_for(&mut source, SECOND * 3).await;
    assert!(loud.count() < 20, "{} lines in 3 s", loud.count());
    nothing_for(&mut source, SECOND * 600).await;
    let lines = loud.count();
    assert!((4..=80).contains(&lines), "{lines} lines in 10 minutes");
    for line in loud.lines() {
        assert!(line.contains("endpoint=\"memory:\""), "{line}");
        assert!(line.contains("cannot be reached"), "{line}");
        assert!(line.contains("nothing is lost"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_a_host_never_read_is_in_the_log_when_it_drops_the_source() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    let unread = |loud: &Loud| loud.matching("before its host read the error");
    for read in [false, true] {
        let mut source = world.source().build().unwrap();
        nothing_for(&mut source, SECOND).await;
        let gone = Fault::answer(Code::PermissionDenied, "not any more");
        let rule = Rule::on(Method::StreamingPull).then(gone);
        let rule = world.emulator.faults().add(rule);
        world.emulator.drop_connections();
        tokio::time::sleep(SECOND * 60).await;
        if read {
            last_word(&mut source).await;
        }
        drop(source);
        assert_eq!(unread(&loud).len(), 1, "{:?}", loud.lines());
        assert!(world.emulator.faults().remove(rule));
    }
    assert!(unread(&loud)[0].contains("not allowed to read subscription"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_source_that_could_not_give_everything_back_says_so() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.publish(0..10);
    let mut source = world.source().build().unwrap();
    read(&mut source, 4).await;
    let deaf = Rule::on(Method::ModifyAckDeadline).then(Fault::Never);
    world.emulator.faults().add(deaf);
    drop(source);
    tokio::time::sleep(SECOND * 10).await;
    let line = loud.only("ended before the service confirmed everything");
    assert!(line.contains("releases=10"), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_seen_window_that_is_too_small_for_its_state_says_how_many_ids_it_lost() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new();
    world.publish(0..5);
    let mut source = world.source().build().unwrap();
    read(&mut source, 5).await;
    let state = seal(&mut source, 1).await;
    source.close().await.unwrap();
    let restored = restored(1, &state);
    let small = world.source().seen_limit(3).restore([restored]);
    let mut source = small.build().unwrap();
    // Those come again, and nothing is lost.
    assert_eq!(read(&mut source, 2).await.len(), 2);
    nothing_for(&mut source, SECOND * 60).await;
    let stats = source.stats();
    assert_eq!((stats.seen_overflowed, stats.recognised), (2, 3));
    let line = loud.only("The seen window is full");
    assert!(
        line.contains("ids=2") && line.contains("seen_limit=3"),
        "{line}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_source_that_finds_no_room_in_a_shared_budget_names_who_has_it() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::with(|server| server.response_messages(10), |_| {})
        .with_other(|_| {})
        .with_both_published(0..200, 1000..1200);
    let budget = Budget::new(Limits::items(100));
    let of = |subscription: &'static str, name: &'static str| {
        let source = world.source_of(&[subscription]).instance(name);
        source.budget(budget.clone()).build().unwrap()
    };
    let mut stuck = of(SUBSCRIPTION, "the stuck one");
    let mut other = of(OTHER, "the other");
    read(&mut stuck, 1).await;
    tokio::time::sleep(SECOND).await;
    read(&mut other, 1).await;
    tokio::time::sleep(SECOND * 9).await;
    let holder = "holder=\"the stuck one\"";
    assert!(loud.matching(holder).is_empty(), "{:?}", loud.lines());
    tokio::time::sleep(SECOND * 60).await;
    // Once per wait and source.
    let line = loud.only(holder);
    assert!(
        line.contains("s12") && line.contains("messages=80"),
        "{line}"
    );
}
