//! A job that comes back with more or fewer readers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use connector_core::{Checkpoint, Epoch, Restored};
use gcp_emulator::{Method, pubsub::proto::PubsubMessage};
use pubsub_source::{
    PlanError, Prepared, PubsubSource, SourceState, SplitPlan, StartPosition, SubscriptionCreation,
    prepare,
};

use crate::{job::*, world::*};

const SECOND: Duration = Duration::from_secs(1);

const EACH: u64 = 120;

struct Job {
    world: World,
    prepared: Prepared,
    /// The states of all readers of the last run that were durable.
    states: Vec<Restored<SourceState>>,
    /// Handed out before a cut that became durable.
    durable: BTreeSet<u64>,
    epoch: u64,
}

impl Job {
    async fn start() -> Self {
        let keeps = |one: &mut gcp_emulator::pubsub::proto::Subscription| {
            one.retain_acked_messages = true;
        };
        let world = World::with(|server| server.response_messages(5), keeps).with_other(keeps);
        world.publish(0..EACH);
        world.publish_to(OTHER_TOPIC, EACH..2 * EACH);
        let prepared = world
            .prepare(&[SUBSCRIPTION, OTHER], 2)
            .start(StartPosition::Earliest)
            .run(&mut Kept::default())
            .await
            .unwrap();
        Self {
            world,
            prepared,
            states: Vec::new(),
            durable: BTreeSet::new(),
            epoch: 0,
        }
    }

    /// Runs with so many readers until they took about `take` messages each, makes that durable,
    /// and dies: before anything was committed, or while it is.
    async fn run(&mut self, readers: usize, take: usize, commits: bool) {
        self.epoch += 1;
        let mut sources = Vec::new();
        let mut drivers = tokio::task::JoinSet::new();
        for reader in 0..readers {
            let builder = self
                .world
                .reader(&self.prepared, reader, readers)
                .max_extension(SECOND * 10)
                .restore(self.states.clone());
            let (source, driver) = builder.build_with_driver().unwrap();
            drivers.spawn(driver);
            sources.push(source);
        }
        let mut now_durable = Vec::new();
        for source in &mut sources {
            let got = self.take(source, take).await;
            now_durable.extend(got);
        }
        let mut states = Vec::new();
        for source in &mut sources {
            states.push(restored(self.epoch, &seal(source, self.epoch).await));
        }
        let distinct: BTreeSet<u64> = now_durable.iter().copied().collect();
        assert_eq!(
            distinct.len(),
            now_durable.len(),
            "one message, two readers"
        );
        self.durable.extend(distinct);
        self.states = states;
        if commits {
            for source in &mut sources {
                drop(source.commit(Epoch::new(self.epoch)));
            }
            tokio::task::yield_now().await;
        }
        // What is handed out from here on is nowhere: it has to come again.
        for source in &mut sources {
            self.take(source, 5).await;
        }
        drivers.abort_all();
        while drivers.join_next().await.is_some() {}
    }

    /// Takes so many messages, or what comes until it is quiet for longer than a lease.
    async fn take(&self, source: &mut PubsubSource, count: usize) -> Vec<u64> {
        let mut got = Vec::new();
        while got.len() < count {
            let Ok(message) = tokio::time::timeout(SECOND * 25, next(source)).await else {
                break;
            };
            let number = number(&message);
            assert!(
                !self.durable.contains(&number),
                "{number} is named by a durable state and handed out again"
            );
            got.push(number);
        }
        got
    }

    /// Reads the rest with so many readers, and ends in order.
    async fn finish(mut self, readers: usize) {
        self.epoch += 1;
        let mut sources = Vec::new();
        for reader in 0..readers {
            let builder = self.world.reader(&self.prepared, reader, readers);
            let builder = builder.restore(self.states.clone());
            sources.push(builder.build().unwrap());
        }
        // Each in turn until no one gets anything more.
        let mut rest = Vec::new();
        loop {
            let before = rest.len();
            for source in &mut sources {
                let got = self.take(source, 50).await;
                rest.extend(got);
            }
            if rest.len() == before {
                break;
            }
        }
        let distinct: BTreeSet<u64> = rest.iter().copied().collect();
        assert_eq!(distinct.len(), rest.len(), "with no fault, each once");
        self.durable.extend(distinct);
        assert_eq!(
            self.durable,
            (0..2 * EACH).collect::<BTreeSet<_>>(),
            "nothing is lost"
        );
        for source in &mut sources {
            seal(source, self.epoch).await;
        }
        for source in &mut sources {
            commit(source, self.epoch).await;
        }
        let acknowledged = self
            .world
            .emulator
            .wait_until(
                |seen| {
                    [SUBSCRIPTION, OTHER]
                        .iter()
                        .all(|one| seen.subscription(one).backlog == 0)
                },
                LONG,
            )
            .await;
        assert!(acknowledged, "everything is acknowledged in the end");
        assert_eq!(self.world.count(Method::Seek), 2, "one per subscription");
    }
}

#[tokio::test(start_paused = true)]
async fn states_of_two_readers_serve_three_and_then_one_and_nothing_named_comes_again() {
    for commits in [false, true] {
        let mut job = Job::start().await;
        job.run(2, 20, commits).await;
        job.run(3, 15, !commits).await;
        job.run(1, 40, commits).await;
        job.run(5, 5, !commits).await;
        job.finish(2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_beyond_those_planned_for_is_refused_and_one_of_several_subscriptions_reads_all() {
    let job = Job::start().await;
    let refused = job.prepared.reader(2, 2).unwrap_err();
    assert!(matches!(refused, PlanError::NoSuchReader { .. }));
    let mut source = job.world.reader(&job.prepared, 0, 1).build().unwrap();
    let count = usize::try_from(2 * EACH).unwrap();
    let all = sorted(read(&mut source, count).await);
    assert_eq!(all, (0..2 * EACH).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_readers_of_an_ordered_plan_keep_each_keys_order_and_share_nothing() {
    let world = World::new();
    let names = [
        "projects/demo-project/subscriptions/one",
        "projects/demo-project/subscriptions/two",
    ];
    world.emulator.create_topic(OTHER_TOPIC).unwrap();
    let plan = SplitPlan::ordered(names.map(name), 3).unwrap();
    let mut preparation = prepare(&plan).endpoint(world.endpoint()).instance("job");
    for (subscription, topic) in names.into_iter().zip([TOPIC, OTHER_TOPIC]) {
        let creation = SubscriptionCreation::builder(topic.parse().unwrap())
            .message_ordering(true)
            .build();
        preparation = preparation.create(name(subscription), creation.unwrap());
    }
    let prepared = preparation.run(&mut Kept::default()).await.unwrap();
    for topic in [TOPIC, OTHER_TOPIC] {
        for number in 0..60u64 {
            let message = PubsubMessage {
                data: number.to_string().into(),
                ordering_key: format!("key-{}", number % 3),
                ..PubsubMessage::default()
            };
            world.emulator.publish(topic, vec![message]).unwrap();
        }
    }
    assert!(
        prepared.reader(2, 3).unwrap().is_none(),
        "nothing left for it"
    );
    for (reader, subscription) in names.into_iter().enumerate() {
        let mut source = world.reader(&prepared, reader, 3).build().unwrap();
        let mut of_key: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for _ in 0..60 {
            let message = next(&mut source).await;
            assert_eq!(message.subscription().as_str(), subscription);
            let key = message.ordering_key().unwrap().to_owned();
            of_key.entry(key).or_default().push(number(&message));
        }
        assert_eq!(of_key.len(), 3);
        assert!(
            of_key.values().all(|numbers| numbers.is_sorted()),
            "{of_key:?}"
        );
        source.close().await.unwrap();
    }
}
