//! The source.

use std::{collections::BTreeSet, time::Duration};

use connector_core::{Checkpoint, CheckpointError, Committed, Epoch, Restored};
use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use gcp_emulator::{Emulator, Method, pubsub::proto::PubsubMessage};
use gcp_wire::{
    Connection, ConnectionOptions, Credentials,
    method::{CREATE_SNAPSHOT, CREATE_TOPIC},
    proto::{
        self,
        pubsub::{CreateSnapshotRequest, Topic},
    },
};
use pubsub_source::{
    Endpoint, PubsubSource, SourceBuilder, SourceError, SourceState, SplitPlan, StartPosition,
    StartRecord, StartStore, SubscriptionCreation, SubscriptionName, prepare,
};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    expected::outcome,
    trouble::{LONG, Seen, Spell, Trouble, variant},
};

column!(streaming_pull, super::reads);
column!(acknowledge, super::reads);
column!(modify_ack_deadline, super::reads);
column!(get_subscription, super::starts);
column!(get_topic, super::starts);
column!(create_subscription, super::starts);
column!(seek, super::starts);
column!(get_snapshot, super::starts);

const TOPIC: &str = "projects/demo/topics/orders";
const SUBSCRIPTION: &str = "projects/demo/subscriptions/orders";
const SNAPSHOT: &str = "projects/demo/snapshots/before";

/// Whose backlog the snapshot is of.
const OTHER: &str = "projects/demo/subscriptions/others";

/// Messages before the trouble, and as many in the middle of it.
const HALF: usize = 20;

fn method(column: &str) -> Method {
    match column {
        "streaming_pull" => Method::StreamingPull,
        "acknowledge" => Method::Acknowledge,
        "modify_ack_deadline" => Method::ModifyAckDeadline,
        "get_subscription" => Method::GetSubscription,
        "get_topic" => Method::GetTopic,
        "create_subscription" => Method::CreateSubscription,
        "seek" => Method::Seek,
        "get_snapshot" => Method::GetSnapshot,
        other => panic!("{other} is no column"),
    }
}

/// A job: what it has saved, and what it has done.
struct Job {
    emulator: Emulator,
    /// The time between checkpoints.
    period: Duration,
    epoch: Epoch,
    saved: Option<Restored<String>>,
    handed_out: BTreeSet<String>,
    /// Handed out before a commit that was asked for.
    covered: BTreeSet<String>,
}

impl Job {
    fn new() -> Self {
        Self {
            emulator: Emulator::builder().require_routing_header(true).start(),
            period: Duration::from_secs(2),
            epoch: Epoch::default(),
            saved: None,
            handed_out: BTreeSet::new(),
            covered: BTreeSet::new(),
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::in_memory(self.emulator.dialer())
    }

    fn connection(&self) -> Connection {
        let options = ConnectionOptions::default();
        Connection::unary(self.endpoint(), Credentials::anonymous(), options).unwrap()
    }

    /// A topic that gives its history to a subscription made now.
    async fn create_topic(&self) {
        let topic = Topic {
            name: TOPIC.to_owned(),
            message_retention_duration: Some(proto::Duration {
                seconds: 3600,
                nanos: 0,
            }),
            ..Topic::default()
        };
        let connection = self.connection();
        let created = connection.call(&CREATE_TOPIC, TOPIC, topic, LONG).await;
        created.unwrap();
    }

    /// A snapshot of nothing, so that what is published from now on is in it.
    async fn create_snapshot(&self) {
        self.emulator
            .create_subscription(OTHER, TOPIC, |_| {})
            .unwrap();
        let request = CreateSnapshotRequest {
            name: SNAPSHOT.to_owned(),
            subscription: OTHER.to_owned(),
            ..CreateSnapshotRequest::default()
        };
        let connection = self.connection();
        let created = connection.call(&CREATE_SNAPSHOT, SNAPSHOT, request, LONG);
        created.await.unwrap();
    }

    fn publish(&self) {
        let messages = (0..HALF).map(|number| PubsubMessage {
            data: number.to_string().into(),
            ..PubsubMessage::default()
        });
        self.emulator.publish(TOPIC, messages.collect()).unwrap();
    }

    fn source(&self) -> SourceBuilder {
        PubsubSource::builder(SUBSCRIPTION.parse().unwrap()).endpoint(self.endpoint())
    }

    /// The messages whose acknowledgement took effect.
    fn acked(&self) -> BTreeSet<String> {
        let record = self.emulator.observe().subscription(SUBSCRIPTION);
        record.acked_ids().into_iter().map(str::to_owned).collect()
    }

    fn check_nothing_is_early(&self) {
        let acked = self.acked();
        assert!(
            acked.is_subset(&self.covered),
            "acknowledged before a commit"
        );
    }

    /// A receipt that says that everything was confirmed comes after the acknowledgements took
    /// effect. What a source that ended does not settle is its successor's.
    fn check_is_true(
        &self,
        covered: &BTreeSet<String>,
        committed: Result<Committed, CheckpointError>,
    ) {
        if committed.is_ok_and(|committed| committed.settled == committed.total()) {
            assert!(
                covered.is_subset(&self.acked()),
                "confirmed before it is acknowledged"
            );
        }
    }

    /// The service has delivered what never came: a response is the answer of a stream.
    fn check_a_response_was_lost(&self) {
        let record = self.emulator.observe().subscription(SUBSCRIPTION);
        assert!(
            record.delivered > self.handed_out.len() as u64,
            "every response arrived"
        );
    }

    /// Reads with checkpoints, until so many messages are acknowledged and nothing is owed.
    async fn read(&mut self, builder: SourceBuilder, count: usize) -> Result<(), SourceError> {
        let restored = self
            .saved
            .clone()
            .map(|saved| saved.map(|text| serde_json::from_str::<SourceState>(&text).unwrap()));
        let builder = builder.max_extension(Duration::from_secs(10));
        let mut source = builder.restore(restored).build().unwrap();
        let mut commits = FuturesUnordered::new();
        // What was handed out since the last cut.
        let mut out = BTreeSet::new();
        let mut tick = interval(self.period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some((covered, committed)) = commits.next() => {
                    self.check_is_true(&covered, committed);
                    if commits.is_empty() && self.acked().len() == count {
                        source.close().await.ok();
                        return Ok(());
                    }
                }
                _ = tick.tick() => {
                    self.epoch = self.epoch.next();
                    if let Ok(state) = source.snapshot(self.epoch).await {
                        let text = serde_json::to_string(&state).unwrap();
                        self.saved = Some(Restored::new(self.epoch, text));
                        self.covered.clone_from(&self.handed_out);
                        let covered = std::mem::take(&mut out);
                        let receipt = source.commit(self.epoch);
                        commits.push(FutureExt::map(receipt, |committed| (covered, committed)));
                    }
                }
                message = source.next() => {
                    let message = message.expect("the stream goes on")?;
                    out.insert(message.id().to_owned());
                    self.handed_out.insert(message.id().to_owned());
                }
            }
            self.check_nothing_is_early();
        }
    }

    async fn read_in_time(
        &mut self,
        builder: SourceBuilder,
        count: usize,
    ) -> Result<(), SourceError> {
        let reading = self.read(builder, count);
        tokio::time::timeout(LONG, reading).await.expect("it moves")
    }
}

async fn reads(column: &str, trouble: Trouble) {
    let expected = outcome("source", column, trouble);
    let mut job = Job::new();
    job.create_topic().await;
    job.emulator
        .create_subscription(SUBSCRIPTION, TOPIC, |settings| {
            settings.ack_deadline_seconds = 10
        })
        .unwrap();
    job.publish();
    job.read_in_time(job.source(), HALF).await.unwrap();

    if column == "modify_ack_deadline" {
        // Longer than a lease: what is held has to be extended.
        job.period = Duration::from_secs(15);
    }
    job.publish();
    let spell = Spell::begin(&job.emulator, method(column), trouble);
    let seen = match job.read_in_time(job.source(), 2 * HALF).await {
        Ok(()) => Seen::Recovered(spell.elapsed()),
        Err(error) => {
            let seen = Seen::Ended(variant(&error), spell.struck());
            spell.repair();
            job.read_in_time(job.source(), 2 * HALF).await.unwrap();
            seen
        }
    };
    spell.struck();
    assert_eq!(job.handed_out.len(), 2 * HALF, "nothing is lost");
    if (column, trouble) == ("streaming_pull", Trouble::AnswerLost) {
        job.check_a_response_was_lost();
    }
    expected.check(&seen);
}

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

/// A job that creates its subscription and begins with the topic's history, or with a snapshot.
async fn starts(column: &str, trouble: Trouble) {
    let expected = outcome("source", column, trouble);
    let mut job = Job::new();
    job.create_topic().await;
    let position = if column == "get_snapshot" {
        job.create_snapshot().await;
        StartPosition::Snapshot(SNAPSHOT.parse().unwrap())
    } else {
        StartPosition::Earliest
    };
    job.publish();
    let spell = Spell::begin(&job.emulator, method(column), trouble);
    let name: SubscriptionName = SUBSCRIPTION.parse().unwrap();
    let plan = SplitPlan::new([name.clone()], 1).unwrap();
    let mut kept = Kept::default();
    let mut prepared = None;
    let mut ended = None;
    while prepared.is_none() {
        let creation = SubscriptionCreation::builder(TOPIC.parse().unwrap()).build();
        let preparation = prepare(&plan)
            .endpoint(job.endpoint())
            .instance("matrix")
            .create(name.clone(), creation.unwrap())
            .start(position.clone());
        match preparation.run(&mut kept).await {
            Ok(done) => prepared = Some(done),
            Err(error) => {
                assert!(ended.is_none(), "once more: {error:?}");
                ended = Some(Seen::Ended(variant(&error), spell.struck()));
                spell.repair();
            }
        }
    }
    let seen = ended.unwrap_or_else(|| Seen::Recovered(spell.elapsed()));
    spell.struck();
    let reader = prepared.unwrap().reader(0, 1).unwrap().unwrap();
    let endpoint = job.endpoint();
    job.read_in_time(reader.endpoint(endpoint), HALF)
        .await
        .unwrap();
    assert_eq!(job.handed_out.len(), HALF, "nothing is lost");
    expected.check(&seen);
}
