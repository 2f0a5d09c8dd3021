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

#[tokio::test(start_paused = true)]
async fn everything_that_was_refused_arrives_and_what_did_not_encode_is_left() {
    let options = Options::try_parse_from(["replay_dead_letters", "--idle", "3s"]).unwrap();
    let report = replay::run(&options).await.unwrap();
    assert_eq!(report.letters, 7, "{report:?}");
    assert_eq!((report.published, report.created), (4, 2), "{report:?}");
    assert_eq!(report.refused_again, 0);
    assert!(matches!(report.unusable[..], [Unusable::NoPayload]));
    assert!(report.to_string().contains("has no payload"));
}

/// A server with dead letters: for each connector, destination and payload.
fn with_letters(letters: &[(&str, &str, Vec<u8>)]) -> Emulator {
    let emulator = Emulator::builder().start();
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
    let letters = letters.iter().map(letter).collect();
    emulator.publish(REJECTED, letters).unwrap();
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

async fn replayed(emulator: &Emulator) -> Result<replay::Report, ReplayError> {
    let endpoint = || Endpoint::in_memory(emulator.dialer());
    let idle = Duration::from_secs(3);
    replay::replay(LETTERS.parse().unwrap(), endpoint(), endpoint(), idle).await
}

#[tokio::test(start_paused = true)]
async fn a_message_is_published_as_it_was_and_its_letter_is_gone() {
    let orders = "projects/shop/topics/orders";
    let emulator = with_letters(&[("pubsub-sink", orders, message("42", "customer"))]);
    emulator.create_topic(orders).unwrap();
    assert_eq!(replayed(&emulator).await.unwrap().published, 1);
    let seen = emulator.observe().topic(orders);
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
    let orders = "projects/shop/topics/orders";
    let emulator = with_letters(&[
        ("pubsub-sink", orders, message("still bad", "")),
        ("pubsub-sink", "unresolved", message("nowhere", "")),
        (
            "cloudtasks-sink",
            "projects/shop/locations/l/queues/q",
            vec![0xFF],
        ),
        ("somebody", orders, message("else", "")),
    ]);
    emulator.create_topic(orders).unwrap();
    emulator
        .faults()
        .add(Rule::on(Method::Publish).then(Fault::answer(Code::InvalidArgument, "still bad")));
    let report = replayed(&emulator).await.unwrap();
    assert_eq!((report.published, report.created), (0, 0));
    assert_eq!(report.refused_again, 1);
    let reasons: Vec<String> = report.unusable.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
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
