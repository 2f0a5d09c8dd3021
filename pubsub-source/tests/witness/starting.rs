//! A job that starts, on Google's server.

use std::time::SystemTime;

use gcp_wire::{
    method::{
        CREATE_SNAPSHOT, CREATE_TOPIC, DELETE_SUBSCRIPTION, DELETE_TOPIC, GET_SUBSCRIPTION, PUBLISH,
    },
    proto::{
        Duration as ProtoDuration,
        pubsub::{
            BigQueryConfig, CloudStorageConfig, CreateSnapshotRequest, DeleteSubscriptionRequest,
            DeleteTopicRequest, GetSubscriptionRequest, PublishRequest, PubsubMessage, PushConfig,
            Subscription, Topic,
        },
    },
};
use pubsub_source::{
    Expiration, Preparation, PrepareError, Prepared, SplitPlan, StartPosition, StartRecord,
    StartStore, SubscriptionCreation, SubscriptionName, TopicName, Unrecorded, prepare,
};

use crate::world::*;

#[expect(
    clippy::disallowed_methods,
    reason = "a real server's publish times are times of day"
)]
fn time_of_day() -> SystemTime {
    SystemTime::now()
}

/// Keeps the record as long as the test runs.
#[derive(Default)]
struct Kept(Option<StartRecord>);

impl StartStore for Kept {
    type Error = std::convert::Infallible;

    async fn load(&mut self) -> Result<Option<StartRecord>, Self::Error> {
        Ok(self.0.clone())
    }

    async fn save(&mut self, record: StartRecord) -> Result<(), Self::Error> {
        self.0 = Some(record);
        Ok(())
    }
}

impl World {
    fn job(&self, subscription: &SubscriptionName) -> Preparation {
        let plan = SplitPlan::new([subscription.clone()], 1).unwrap();
        prepare(&plan).endpoint(self.endpoint())
    }

    /// What a job reads that was prepared, until it has so many.
    async fn read_prepared(&self, prepared: &Prepared, count: usize) -> Vec<u64> {
        let reader = prepared.reader(0, 1).unwrap().unwrap();
        let mut source = reader.endpoint(self.endpoint()).build().unwrap();
        let got = read(&mut source, count).await;
        seal(&mut source, 1).await;
        commit(&mut source, 1).await;
        source.close().await.unwrap();
        got
    }

    /// One more topic, which keeps what is published for an hour.
    async fn retaining_topic(&self) -> TopicName {
        let name = format!("{}-retaining", self.topic());
        let topic = Topic {
            name: name.clone(),
            message_retention_duration: Some(ProtoDuration {
                seconds: 3600,
                nanos: 0,
            }),
            ..Topic::default()
        };
        self.call(&CREATE_TOPIC, topic).await;
        name.parse().unwrap()
    }

    async fn publish_numbers_to(&self, topic: &TopicName, numbers: std::ops::Range<u64>) {
        let messages = numbers.map(|number| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        });
        let request = PublishRequest {
            topic: topic.to_string(),
            messages: messages.collect(),
        };
        self.call(&PUBLISH, request).await;
    }

    fn creation(&self) -> SubscriptionCreation {
        let topic: TopicName = self.topic().parse().unwrap();
        SubscriptionCreation::builder(topic).build().unwrap()
    }

    /// Deletes a subscription beside the world's own.
    async fn delete_also(&self, subscription: &SubscriptionName) {
        let request = DeleteSubscriptionRequest {
            subscription: subscription.to_string(),
        };
        self.call(&DELETE_SUBSCRIPTION, request).await;
    }

    /// The name of a subscription that does not exist.
    fn fresh(&self) -> SubscriptionName {
        let id = format!("{}-new", self.subscription.id());
        SubscriptionName::new("demo", &id).unwrap()
    }
}

#[tokio::test]
async fn a_created_subscription_at_earliest_has_the_history_from_before_its_creation() {
    let world = World::new().await;
    let topic = world.retaining_topic().await;
    world.publish_numbers_to(&topic, 0..20).await;
    let new = world.fresh();
    let creation = SubscriptionCreation::builder(topic.clone())
        .build()
        .unwrap();
    let prepared = world
        .job(&new)
        .create(new.clone(), creation)
        .start(StartPosition::Earliest)
        .run(&mut Kept::default())
        .await
        .unwrap();
    world.publish_numbers_to(&topic, 20..25).await;
    let got = world.read_prepared(&prepared, 25).await;
    assert_eq!(got, (0..25).collect::<Vec<_>>());
    world.delete_also(&new).await;
    let topic = topic.to_string();
    world
        .call(&DELETE_TOPIC, DeleteTopicRequest { topic })
        .await;
    world.delete().await;
}

#[tokio::test]
async fn a_created_subscription_has_the_settings_it_was_created_with() {
    let world = World::new().await;
    let other = World::new().await;
    let new = world.fresh();
    let creation = SubscriptionCreation::builder(world.topic().parse().unwrap())
        .ack_deadline(SECOND * 30)
        .message_ordering(true)
        .message_retention(SECOND * 3600)
        .retain_acked_messages(true)
        .expiration(Expiration::After(SECOND * 86_400))
        .dead_letter_policy(other.topic().parse().unwrap(), 20)
        .filter("attributes:kind")
        .exactly_once(true)
        .build()
        .unwrap();
    world
        .job(&new)
        .create(new.clone(), creation)
        .run(&mut Unrecorded)
        .await
        .unwrap();
    let request = GetSubscriptionRequest {
        subscription: new.to_string(),
    };
    let found: Subscription = world.call(&GET_SUBSCRIPTION, request).await;
    assert_eq!(found.topic, world.topic());
    assert_eq!(found.ack_deadline_seconds, 30);
    assert!(found.enable_message_ordering && found.retain_acked_messages);
    assert_eq!(found.message_retention_duration.unwrap().seconds, 3600);
    let ttl = found.expiration_policy.unwrap().ttl.unwrap();
    assert_eq!(ttl.seconds, 86_400);
    let policy = found.dead_letter_policy.unwrap();
    assert_eq!(policy.dead_letter_topic, other.topic());
    assert_eq!(policy.max_delivery_attempts, 20);
    assert_eq!(found.filter, "attributes:kind");
    assert!(found.enable_exactly_once_delivery);
    world.delete_also(&new).await;
    other.delete().await;
    world.delete().await;
}

#[tokio::test]
async fn what_cannot_be_pulled_is_refused_by_name() {
    type Change = fn(&mut Subscription);
    let push: Change = |one| {
        one.push_config = Some(PushConfig {
            push_endpoint: "http://127.0.0.1:1/nowhere".to_owned(),
            ..PushConfig::default()
        });
    };
    let bigquery: Change = |one| {
        one.bigquery_config = Some(BigQueryConfig {
            table: "demo.orders.all".to_owned(),
            ..BigQueryConfig::default()
        });
    };
    let storage: Change = |one| {
        one.cloud_storage_config = Some(CloudStorageConfig {
            bucket: "orders".to_owned(),
            ..CloudStorageConfig::default()
        });
    };
    let detached: Change = |one| one.detached = true;
    for (change, what) in [
        (push, "pushes"),
        (bigquery, "exports its messages to BigQuery"),
        (storage, "exports its messages to Cloud Storage"),
        (detached, "detached"),
    ] {
        let world = World::with(change).await;
        let error = world
            .job(&world.subscription)
            .start(StartPosition::Latest)
            .run(&mut Unrecorded)
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains(what), "{text}");
        assert!(text.contains(world.subscription.as_str()), "{text}");
        world.delete().await;
    }
}

#[tokio::test]
async fn what_is_missing_is_told_by_name_and_nothing_is_created() {
    let world = World::new().await;
    let new = world.fresh();
    let error = world.job(&new).run(&mut Unrecorded).await.unwrap_err();
    assert!(matches!(error, PrepareError::Missing { .. }), "{error}");

    let topic: TopicName = format!("{}-none", world.topic()).parse().unwrap();
    let creation = SubscriptionCreation::builder(topic).build().unwrap();
    let error = world
        .job(&new)
        .create(new.clone(), creation)
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PrepareError::MissingTopic { .. }),
        "{error}"
    );

    let snapshot = "projects/demo/snapshots/there-is-none".parse().unwrap();
    let error = world
        .job(&world.subscription)
        .start(StartPosition::Snapshot(snapshot))
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(
        matches!(error, PrepareError::MissingSnapshot { .. }),
        "{error}"
    );
    let plan = SplitPlan::ordered([world.subscription.clone()], 1).unwrap();
    let error = prepare(&plan)
        .endpoint(world.endpoint())
        .run(&mut Unrecorded)
        .await
        .unwrap_err();
    assert!(matches!(error, PrepareError::Unordered { .. }), "{error}");
    world.delete().await;
}

#[tokio::test]
async fn two_that_create_the_same_subscription_both_succeed() {
    let world = World::new().await;
    let new = world.fresh();
    let one = || async {
        world
            .job(&new)
            .create(new.clone(), world.creation())
            .run(&mut Unrecorded)
            .await
            .unwrap()
    };
    let all = futures::future::join_all((0..8).map(|_| one())).await;
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    world.delete_also(&new).await;
    world.delete().await;
}

#[tokio::test]
async fn each_position_begins_where_it_says_and_once() {
    let world = World::with(|one| one.retain_acked_messages = true).await;
    world.publish_numbers(0..5).await;
    // What is published later has a later time, whatever the granularity.
    until("the clock moves", {
        let begun = now();
        move || begun.elapsed() >= SECOND / 5
    })
    .await;
    let between = time_of_day();
    until("the clock moves", {
        let begun = now();
        move || begun.elapsed() >= SECOND / 5
    })
    .await;
    let snapshot = format!("projects/demo/snapshots/{}-5", world.subscription.id());
    let request = CreateSnapshotRequest {
        name: snapshot.clone(),
        subscription: world.subscription.to_string(),
        ..CreateSnapshotRequest::default()
    };
    world.call(&CREATE_SNAPSHOT, request).await;
    world.publish_numbers(5..10).await;

    let all: Vec<u64> = (0..10).collect();
    for (position, expected) in [
        (StartPosition::Continue, &all[..]),
        (StartPosition::Earliest, &all[..]),
        (StartPosition::Timestamp(between), &all[5..]),
        (StartPosition::Snapshot(snapshot.parse().unwrap()), &all[..]),
        (StartPosition::Latest, &[]),
    ] {
        let mut kept = Kept::default();
        let job = || world.job(&world.subscription).start(position.clone());
        let prepared = job().run(&mut kept).await.unwrap();
        assert_eq!(
            world.read_prepared(&prepared, expected.len()).await,
            expected,
            "{position:?}"
        );
        // With its record, the next start leaves everything as it is.
        assert_eq!(job().run(&mut kept).await.unwrap(), prepared);
        assert_eq!(world.pull(SECOND).await, [], "{position:?}");
    }
    world.delete().await;
}
