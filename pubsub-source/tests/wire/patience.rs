//! How long a start waits, and for what.

use std::time::Duration;

use gcp_emulator::{Code, Fault, Method, Rule};
use pubsub_source::{PrepareError, StartPosition, Unrecorded};

use crate::{job::*, world::*};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_and_an_answer_that_was_lost_does_no_harm() {
    let methods = [
        Method::GetSubscription,
        Method::GetTopic,
        Method::CreateSubscription,
        Method::Seek,
    ];
    for code in [Code::Unavailable, Code::Internal, Code::ResourceExhausted] {
        let world = World::new();
        for method in methods {
            let faults = world.emulator.faults();
            // The first has no effect, the second has, and neither is answered well.
            faults.add(Rule::on(method).once().then(Fault::answer(code, "later")));
            let lost = Fault::answer(code, "lost").after_effect();
            faults.add(Rule::on(method).once().then(lost));
        }
        let mut kept = Kept::default();
        world
            .prepare(&[NEW], 1)
            .create(name(NEW), creation())
            .start(StartPosition::Earliest)
            .run(&mut kept)
            .await
            .unwrap();
        assert!(kept.record().unwrap().is_done());
        for method in methods {
            assert!(world.count(method) >= 3, "{method:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_away_is_given_up_after_the_progress_timeout_by_name() {
    for unreachable in [true, false] {
        let world = World::new();
        if unreachable {
            world.emulator.refuse_connections(true).await.unwrap();
        } else {
            let never = Rule::on(Method::GetSubscription).then(Fault::Never);
            world.emulator.faults().add(never);
        }
        let begun = tokio::time::Instant::now();
        let error = world
            .prepare(&[SUBSCRIPTION], 1)
            .progress_timeout(SECOND * 30)
            .run(&mut Unrecorded)
            .await
            .unwrap_err();
        let took = begun.elapsed();
        assert!(took <= SECOND * 51, "{took:?}");
        assert!(took >= SECOND * 20, "{took:?}");
        let text = chain(&error);
        assert!(matches!(error, PrepareError::Unanswered { .. }), "{text}");
        assert!(text.contains("look at subscription"), "{text}");
        assert!(text.contains(SUBSCRIPTION), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_list_of_subscriptions_may_take_longer_than_the_timeout_while_it_goes_on() {
    let world = World::new();
    let names: Vec<String> = (0..40)
        .map(|number| format!("projects/demo-project/subscriptions/many-{number}"))
        .collect();
    for subscription in &names {
        world
            .emulator
            .create_subscription(subscription, TOPIC, |_| {})
            .unwrap();
    }
    let slow = Rule::on(Method::GetSubscription).then(Fault::Delay(SECOND * 4));
    world.emulator.faults().add(slow);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let begun = tokio::time::Instant::now();
    let prepared = world
        .prepare(&names, 1)
        .progress_timeout(SECOND * 5)
        .run(&mut Unrecorded)
        .await;
    prepared.unwrap();
    assert!(begun.elapsed() >= SECOND * 20, "eight at a time");
}

#[tokio::test(start_paused = true)]
async fn a_new_subscription_that_is_not_known_everywhere_yet_is_waited_for() {
    let world = World::new();
    let unknown = Fault::answer(Code::NotFound, "Resource not found (resource=new).");
    let rule = Rule::on(Method::Seek).times(3).then(unknown);
    let rule = world.emulator.faults().add(rule);
    world
        .prepare(&[NEW], 1)
        .create(name(NEW), creation())
        .start(StartPosition::Earliest)
        .run(&mut Unrecorded)
        .await
        .unwrap();
    assert_eq!(world.emulator.faults().fired(rule), 3);
}

#[tokio::test(start_paused = true)]
async fn a_new_subscription_of_somebody_else_that_is_not_known_everywhere_yet_is_waited_for() {
    let world = World::new();
    let faults = world.emulator.faults();
    // It is there now, and the next attempt to create it finds that.
    let lost = Fault::answer(Code::Unavailable, "lost").after_effect();
    faults.add(Rule::on(Method::CreateSubscription).once().then(lost));
    let unknown = Fault::answer(Code::NotFound, "Resource not found (resource=new).");
    // The first of them is the look that finds it missing in any case.
    let rule = Rule::on(Method::GetSubscription).times(4).then(unknown);
    let rule = faults.add(rule);
    world
        .prepare(&[NEW], 1)
        .create(name(NEW), creation())
        .start(StartPosition::Earliest)
        .run(&mut Unrecorded)
        .await
        .unwrap();
    assert_eq!(faults.fired(rule), 4);
    assert_eq!(world.count(Method::CreateSubscription), 2);
    assert_eq!(world.count(Method::Seek), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_subscription_of_somebody_else_is_waited_for_until_the_patience_ends() {
    let world = World::new();
    let exists = Fault::answer(Code::AlreadyExists, "Resource already exists");
    let rule = Rule::on(Method::CreateSubscription).then(exists);
    world.emulator.faults().add(rule);
    let begun = tokio::time::Instant::now();
    let error = world
        .prepare(&[NEW], 1)
        .create(name(NEW), creation())
        .progress_timeout(SECOND * 3)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Vanished { .. }), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 3, "to its end, and no longer");
    // An old one that is missing is not waited for.
    assert!(world.count(Method::GetSubscription) >= 5);
    let begun = tokio::time::Instant::now();
    let error = world.prepare(&[NEW], 1).run(&mut Unrecorded).await;
    let error = error.unwrap_err();
    assert!(matches!(error, PrepareError::Missing { .. }), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_asks_for_a_longer_pause_than_the_start_has_gets_one_last_attempt() {
    let world = World::new();
    let exhausted = Fault::answer(Code::ResourceExhausted, "a quota is used up");
    let rule = Rule::on(Method::GetSubscription).then(exhausted);
    let rule = world.emulator.faults().add(rule);
    let begun = tokio::time::Instant::now();
    let error = world
        .prepare(&[SUBSCRIPTION], 1)
        .progress_timeout(SECOND * 3)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Unanswered { .. }), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 3, "to its end, and no longer");
    assert!(world.emulator.faults().fired(rule) >= 5);
}
