//! Dead letters, driven again offline.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use clap::Parser;
use examples::replay::{self, Options, ReplayError, Unusable};
use gcp_emulator::{Code, Emulator, Fault, Method, Rule, pubsub::proto::PubsubMessage};
use gcp_wire::Endpoint;
use prost::Message;

const REJECTED: &str = "projects/shop/topics/rejected";
const LETTERS: &str = "projects/shop/subscriptions/rejected";
const ORDERS: &str = "projects/shop/topics/orders";
const CALLS: &str = "projects/shop/locations/europe-west1/queues/calls";

#[tokio::test(start_paused = true)]
async fn everything_that_was_refused_arrives_and_what_did_not_encode_is_left() {
    let options = Options::try_parse_from(["replay_dead_letters", "--idle", "3s"]).unwrap();
    let report = replay::run(&options).await.unwrap();
    assert_eq!(report.letters, 7, "{report:?}");
    assert_eq!((report.published, report.created), (4, 2), "{report:?}");
    assert!(report.refused_again.is_empty());
    assert!(matches!(report.unusable[..], [Unusable::NoPayload]));
    assert!(report.to_string().contains("has no payload"));
}

/// A server with dead letters: for each connector, destination and payload.
fn with_letters(letters: &[(&str, &str, Vec<u8>)]) -> Emulator {
    let emulator = Emulator::builder().queue(CALLS).start();
    emulator.create_topic(REJECTED).unwrap();
    emulator
        .create_subscription(LETTERS, REJECTED, |_| {})
        .unwrap();
    let letter = |(connector, destination, payload): &(&str, &str, Vec<u8>)| PubsubMessage {
        data: payload.clone().into(),
        attributes: [
            ("dlq-connector", connector),
            ("dlq-destination", destination),
        ]
        .map(|(key, value)| (key.to_owned(), (*value).to_owned()))
        .into(),
        ..PubsubMessage::default()
    };
    // As many as one request may carry.
    for request in letters.chunks(1000) {
        let letters = request.iter().map(letter).collect();
        emulator.publish(REJECTED, letters).unwrap();
    }
    emulator
}

fn message(data: &str, key: &str) -> Vec<u8> {
    PubsubMessage {
        data: data.to_owned().into(),
        ordering_key: key.to_owned(),
        attributes: [("tenant".to_owned(), "acme".to_owned())].into(),
        ..PubsubMessage::default()
    }
    .encode_to_vec()
}

/// A task that calls `http://h/`.
fn call() -> Vec<u8> {
    b"\x1a\x0b\x0a\x09http://h/".to_vec()
}

async fn replayed(emulator: &Emulator) -> Result<replay::Report, ReplayError> {
    let endpoint = || Endpoint::in_memory(emulator.dialer());
    let idle = Duration::from_secs(3);
    replay::replay(LETTERS.parse().unwrap(), endpoint(), endpoint(), idle).await
}

#[tokio::test(start_paused = true)]
async fn a_message_is_published_as_it_was_and_its_letter_is_gone() {
    let emulator = with_letters(&[("pubsub-sink", ORDERS, message("42", "customer"))]);
    emulator.create_topic(ORDERS).unwrap();
    assert_eq!(replayed(&emulator).await.unwrap().published, 1);
    let seen = emulator.observe().topic(ORDERS);
    let [stored] = &seen.messages.iter().collect::<Vec<_>>()[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(stored.data.as_ref(), b"42");
    assert_eq!(stored.ordering_key, "customer");
    assert_eq!(stored.attributes["tenant"], "acme");
    assert_eq!(emulator.observe().subscription(LETTERS).backlog, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_once_more_or_says_too_little_stays_in_the_subscription() {
    let emulator = with_letters(&[
        ("pubsub-sink", ORDERS, message("still bad", "")),
        ("pubsub-sink", "unresolved", message("nowhere", "")),
        (
            "cloudtasks-sink",
            "projects/shop/locations/l/queues/q",
            vec![0xFF],
        ),
        ("somebody", ORDERS, message("else", "")),
    ]);
    emulator.create_topic(ORDERS).unwrap();
    emulator
        .faults()
        .add(Rule::on(Method::Publish).then(Fault::answer(Code::InvalidArgument, "still bad")));
    let report = replayed(&emulator).await.unwrap();
    assert_eq!((report.published, report.created), (0, 0));
    assert_eq!(report.refused_again.len(), 1);
    let reasons: Vec<String> = report.unusable.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    let summary = report.to_string();
    for reason in reasons.iter().map(String::as_str).chain(["still bad"]) {
        assert!(summary.contains(reason), "{summary}");
    }
    assert_eq!(emulator.observe().subscription(LETTERS).backlog, 4);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_is_gone_ends_the_replay_and_its_letter_stays() {
    let gone = "projects/shop/topics/gone";
    let emulator = with_letters(&[("pubsub-sink", gone, message("42", ""))]);
    let error = replayed(&emulator).await.unwrap_err();
    assert!(
        matches!(error, ReplayError::Step(_) | ReplayError::Outcome(_)),
        "{error}"
    );
    assert_eq!(emulator.observe().subscription(LETTERS).backlog, 1);
    let created = emulator.observe().count(Method::CreateTopic);
    assert_eq!(created, 0, "nobody asked for it");
}

#[tokio::test(start_paused = true)]
async fn letters_that_stay_do_not_keep_those_behind_them_from_being_read() {
    let mut letters = vec![("somebody", ORDERS, message("else", "")); 1_100];
    letters.push(("pubsub-sink", ORDERS, message("42", "")));
    let emulator = with_letters(&letters);
    emulator.create_topic(ORDERS).unwrap();
    let report = replayed(&emulator).await.unwrap();
    assert_eq!((report.letters, report.published), (1_101, 1));
    assert_eq!(report.unusable.len(), 1_100);
    assert_eq!(emulator.observe().subscription(LETTERS).backlog, 1_100);
}

#[tokio::test(start_paused = true)]
async fn however_many_are_refused_again_the_others_arrive() {
    let still_bad = "projects/shop/topics/still-bad";
    let mut letters = vec![("pubsub-sink", still_bad, message("bad", "")); 250];
    letters.extend(vec![("cloudtasks-sink", CALLS, call()); 250]);
    letters.push(("pubsub-sink", ORDERS, message("42", "")));
    let emulator = with_letters(&letters);
    emulator.create_topic(ORDERS).unwrap();
    emulator.create_topic(still_bad).unwrap();
    let refuse = || Fault::answer(Code::InvalidArgument, "still bad");
    let there = move |call: &gcp_emulator::Call| call.resource() == Some(still_bad);
    let faults = emulator.faults();
    faults.add(Rule::on(Method::Publish).when(there).then(refuse()));
    faults.add(Rule::on(Method::CreateTask).then(refuse()));
    let report = replayed(&emulator).await.unwrap();
    assert_eq!((report.published, report.created), (1, 0));
    assert_eq!(report.refused_again.len(), 500);
    assert_eq!(emulator.observe().subscription(LETTERS).backlog, 500);
}

#[tokio::test(start_paused = true)]
async fn an_end_by_one_element_waits_for_the_others_and_acknowledges_what_arrives() {
    let gone = "projects/shop/topics/gone";
    let emulator = with_letters(&[
        ("cloudtasks-sink", CALLS, call()),
        ("pubsub-sink", gone, message("42", "")),
    ]);
    let slow = Fault::Delay(Duration::from_secs(2));
    emulator
        .faults()
        .add(Rule::on(Method::CreateTask).then(slow));
    assert!(replayed(&emulator).await.is_err());
    assert_eq!(emulator.observe().queue(CALLS).tasks, 1);
    assert_eq!(
        emulator.observe().subscription(LETTERS).backlog,
        1,
        "the task is not created once more"
    );
}
