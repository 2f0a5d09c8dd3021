//! A server that is killed in the middle and comes back without anything it knew.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use connector_core::{Checkpoint, Epoch};
use futures::SinkExt;
use gcp_wire::{
    Connection, ConnectionOptions, Credentials, Endpoint, RpcError,
    method::{ACKNOWLEDGE, CREATE_SUBSCRIPTION, PULL},
    proto::pubsub::{AcknowledgeRequest, PullRequest, Subscription},
};
use pubsub_sink::{PublishMessage, PubsubSink, TopicName};
use tokio::task::JoinSet;

use super::{google::Google, recorder::Recorder};

/// Records and topics of an ordinary run. `RECORDS=100000 TOPICS=500` is the long one.
const RECORDS: usize = 20_000;
const TOPICS: usize = 100;

/// A checkpoint after so many records.
const EPOCH: usize = 2_000;

const CALL: Duration = Duration::from_secs(20);

fn from_environment(name: &str, otherwise: usize) -> usize {
    let value = std::env::var(name).ok();
    value.map_or(otherwise, |value| value.parse().expect("a number"))
}

/// Reads every topic as soon as it exists.
#[derive(Default)]
struct Drain {
    subscriptions: Mutex<BTreeSet<String>>,
    payloads: Mutex<BTreeSet<String>>,
    ended: AtomicBool,
}

impl Drain {
    /// Subscribes to what was created since the last time.
    async fn subscribe(&self, connection: &Connection, recorder: &Recorder) {
        for topic in recorder.take_created() {
            let name = topic.replace("/topics/", "/subscriptions/");
            let request = Subscription {
                name: name.clone(),
                topic,
                ack_deadline_seconds: 600,
                ..Subscription::default()
            };
            // While the server is away, a topic that was just created is gone with it.
            let made = connection
                .call(&CREATE_SUBSCRIPTION, &name, request, CALL)
                .await;
            if made.is_ok() {
                self.subscriptions.lock().unwrap().insert(name);
            }
        }
    }

    /// One look at a subscription. True when something was there.
    async fn pull(&self, connection: &Connection, name: &str) -> Result<bool, RpcError> {
        #[expect(
            deprecated,
            reason = "a look at each of hundreds of subscriptions must not wait"
        )]
        let request = PullRequest {
            subscription: name.to_owned(),
            max_messages: 1_000,
            return_immediately: true,
        };
        let pulled = connection.call(&PULL, name, request, CALL).await?;
        let mut ack_ids = Vec::new();
        for received in pulled.received_messages {
            let data = received.message.unwrap_or_default().data.to_vec();
            self.payloads
                .lock()
                .unwrap()
                .insert(String::from_utf8(data).unwrap());
            ack_ids.push(received.ack_id);
        }
        if ack_ids.is_empty() {
            return Ok(false);
        }
        let request = AcknowledgeRequest {
            subscription: name.to_owned(),
            ack_ids,
        };
        connection.call(&ACKNOWLEDGE, name, request, CALL).await?;
        Ok(true)
    }

    async fn run(self: Arc<Self>, endpoint: Endpoint, recorder: Arc<Recorder>) {
        let options = ConnectionOptions::default();
        let connection = Connection::unary(endpoint, Credentials::anonymous(), options).unwrap();
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            self.subscribe(&connection, &recorder).await;
            let names: Vec<String> = self.subscriptions.lock().unwrap().iter().cloned().collect();
            let mut found = false;
            for name in names {
                // An error is the server's absence.
                found |= self.pull(&connection, &name).await.unwrap_or(false);
            }
            if ended && !found {
                return;
            }
            if !found {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_record_before_a_committed_epoch_was_answered_ok_or_read_over_a_server_that_forgets()
{
    let records = from_environment("RECORDS", RECORDS);
    let topics = from_environment("TOPICS", TOPICS);
    let google = Google::start();
    let recorder = Arc::new(Recorder::to(google.port).await);
    let proxied = Endpoint::emulator(&recorder.address.to_string()).unwrap();
    let drain = Arc::new(Drain::default());
    let mut draining = JoinSet::new();
    draining.spawn(Arc::clone(&drain).run(proxied.clone(), Arc::clone(&recorder)));

    let mut sink =
        PubsubSink::builder(|number: &usize| Ok(Some(PublishMessage::new(number.to_string()))))
            .resolve(move |number: &usize| {
                TopicName::new("demo", &format!("topic-{}", number % topics))
            })
            .endpoint(proxied)
            .build()
            .unwrap();

    let mut google = Some(google);
    let mut starting = JoinSet::new();
    let mut committed = 0;
    let mut epoch = Epoch::default();
    for number in 0..records {
        sink.feed(number).await.unwrap();
        if number == records / 2
            && let Some(running) = google.take()
        {
            // In the middle of an epoch, with requests under way.
            let port = running.kill().await;
            drain.subscriptions.lock().unwrap().clear();
            // Records go on coming meanwhile.
            starting.spawn_blocking(move || Google::start_at(port));
        }
        if number == records - records / 4 {
            // By now each topic was created again: from here on somebody reads it.
            google = starting.join_next().await.map(Result::unwrap);
            sink.flush().await.unwrap();
            while drain.subscriptions.lock().unwrap().len() < topics {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        if (number + 1) % EPOCH == 0 || number + 1 == records {
            epoch = epoch.next();
            sink.snapshot(epoch).await.unwrap();
            sink.commit(epoch).await.unwrap();
            committed = number + 1;
        }
    }
    let stats = sink.stats();
    sink.close().await.unwrap();
    drain.ended.store(true, Ordering::Release);
    draining.join_all().await;
    drop(google);

    let stored = recorder.stored();
    let read = drain.payloads.lock().unwrap().clone();
    let lost: Vec<usize> = (0..committed)
        .filter(|number| {
            let payload = number.to_string();
            !stored.contains(&payload) && !read.contains(&payload)
        })
        .collect();
    assert_eq!(committed, records);
    assert!(
        lost.is_empty(),
        "{} lost, such as {:?}",
        lost.len(),
        &lost[..lost.len().min(5)]
    );
    // Each topic was created before the kill and after it.
    let created = usize::try_from(stats.topics_created).unwrap();
    assert!(created >= 2 * topics, "{stats:?}");
    assert!(stats.requests_retried > 0, "{stats:?}");
    // Whatever is published once everyone is subscribed again is read.
    let tail = records - records / 4 + 1..records;
    let unread = tail
        .clone()
        .filter(|number| !read.contains(&number.to_string()));
    assert_eq!(unread.count(), 0, "of {}", tail.len());
    println!(
        "{records} records to {topics} topics: {} answered OK, {} read, {} retried",
        stored.len(),
        read.len(),
        stats.requests_retried
    );
}
