use std::time::SystemTime;

use gcp_emulator::pubsub::proto::PubsubMessage;
use gcp_emulator::{Emulator, Method};
use gcp_wire::{ConnectionOptions, Credentials, Endpoint};

use super::super::order::EnrichedOrder;
use super::super::resources::Resources;
use super::super::workload;
use super::*;

/// A server in this process, with everything a run creates on it.
async fn prepared() -> (Emulator, Resources) {
    let server = Emulator::builder().start();
    let connection = Connection::unary(
        Endpoint::in_memory(server.dialer()),
        Credentials::anonymous(),
        ConnectionOptions::default(),
    )
    .unwrap();
    let names = RunNames::fresh().unwrap();
    let resources = Resources {
        pubsub: connection.clone(),
        tasks: connection,
        names,
    };
    resources.create().await.unwrap();
    (server, resources)
}

/// Publishes `count` orders to the topics of their regions.
fn publish(server: &Emulator, names: &RunNames, count: usize) {
    for order in workload::orders(1, count, SystemTime::UNIX_EPOCH) {
        let topic = names.regions[&order.region].to_string();
        let data = serde_json::to_vec(&EnrichedOrder { order, route: None }).unwrap();
        let message = PubsubMessage {
            data: data.into(),
            ..PubsubMessage::default()
        };
        server.publish(&topic, vec![message]).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_drained_counter_has_seen_everything_published_before() {
    let (server, resources) = prepared().await;
    let mut counter = RegionCounter::start(&resources.pubsub, &resources.names);
    publish(&server, &resources.names, 500);
    counter.drain().await.unwrap();
    let expected = RegionTally {
        messages: 500,
        orders: 500,
        duplicates: 0,
        strays: 0,
    };
    assert_eq!(counter.tally(), expected);

    publish(&server, &resources.names, 500);
    counter.drain().await.unwrap();
    let expected = RegionTally {
        messages: 1000,
        orders: 500,
        duplicates: 500,
        strays: 0,
    };
    assert_eq!(counter.tally(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_counting_subscription_that_is_gone_ends_the_counting_by_its_name() {
    let (server, resources) = prepared().await;
    let mut counter = RegionCounter::start(&resources.pubsub, &resources.names);
    let gone = &resources.names.counting[&Region::Asia];
    server.delete_subscription(gone.as_str()).unwrap();
    let error = counter.drain().await.unwrap_err();
    assert!(matches!(&error, OrdersError::Count { subscription, .. } if subscription == gone));
}

#[tokio::test(start_paused = true)]
async fn what_a_run_created_is_deleted_at_its_end() {
    let (server, resources) = prepared().await;
    resources.delete().await;
    let seen = server.observe();
    for (created, deleted) in [
        (Method::CreateTopic, Method::DeleteTopic),
        (Method::CreateSubscription, Method::DeleteSubscription),
        (Method::CreateQueue, Method::DeleteQueue),
    ] {
        assert_eq!(seen.count(created), seen.count(deleted), "{created:?}");
    }
}
