//! The check before a job starts, and what it creates.

use std::time::Duration;

use gcp_emulator::{Body, Code, Fault, Method, Rule, pubsub::proto::DeadLetterPolicy};
use pubsub_source::{
    DecodeFailure, Expiration, PrepareError, SplitPlan, StartPosition, SubscriptionCreation,
    Unrecorded,
};

use crate::{job::*, listening::listen, log::Loud, world::*};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_missing_subscription_is_created_with_its_own_settings_and_nothing_else() {
    let world = World::new();
    world.emulator.create_topic(OTHER_TOPIC).unwrap();
    let creation = SubscriptionCreation::builder(TOPIC.parse().unwrap())
        .ack_deadline(SECOND * 30)
        .message_ordering(true)
        .message_retention(SECOND * 3600)
        .retain_acked_messages(true)
        .expiration(Expiration::Never)
        .dead_letter_policy(OTHER_TOPIC.parse().unwrap(), 20)
        .filter("attributes:kind")
        .exactly_once(true)
        .build()
        .unwrap();
    let prepared = world
        .prepare(&[SUBSCRIPTION, NEW], 1)
        .create(name(NEW), creation)
        .run(&mut Unrecorded)
        .await;
    prepared.unwrap();
    let seen = world.emulator.observe();
    let sent: Vec<_> = seen.requests_of(Method::CreateSubscription).collect();
    let [call] = &sent[..] else {
        panic!("{sent:?}")
    };
    let Body::CreateSubscription(sent) = &call.body else {
        panic!("{call:?}")
    };
    assert_eq!((sent.name.as_str(), sent.topic.as_str()), (NEW, TOPIC));
    assert_eq!(sent.ack_deadline_seconds, 30);
    assert!(sent.enable_message_ordering && sent.retain_acked_messages);
    assert_eq!(sent.message_retention_duration.unwrap().seconds, 3600);
    assert_eq!(sent.expiration_policy.unwrap().ttl, None);
    let policy = sent.dead_letter_policy.as_ref().unwrap();
    assert_eq!(policy.dead_letter_topic, OTHER_TOPIC);
    assert_eq!(policy.max_delivery_attempts, 20);
    assert_eq!(sent.filter, "attributes:kind");
    assert!(sent.enable_exactly_once_delivery);
    assert_eq!(seen.count(Method::UpdateSubscription), 0);
    assert_eq!(seen.count(Method::CreateTopic), 0);
    assert_eq!(seen.count(Method::Seek), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_cannot_be_read_keeps_all_others_as_they_are() {
    let world = World::new().with_other(|subscription| subscription.detached = true);
    let error = world
        .prepare(&[SUBSCRIPTION, OTHER, NEW], 1)
        .create(name(NEW), creation())
        .start(StartPosition::Latest)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Detached { .. }), "{error}");
    assert!(error.to_string().contains(OTHER), "{error}");
    assert_eq!(world.count(Method::CreateSubscription), 0);
    assert_eq!(world.count(Method::Seek), 0);
}

#[tokio::test(start_paused = true)]
async fn ordering_is_asked_of_the_subscription_before_it_is_read() {
    let world = World::new();
    let plan = SplitPlan::ordered([name(SUBSCRIPTION)], 1).unwrap();
    let error = pubsub_source::prepare(&plan)
        .endpoint(world.endpoint())
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Unordered { .. }), "{error}");

    let world = World::with(|server| server, |one| one.enable_message_ordering = true);
    let prepared = pubsub_source::prepare(&plan)
        .endpoint(world.endpoint())
        .run(&mut Unrecorded)
        .await;
    assert!(prepared.unwrap().plan().is_ordered());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_allowed_is_told_with_the_permission_and_a_role() {
    let cases = [
        (
            Method::GetSubscription,
            Code::PermissionDenied,
            "pubsub.subscriptions.get",
            "roles/pubsub.viewer",
        ),
        (
            Method::CreateSubscription,
            Code::PermissionDenied,
            "pubsub.topics.attachSubscription",
            "roles/pubsub.editor",
        ),
        (
            Method::Seek,
            Code::PermissionDenied,
            "pubsub.subscriptions.consume",
            "roles/pubsub.subscriber",
        ),
        // What the service really says then.
        (
            Method::Seek,
            Code::Unauthenticated,
            "pubsub.subscriptions.consume",
            "roles/pubsub.subscriber",
        ),
    ];
    for (method, code, permission, role) in cases {
        let world = World::new();
        let refused = Rule::on(method).then(Fault::answer(code, "no, you may not"));
        world.emulator.faults().add(refused);
        let error = world
            .prepare(&[NEW], 1)
            .create(name(NEW), creation())
            .start(StartPosition::Earliest)
            .run(&mut Unrecorded)
            .await
            .unwrap_err();
        let text = chain(&error);
        assert!(matches!(error, PrepareError::Denied { .. }), "{text}");
        for part in [permission, role, NEW, "no, you may not"] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_vanishes_between_two_calls_is_not_called_missing() {
    let world = World::new();
    let exists = Fault::answer(Code::AlreadyExists, "Resource already exists");
    let rule = Rule::on(Method::CreateSubscription).then(exists);
    world.emulator.faults().add(rule);
    let error = world
        .prepare(&[NEW], 1)
        .create(name(NEW), creation())
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Vanished { .. }), "{error}");

    let world = World::new();
    let gone = Fault::answer(Code::NotFound, "Resource not found (resource=s11).");
    world
        .emulator
        .faults()
        .add(Rule::on(Method::Seek).then(gone));
    let error = world
        .prepare(&[SUBSCRIPTION], 1)
        .start(StartPosition::Earliest)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Vanished { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_only_the_creation_finds_missing_is_named_too() {
    let world = World::new();
    let faults = world.emulator.faults();
    let hidden = Fault::answer(Code::PermissionDenied, "no");
    faults.add(Rule::on(Method::GetTopic).then(hidden));
    let missing = SubscriptionCreation::builder(OTHER_TOPIC.parse().unwrap());
    let error = world
        .prepare(&[NEW], 1)
        .create(name(NEW), missing.build().unwrap())
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    let text = chain(&error);
    assert!(
        matches!(error, PrepareError::MissingSomeTopic { .. }),
        "{text}"
    );
    assert!(text.contains(OTHER_TOPIC) && text.contains(NEW), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_job_of_several_subscriptions_needs_a_name_and_a_timeout_needs_time() {
    let world = World::new().with_other(|_| {});
    let plan = SplitPlan::new([name(SUBSCRIPTION), name(OTHER)], 1).unwrap();
    let error = pubsub_source::prepare(&plan)
        .endpoint(world.endpoint())
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(chain(&error).contains("instance is not given"), "{error}");
    let error = world
        .prepare(&[SUBSCRIPTION], 1)
        .progress_timeout(Duration::ZERO)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(chain(&error).contains("progress_timeout is 0s"), "{error}");
    assert_eq!(world.count(Method::GetSubscription), 0);
}

#[tokio::test(start_paused = true)]
async fn the_convenience_for_one_reader_checks_and_seeks_and_is_refused_for_several() {
    let world = World::with(|server| server, |one| one.retain_acked_messages = true);
    world.publish(0..3);
    let mut kept = Kept::default();
    let error = world
        .prepare(&[SUBSCRIPTION], 2)
        .start(StartPosition::Earliest)
        .only_reader(&mut kept)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PrepareError::Shared { readers: 2 }),
        "{error}"
    );
    assert_eq!(world.count(Method::GetSubscription), 0);

    let reader = world
        .prepare(&[SUBSCRIPTION], 1)
        .start(StartPosition::Earliest)
        .only_reader(&mut kept)
        .await
        .unwrap();
    let mut source = reader.build().unwrap();
    assert_eq!(sorted(read(&mut source, 3).await), [0, 1, 2]);
    assert_eq!(world.count(Method::Seek), 1);
}

#[tokio::test(start_paused = true)]
async fn giving_back_what_cannot_be_decoded_needs_a_dead_letter_policy() {
    let world = World::new().with_other(|one| {
        one.dead_letter_policy = Some(DeadLetterPolicy {
            dead_letter_topic: TOPIC.to_owned(),
            max_delivery_attempts: 20,
        });
    });
    for policy in [DecodeFailure::Fail, DecodeFailure::Drop] {
        let job = world.prepare(&[SUBSCRIPTION], 1).decode_failure(policy);
        job.run(&mut Unrecorded).await.unwrap();
    }
    let nack = |subscription| {
        let job = world.prepare(&[subscription], 1);
        job.decode_failure(DecodeFailure::Nack)
    };
    let error = nack(SUBSCRIPTION).run(&mut Unrecorded).await.unwrap_err();
    assert!(
        matches!(error, PrepareError::NoDeadLetters { .. }),
        "{error}"
    );
    nack(OTHER).run(&mut Unrecorded).await.unwrap();
    let error = nack(NEW)
        .create(name(NEW), creation())
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PrepareError::CreationWithoutDeadLetters { .. }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_may_surprise_about_a_start_is_in_the_log() {
    let loud = Loud::default();
    let _listening = listen(loud.clone());
    let world = World::new().with_other(|one| {
        one.dead_letter_policy = Some(DeadLetterPolicy {
            dead_letter_topic: TOPIC.to_owned(),
            max_delivery_attempts: 5,
        });
    });
    world
        .prepare(&[SUBSCRIPTION, OTHER, NEW], 1)
        .create(name(NEW), creation())
        .start(StartPosition::Earliest)
        .run(&mut Kept::default())
        .await
        .unwrap();
    let lines = loud.lines();
    let about = |subscription: &str, what: &str| {
        let told = lines
            .iter()
            .any(|line| line.contains(subscription) && line.contains(what));
        assert!(told, "{subscription}: {what}: {lines:#?}");
    };
    about(SUBSCRIPTION, "only what was never acknowledged comes again");
    about(OTHER, "each release of a message counts");
    about(NEW, "A missing subscription was created.");
    about(NEW, "delivered once by each of them");
    about(NEW, "was sought, for all of its consumers");
    assert_eq!(lines.len(), 3 + 1 + 1 + 1 + 3, "{lines:#?}");
}
