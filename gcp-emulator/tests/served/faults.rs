//! Faults of answers, and the rules that bring them, as a client meets them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gcp_emulator::pubsub::proto::{SeekRequest, seek_request::Target};
use gcp_emulator::{Answer, Body, Code, Emulator, Fault, FaultPlan, Method, Rule};
use tokio::time::timeout;

use crate::client::{Client, SOON, SUB, TOPIC, started, texts};

pub(crate) fn with(rule: Rule) -> Emulator {
    started(Emulator::builder().faults(FaultPlan::new().rule(rule)))
}

pub(crate) fn published(emulator: &Emulator) -> u64 {
    emulator.observe().topic(TOPIC).published
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_served_late() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::Delay(Duration::from_secs(5))));
    let mut client = Client::of(&emulator);
    let before = emulator.now();
    client.publish(&["a"]).await.unwrap();
    assert_eq!(emulator.now().since(before), Duration::from_secs(5));
    assert_eq!(published(&emulator), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_served_though_its_client_gave_up() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::Delay(Duration::from_secs(5))));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(1), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert_eq!(published(&emulator), 0);
    assert!(
        emulator
            .wait_until(|seen| seen.topic(TOPIC).published == 1, SOON)
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_delayed_answer_comes_after_the_effect() {
    let late = Fault::Delay(Duration::from_secs(5)).after_effect();
    let emulator = with(Rule::on(Method::Publish).then(late));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(1), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert_eq!(published(&emulator), 1);
    assert_eq!(client.publish(&["b"]).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_has_no_effect_and_its_status_is_what_was_asked_for() {
    let answer = Answer::new(Code::PermissionDenied, "not you").details(&b"\x08\x07"[..]);
    let emulator = with(Rule::on(Method::Publish).then(Fault::Answer(answer)));
    let mut client = Client::of(&emulator);
    let status = client.publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::PermissionDenied);
    assert_eq!(status.message(), "not you");
    assert_eq!(status.details(), b"\x08\x07");
    assert_eq!(published(&emulator), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_made_from_the_call() {
    let rule = Rule::on(Method::Acknowledge)
        .once()
        .then(Fault::answer_with(|call| {
            let Body::Acknowledge(request) = &call.body else {
                panic!("{call:?}")
            };
            Answer::ack_ids([
                (
                    request.ack_ids[1].as_str(),
                    "PERMANENT_FAILURE_INVALID_ACK_ID",
                ),
                (request.ack_ids[2].as_str(), "TRANSIENT_FAILURE_OTHER"),
            ])
        }));
    let emulator = with(rule);
    let mut client = Client::of(&emulator);
    client.publish(&["a", "b", "c"]).await.unwrap();
    let got = client.pull(3).await.unwrap();
    let status = client.ack(&got).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    let details = String::from_utf8_lossy(status.details()).into_owned();
    assert!(details.contains(&got[1].ack_id) && details.contains(&got[2].ack_id));
    assert!(!details.contains(&got[0].ack_id));
    client.ack(&got).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_answered_has_no_effect() {
    let emulator = with(Rule::on(Method::Publish).once().then(Fault::Never));
    let mut client = Client::of(&emulator);
    assert!(
        timeout(Duration::from_secs(3600), client.publish(&["a"]))
            .await
            .is_err()
    );
    assert_eq!(published(&emulator), 0);
    client.publish(&["b"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_failure_is_stored_before_it_is_answered() {
    let lost = Fault::answer(Code::Unavailable, "try again").after_effect();
    let emulator = with(Rule::on(Method::Publish).once().then(lost));
    let mut client = Client::of(&emulator);
    let status = client.publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert_eq!(published(&emulator), 1);
    client.publish(&["a"]).await.unwrap();
    assert_eq!(published(&emulator), 2, "the retry is a second message");
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_answered_ok_may_have_had_no_effect() {
    let emulator = with(
        Rule::on(Method::Acknowledge)
            .once()
            .then(Fault::OkWithoutEffect),
    );
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let mut stream = client.open(|_| ());
    let got = stream.messages().await;
    client.ack(&got).await.unwrap();
    let again = stream.messages().await;
    assert_eq!(texts(&again), ["a"]);
    client.ack(&again).await.unwrap();
    assert_eq!(emulator.observe().subscription(SUB).acks, 1);
}

#[tokio::test(start_paused = true)]
async fn a_publish_can_be_answered_with_no_ids() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::OkWithoutEffect));
    assert!(
        Client::of(&emulator)
            .publish(&["a"])
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn rules_count_what_they_match() {
    let unavailable = || Fault::answer(Code::Unavailable, "");
    let emulator = started(Emulator::builder());
    let second_and_third = emulator.faults().add(
        Rule::on(Method::Publish)
            .when(
                |call| matches!(&call.body, Body::Publish(request) if request.messages.len() == 1),
            )
            .skip(1)
            .times(2)
            .then(unavailable()),
    );
    let mut client = Client::of(&emulator);
    let mut fates = Vec::new();
    for _ in 0..5 {
        client.publish(&["a", "pair"]).await.unwrap();
        fates.push(client.publish(&["a"]).await.is_ok());
    }
    assert_eq!(fates, [true, false, false, true, true]);
    assert_eq!(emulator.faults().fired(second_and_third), 2);

    let always = emulator.faults().add(Rule::on_any().then(unavailable()));
    client.publish(&["a"]).await.unwrap_err();
    assert!(emulator.faults().remove(always));
    assert!(!emulator.faults().remove(always));
    assert_eq!(emulator.faults().fired(always), 1, "counted beyond its end");
    client.publish(&["a"]).await.unwrap();
    emulator.faults().add(Rule::on_any().then(unavailable()));
    emulator.faults().clear();
    client.publish(&["a"]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_matches_decides() {
    let plan = FaultPlan::new()
        .rule(Rule::on(Method::Publish).once().then(Fault::Pass))
        .rule(Rule::on_any().then(Fault::answer(Code::Aborted, "")));
    let emulator = started(Emulator::builder().faults(plan));
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let status = client.publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_depend_on_what_a_test_knows() {
    let broken = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&broken);
    let rule = Rule::on(Method::Seek)
        .when(move |_| switch.load(Ordering::Relaxed))
        .then(Fault::answer(Code::Unauthenticated, "no permission"));
    let emulator = with(rule);
    let mut client = Client::of(&emulator);
    let target = Some(Target::Time(emulator.now().to_timestamp()));
    let request = SeekRequest {
        subscription: SUB.to_owned(),
        target,
    };
    client.subscriber.seek(request.clone()).await.unwrap();
    broken.store(true, Ordering::Relaxed);
    let status = client.subscriber.seek(request).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_makes_no_sense_for_a_call_says_so() {
    let emulator = with(Rule::on(Method::Publish).then(Fault::Redeliver(Duration::ZERO)));
    let status = Client::of(&emulator).publish(&["a"]).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Internal);
    assert!(
        status.message().contains("Redeliver"),
        "{}",
        status.message()
    );
}
