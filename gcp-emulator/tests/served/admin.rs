//! Administration over gRPC, and what the front end checks.

use gcp_emulator::pubsub::proto::{
    CreateSnapshotRequest, DeleteSnapshotRequest, DeleteSubscriptionRequest, DeleteTopicRequest,
    DetachSubscriptionRequest, GetSnapshotRequest, GetSubscriptionRequest, GetTopicRequest,
    ListSnapshotsRequest, ListSubscriptionsRequest, ListTopicSnapshotsRequest,
    ListTopicSubscriptionsRequest, ListTopicsRequest, ModifyPushConfigRequest, PublishRequest,
    PubsubMessage, PushConfig, SeekRequest, Snapshot, Subscription, Topic, UpdateSnapshotRequest,
    UpdateSubscriptionRequest, UpdateTopicRequest, seek_request::Target,
};
use gcp_emulator::{Emulator, Method};
use http::uri::PathAndQuery;
use tonic::{Code, Request, Response};
use tonic_prost::ProstCodec;

use crate::client::{Client, SUB, TOPIC, started, texts};

fn mask(path: &str) -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask {
        paths: vec![path.to_owned()],
    })
}

#[tokio::test(start_paused = true)]
async fn topics_are_created_read_changed_listed_and_deleted() {
    let emulator = Emulator::builder().start();
    let mut publisher = Client::of(&emulator).publisher;
    let topic = Topic {
        name: TOPIC.to_owned(),
        ..Topic::default()
    };
    let created = publisher
        .create_topic(topic.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(created.name, TOPIC);
    let again = publisher.create_topic(topic.clone()).await.unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    assert_eq!(
        again.message(),
        "Resource already exists in the project (resource=orders)."
    );
    let labelled = Topic {
        labels: [("a".to_owned(), "b".to_owned())].into(),
        ..topic
    };
    let update = UpdateTopicRequest {
        topic: Some(labelled),
        update_mask: mask("labels"),
    };
    let changed = publisher.update_topic(update).await.unwrap().into_inner();
    let read = publisher
        .get_topic(GetTopicRequest {
            topic: TOPIC.to_owned(),
        })
        .await
        .unwrap();
    assert_eq!(read.into_inner(), changed);
    assert_eq!(changed.labels["a"], "b");
    let list = ListTopicsRequest {
        project: "projects/demo".to_owned(),
        ..Default::default()
    };
    assert_eq!(
        publisher
            .list_topics(list)
            .await
            .unwrap()
            .into_inner()
            .topics
            .len(),
        1
    );
    let delete = DeleteTopicRequest {
        topic: TOPIC.to_owned(),
    };
    publisher.delete_topic(delete.clone()).await.unwrap();
    assert_eq!(
        publisher.delete_topic(delete).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_created_read_changed_listed_detached_and_deleted() {
    let emulator = started(Emulator::builder());
    let client = Client::of(&emulator);
    let (mut publisher, mut subscriber) = (client.publisher, client.subscriber);
    let name = "projects/demo/subscriptions/second".to_owned();
    let wanted = Subscription {
        name: name.clone(),
        topic: TOPIC.to_owned(),
        ack_deadline_seconds: 20,
        ..Subscription::default()
    };
    subscriber
        .create_subscription(wanted.clone())
        .await
        .unwrap();
    let longer = Subscription {
        ack_deadline_seconds: 30,
        ..wanted
    };
    let update = UpdateSubscriptionRequest {
        subscription: Some(longer),
        update_mask: mask("ack_deadline_seconds"),
    };
    subscriber.update_subscription(update).await.unwrap();
    let get = GetSubscriptionRequest {
        subscription: name.clone(),
    };
    let read = subscriber
        .get_subscription(get.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(read.ack_deadline_seconds, 30);
    let list = ListSubscriptionsRequest {
        project: "projects/demo".to_owned(),
        page_size: 1,
        ..Default::default()
    };
    let page = subscriber
        .list_subscriptions(list.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page.subscriptions[0].name, SUB);
    let list = ListSubscriptionsRequest {
        page_token: page.next_page_token,
        ..list
    };
    let page = subscriber
        .list_subscriptions(list)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page.subscriptions[0].name, name);
    assert!(page.next_page_token.is_empty());
    let of_topic = ListTopicSubscriptionsRequest {
        topic: TOPIC.to_owned(),
        ..Default::default()
    };
    let of_topic = publisher
        .list_topic_subscriptions(of_topic)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(of_topic.subscriptions, [SUB.to_owned(), name.clone()]);
    let push = |endpoint: &str| ModifyPushConfigRequest {
        subscription: name.clone(),
        push_config: Some(PushConfig {
            push_endpoint: endpoint.to_owned(),
            ..PushConfig::default()
        }),
    };
    subscriber.modify_push_config(push("")).await.unwrap();
    let refused = subscriber
        .modify_push_config(push("https://example.com"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    let refused = subscriber
        .modify_push_config(push("example.com"))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("Invalid push endpoint given"));
    let detach = DetachSubscriptionRequest {
        subscription: name.clone(),
    };
    publisher.detach_subscription(detach).await.unwrap();
    assert!(
        subscriber
            .get_subscription(get)
            .await
            .unwrap()
            .into_inner()
            .detached
    );
    let delete = DeleteSubscriptionRequest {
        subscription: name.clone(),
    };
    subscriber
        .delete_subscription(delete.clone())
        .await
        .unwrap();
    let gone = subscriber.delete_subscription(delete).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_created_read_changed_listed_sought_and_deleted() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    client.publish(&["a"]).await.unwrap();
    let name = "projects/demo/snapshots/one".to_owned();
    let create = CreateSnapshotRequest {
        name: name.clone(),
        subscription: SUB.to_owned(),
        ..CreateSnapshotRequest::default()
    };
    client.subscriber.create_snapshot(create).await.unwrap();
    let labelled = Snapshot {
        name: name.clone(),
        labels: [("a".to_owned(), "b".to_owned())].into(),
        ..Snapshot::default()
    };
    let update = UpdateSnapshotRequest {
        snapshot: Some(labelled),
        update_mask: mask("labels"),
    };
    client.subscriber.update_snapshot(update).await.unwrap();
    let get = GetSnapshotRequest {
        snapshot: name.clone(),
    };
    let read = client
        .subscriber
        .get_snapshot(get)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (read.topic.as_str(), read.labels["a"].as_str()),
        (TOPIC, "b")
    );
    let list = ListSnapshotsRequest {
        project: "projects/demo".to_owned(),
        ..Default::default()
    };
    let listed = client
        .subscriber
        .list_snapshots(list)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.snapshots, [read]);
    let of_topic = ListTopicSnapshotsRequest {
        topic: TOPIC.to_owned(),
        ..Default::default()
    };
    let of_topic = client
        .publisher
        .list_topic_snapshots(of_topic)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(of_topic.snapshots.as_slice(), std::slice::from_ref(&name));
    let got = client.pull(1).await.unwrap();
    client.ack(&got).await.unwrap();
    let target = Some(Target::Snapshot(name.clone()));
    let seek = SeekRequest {
        subscription: SUB.to_owned(),
        target,
    };
    client.subscriber.seek(seek).await.unwrap();
    assert_eq!(texts(&client.pull(1).await.unwrap()), ["a"]);
    let nowhere = SeekRequest {
        subscription: SUB.to_owned(),
        target: None,
    };
    let refused = client.subscriber.seek(nowhere).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    client
        .subscriber
        .delete_snapshot(DeleteSnapshotRequest { snapshot: name })
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn methods_that_do_not_exist_are_unimplemented() {
    let emulator = started(Emulator::builder().cloud_tasks(false));
    let mut raw = Client::of(&emulator).tasks;
    for path in [
        "/google.pubsub.v1.SchemaService/GetSchema",
        "/google.pubsub.v1.Publisher/Nonsense",
        Method::CreateTask.path(),
        "/nonsense",
    ] {
        raw.ready().await.unwrap();
        let codec: ProstCodec<(), ()> = ProstCodec::default();
        let path = PathAndQuery::try_from(path).unwrap();
        let answer: Result<Response<()>, _> = raw.unary(Request::new(()), path, codec).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
    }
}

#[tokio::test(start_paused = true)]
async fn the_routing_header_can_be_required() {
    let emulator = started(Emulator::builder().require_routing_header(true));
    let mut client = Client::of(&emulator);
    let request = || {
        Request::new(PublishRequest {
            topic: TOPIC.to_owned(),
            messages: vec![PubsubMessage {
                data: "a".into(),
                ..PubsubMessage::default()
            }],
        })
    };
    let refused = client.publisher.publish(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("x-goog-request-params"));
    for (params, accepted) in [
        ("topic=projects%2Fdemo%2Ftopics%2Forders", true),
        ("topic=projects/demo/topics/orders", true),
        ("a=b&topic=projects%2Fdemo%2Ftopics%2Forders", true),
        ("subscription=projects%2Fdemo%2Ftopics%2Forders", false),
        ("topic=projects%2Fdemo%2Ftopics%2Fother", false),
    ] {
        let mut request = request();
        request
            .metadata_mut()
            .insert("x-goog-request-params", params.parse().unwrap());
        assert_eq!(
            client.publisher.publish(request).await.is_ok(),
            accepted,
            "{params}"
        );
    }
    let refused = client.open(|_| ()).end().await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn compressed_requests_are_read() {
    let emulator = started(Emulator::builder());
    let publisher = Client::of(&emulator).publisher;
    let mut publisher = publisher.send_compressed(tonic::codec::CompressionEncoding::Gzip);
    let data = vec![b'a'; 100_000];
    let request = PublishRequest {
        topic: TOPIC.to_owned(),
        messages: vec![PubsubMessage {
            data: data.into(),
            ..PubsubMessage::default()
        }],
    };
    publisher.publish(request).await.unwrap();
    assert_eq!(
        emulator.observe().topic(TOPIC).messages[0].data.len(),
        100_000
    );
}

#[tokio::test(start_paused = true)]
async fn the_largest_request_passes_and_a_byte_more_does_not() {
    let emulator = started(Emulator::builder());
    let mut client = Client::of(&emulator);
    let request = |size: usize| PublishRequest {
        topic: TOPIC.to_owned(),
        messages: vec![PubsubMessage {
            data: vec![b'a'; size].into(),
            ..PubsubMessage::default()
        }],
    };
    let overhead = prost::Message::encoded_len(&request(9_900_000)) - 9_900_000;
    client
        .publisher
        .publish(request(10_000_000 - overhead))
        .await
        .unwrap();
    let refused = client
        .publisher
        .publish(request(10_000_001 - overhead))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(
        refused.message(),
        "The value for request_size is too large. You passed 10000001 in the request, but the \
         maximum value is 10000000."
    );
}
