//! What a state saves of the deliveries it covers, and what a crash costs then.

use std::{collections::BTreeSet, time::Duration};

use connector_core::{Checkpoint, Epoch, Restored};
use gcp_emulator::{Body, Code, Fault, Method, Rule, pubsub::state::LateAcks};
use pubsub_source::{PubsubSource, SavedDeliveries, SourceBuilder, SourceState};
use tokio::task::JoinHandle;

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

fn build(builder: SourceBuilder) -> (PubsubSource, JoinHandle<()>) {
    let (source, driver) = builder.build_with_driver().unwrap();
    (source, tokio::spawn(driver))
}

/// The process is gone; the service notices that its connections are.
async fn crash(world: &World, source: PubsubSource, driver: JoinHandle<()>) {
    driver.abort();
    drop(driver.await);
    drop(source);
    world.emulator.drop_connections();
}

/// Ten messages, of which five are in a sealed epoch whose commit the service never hears of.
async fn crashed_in_the_middle_of_a_commit(world: &World, saved: SavedDeliveries) -> SourceState {
    world.publish(0..10);
    let (mut source, driver) = build(world.source().saved_deliveries(saved));
    read(&mut source, 5).await;
    let state = seal(&mut source, 1).await;
    let deaf = Rule::on(Method::Acknowledge).then(Fault::answer(Code::Unavailable, ""));
    let deaf = world.emulator.faults().add(deaf);
    drop(source.commit(Epoch::new(1)));
    read(&mut source, 2).await;
    crash(world, source, driver).await;
    assert!(world.emulator.faults().remove(deaf));
    state
}

#[tokio::test(start_paused = true)]
async fn saved_ack_ids_are_acknowledged_at_once_and_nothing_of_them_comes_again() {
    let world = World::new();
    let state = crashed_in_the_middle_of_a_commit(&world, SavedDeliveries::AckIds).await;
    let before = world.record().delivered;
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    // The leases of what was not durable end meanwhile.
    let rest = read(&mut source, 5).await;
    assert_eq!(sorted(rest), [5, 6, 7, 8, 9]);
    let committed = receipt.await.unwrap();
    assert_eq!((committed.settled, committed.lapsed), (5, 0));
    assert_eq!(world.acked(), 5);
    assert_eq!(
        world.record().delivered,
        before + 5,
        "what was acknowledged is not delivered"
    );
    assert_eq!(source.restored().await.unwrap(), committed);
    assert_eq!(source.stats().recognised, 0);
}

#[tokio::test(start_paused = true)]
async fn a_restored_acknowledgement_that_fails_is_sent_again_while_its_lease_lasts() {
    let world = World::new();
    let state = crashed_in_the_middle_of_a_commit(&world, SavedDeliveries::AckIds).await;
    world.emulator.faults().add(
        Rule::on(Method::Acknowledge)
            .times(4)
            .then(Fault::answer(Code::Unavailable, "")),
    );
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    nothing_for(&mut source, SECOND * 5).await;
    assert_eq!(receipt.await.unwrap().settled, 5);
    assert_eq!(world.acked(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_restored_ack_id_that_is_worth_nothing_is_told_and_its_message_recognised() {
    let world = World::with(
        |server| server,
        |settings| settings.enable_exactly_once_delivery = true,
    );
    let state = crashed_in_the_middle_of_a_commit(&world, SavedDeliveries::AckIds).await;
    for id in world.emulator.observe().topic(TOPIC).messages.iter() {
        world.emulator.redeliver_early(SUBSCRIPTION, &id.message_id);
    }
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    assert_eq!(sorted(read(&mut source, 5).await), [5, 6, 7, 8, 9]);
    let committed = receipt.await.unwrap();
    assert_eq!(committed.total(), 5);
    let recognised = usize::try_from(source.stats().recognised).unwrap();
    assert_eq!(recognised + committed.settled, 5);
    world.until_acked(5).await;
    nothing_for(&mut source, SECOND * 300).await;
}

/// A source that is closed gives back what its durable state names. To acknowledge what was given
/// back is answered OK, and does nothing.
#[tokio::test(start_paused = true)]
async fn what_was_given_back_after_the_cut_is_recognised_however_its_ack_id_was_answered() {
    let world = World::with(|server| server.late_acks(LateAcks::Never), |_| {});
    world.publish(0..5);
    let builder = world.source().saved_deliveries(SavedDeliveries::AckIds);
    let mut source = builder.build().unwrap();
    read(&mut source, 5).await;
    let state = seal(&mut source, 1).await;
    source.close().await.unwrap();
    // Somebody else has them meanwhile, for longer than any lease of the first source.
    let builder = world.source().stall_after(Duration::ZERO);
    let mut other = builder.build().unwrap();
    read(&mut other, 5).await;
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    nothing_for(&mut source, SECOND * 120).await;
    assert_eq!(receipt.await.unwrap().settled, 5, "as the service says");
    assert_eq!((world.acked(), source.stats().recognised), (0, 0));
    other.close().await.unwrap();
    nothing_for(&mut source, SECOND * 120).await;
    world.until_acked(5).await;
    assert_eq!(source.stats().recognised, 5);
    assert_eq!(source.stats().seen, 0, "an entry is used up");
}

#[tokio::test(start_paused = true)]
async fn without_ack_ids_a_restore_waits_for_the_messages_to_come_again() {
    let world = World::new();
    let state = crashed_in_the_middle_of_a_commit(&world, SavedDeliveries::MessageIds).await;
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    assert_eq!(sorted(read(&mut source, 5).await), [5, 6, 7, 8, 9]);
    let committed = receipt.await.unwrap();
    assert_eq!((committed.settled, committed.lapsed), (0, 5));
    world.until_acked(5).await;
    assert_eq!(source.stats().recognised, 5);
}

#[tokio::test(start_paused = true)]
async fn saved_ack_ids_are_sent_in_requests_that_the_service_takes() {
    let world = World::with(|server| server.ack_id_length(500), |_| {});
    world.publish(0..3000);
    let builder = world.source().first_outstanding(5000);
    let (mut source, driver) = build(builder.saved_deliveries(SavedDeliveries::AckIds));
    read(&mut source, 3000).await;
    let state = seal(&mut source, 1).await;
    crash(&world, source, driver).await;
    let restored_state = restored(1, &state);
    assert_eq!(restored_state.state.named(), 3000);
    let mut source = world.source().restore([restored_state]).build().unwrap();
    let receipt = source.restored();
    nothing_for(&mut source, SECOND).await;
    assert_eq!(receipt.await.unwrap().settled, 3000);
    let seen = world.emulator.observe();
    for call in seen.requests_of(Method::Acknowledge) {
        assert!(call.encoded_len <= 512_000, "{} bytes", call.encoded_len);
        let Body::Acknowledge(request) = &call.body else {
            panic!("an Acknowledge has its body")
        };
        assert!(request.ack_ids.len() <= 1000);
    }
}

/// A redelivery before the cut is what the state has to name.
#[tokio::test(start_paused = true)]
async fn the_newest_ack_id_of_a_message_is_saved() {
    let world = World::with(
        |server| server,
        |settings| settings.enable_exactly_once_delivery = true,
    );
    world.publish(0..3);
    let (mut source, driver) = build(world.source().saved_deliveries(SavedDeliveries::AckIds));
    read(&mut source, 3).await;
    for message in &world.emulator.observe().topic(TOPIC).messages {
        world
            .emulator
            .redeliver_early(SUBSCRIPTION, &message.message_id);
    }
    nothing_for(&mut source, SECOND).await;
    assert_eq!(source.stats().redelivered, 3);
    let state = seal(&mut source, 1).await;
    crash(&world, source, driver).await;
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    let receipt = source.restored();
    nothing_for(&mut source, SECOND).await;
    assert_eq!(receipt.await.unwrap().settled, 3);
    assert_eq!(world.acked(), 3);
}

#[tokio::test(start_paused = true)]
async fn forgetting_before_the_first_poll_acknowledges_nothing_either() {
    let world = World::new();
    let state = crashed_in_the_middle_of_a_commit(&world, SavedDeliveries::AckIds).await;
    let mut source = world
        .source()
        .restore([restored(1, &state)])
        .build()
        .unwrap();
    source.forget_seen();
    assert_eq!(
        sorted(read(&mut source, 10).await),
        (0..10).collect::<Vec<_>>()
    );
    assert_eq!(world.acked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_saves_nothing_recognises_nothing_of_an_older_state() {
    let world = World::new();
    let state = crashed_in_the_middle_of_a_commit(&world, SavedDeliveries::AckIds).await;
    let builder = world.source().saved_deliveries(SavedDeliveries::Nothing);
    let mut source = builder.restore([restored(1, &state)]).build().unwrap();
    assert_eq!(
        sorted(read(&mut source, 10).await),
        (0..10).collect::<Vec<_>>()
    );
    assert_eq!(source.restored().await.unwrap().total(), 0);
    assert_eq!(seal(&mut source, 2).await.named(), 0);
    assert_eq!(commit(&mut source, 2).await.settled, 10);
}

/// Where a process dies.
#[derive(Debug, Clone, Copy)]
enum Death {
    BeforeTheCut,
    BeforeTheStateIsDurable,
    BeforeTheCommit,
    BeforeTheFirstAnswer,
    AfterTheCommit,
}

/// Reads and commits, dies once, goes on from what was durable, and answers what was handed out
/// before the death, what was durable then, and what was handed out after.
async fn one_death(saved: Option<SavedDeliveries>, death: Death) -> (World, [Vec<u64>; 3]) {
    let world = World::new();
    world.publish(0..20);
    let builder = |world: &World| match saved {
        Some(saved) => world.source().saved_deliveries(saved),
        None => world.source(),
    };
    let mut durable = None;
    let mut covered = Vec::new();
    let (mut source, driver) = build(builder(&world));
    let mut before = read(&mut source, 5).await;
    let first = seal(&mut source, 1).await;
    durable.replace(restored(1, &first));
    covered.extend(before.iter().copied());
    commit(&mut source, 1).await;
    before.extend(read(&mut source, 5).await);
    if !matches!(death, Death::BeforeTheCut) {
        let second = seal(&mut source, 2).await;
        if !matches!(death, Death::BeforeTheStateIsDurable) {
            durable.replace(restored(2, &second));
            covered.clone_from(&before);
            match death {
                Death::BeforeTheCut | Death::BeforeTheStateIsDurable | Death::BeforeTheCommit => {}
                Death::BeforeTheFirstAnswer => {
                    let silence = Rule::on(Method::Acknowledge).times(1).then(Fault::Never);
                    world.emulator.faults().add(silence);
                    drop(source.commit(Epoch::new(2)));
                    world.until_called(Method::Acknowledge, 2).await;
                }
                Death::AfterTheCommit => {
                    commit(&mut source, 2).await;
                }
            }
        }
    }
    crash(&world, source, driver).await;
    let durable: Option<Restored<SourceState>> = durable.filter(|_| saved.is_some());
    let epoch = durable.as_ref().map_or(0, |state| state.epoch.get());
    let mut source = builder(&world).restore(durable).build().unwrap();
    let mut after = Vec::new();
    let mut number = epoch;
    while world.acked() < 20 {
        number += 1;
        let wait = SECOND * 100;
        while let Ok(message) = tokio::time::timeout(wait, next(&mut source)).await {
            after.push(crate::world::number(&message));
        }
        seal(&mut source, number).await;
        commit(&mut source, number).await;
        assert!(number < 20, "everything is acknowledged in the end");
    }
    (world, [before, covered, after])
}

const DEATHS: [Death; 5] = [
    Death::BeforeTheCut,
    Death::BeforeTheStateIsDurable,
    Death::BeforeTheCommit,
    Death::BeforeTheFirstAnswer,
    Death::AfterTheCommit,
];

#[tokio::test(start_paused = true)]
async fn with_saved_ids_nothing_is_lost_and_nothing_durable_is_repeated_wherever_a_process_dies() {
    for saved in [SavedDeliveries::MessageIds, SavedDeliveries::AckIds] {
        for death in DEATHS {
            let (_, [_, covered, after]) = one_death(Some(saved), death).await;
            let mut all: Vec<u64> = covered.iter().chain(&after).copied().collect();
            all.sort_unstable();
            let expected: Vec<u64> = (0..20).collect();
            assert_eq!(all, expected, "{saved:?}, {death:?}: each once in its line");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_saved_ids_nothing_is_lost_wherever_a_process_dies() {
    // With an empty state, and with none at all.
    for saved in [Some(SavedDeliveries::Nothing), None] {
        for death in DEATHS {
            let (world, [before, covered, after]) = one_death(saved, death).await;
            let all: BTreeSet<u64> = before.iter().chain(&after).copied().collect();
            assert_eq!(all, (0..20).collect(), "{saved:?}, {death:?}");
            // What is acknowledged was handed out in a line whose state was durable.
            let line: BTreeSet<u64> = covered.iter().chain(&after).copied().collect();
            assert_eq!(line, (0..20).collect(), "{saved:?}, {death:?}");
            assert_eq!(world.acked(), 20);
        }
    }
}
