//! Processes that share a subscription, of one start.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    time::Duration,
};

use connector_core::{Checkpoint, Epoch};
use futures::StreamExt;
use gcp_emulator::{Emulator, Method, pubsub::proto::PubsubMessage};
use pubsub_source::{
    Endpoint, Prepared, PubsubSource, SourceBuilder, SplitPlan, StartPosition, Unrecorded, prepare,
};

const TOPIC: &str = "projects/demo-project/topics/t11";
const SUBSCRIPTION: &str = "projects/demo-project/subscriptions/s11";

/// What makes a process of this test a replica: the prepared job, where the server is, its number
/// and that of all.
const JOB: &str = "PUBSUB_SOURCE_TEST_JOB";

/// Before each number, since the test harness writes to the same output.
const MARK: char = '@';

/// Far more than a slow machine needs.
const LIMIT: Duration = Duration::from_secs(120);

/// Reads until it is killed, and says what.
async fn replica(mut source: PubsubSource) {
    let mut epoch = Epoch::default();
    for count in 1.. {
        let message = source.next().await.unwrap().unwrap();
        println!("\n{MARK}{}", std::str::from_utf8(message.data()).unwrap());
        std::io::stdout().flush().unwrap();
        if count % 10 == 0 {
            epoch = epoch.next();
            drop(source.snapshot(epoch).await.unwrap());
            drop(source.commit(epoch));
        }
    }
}

/// One replica, killed when it is dropped.
struct Process(Child);

impl Process {
    fn start(
        prepared: &Prepared,
        emulator: &Emulator,
        replica: usize,
        replicas: usize,
        heard: SyncSender<u64>,
    ) -> Self {
        let address = emulator.local_addr().unwrap().to_string();
        let job = (prepared, address, replica, replicas);
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", TEST])
            .env(JOB, serde_json::to_string(&job).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Some(number) = line.strip_prefix(MARK) else {
                    continue;
                };
                if heard.send(number.parse().unwrap()).is_err() {
                    break;
                }
            }
        });
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is gone already fails the test elsewhere.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn publish(emulator: &Emulator, numbers: std::ops::Range<u64>) {
    let message = |number: u64| PubsubMessage {
        data: number.to_string().into(),
        ..PubsubMessage::default()
    };
    emulator
        .publish(TOPIC, numbers.map(message).collect())
        .unwrap();
}

/// Hears each of so many numbers once.
fn hear(heard: &Receiver<u64>, all: &mut BTreeSet<u64>, count: usize) {
    while all.len() < count {
        let number = heard.recv_timeout(LIMIT).expect("the replicas go on");
        assert!(all.insert(number), "{number} comes twice");
    }
}

const TEST: &str = "replicas_in_processes_of_their_own_and_a_later_one_come_of_one_seek";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_in_processes_of_their_own_and_a_later_one_come_of_one_seek() {
    if let Ok(job) = env::var(JOB) {
        let (prepared, address, number, replicas): (Prepared, String, usize, usize) =
            serde_json::from_str(&job).unwrap();
        let reader: SourceBuilder = prepared.reader(number, replicas).unwrap().unwrap();
        let endpoint = Endpoint::emulator(&address).unwrap();
        return replica(reader.endpoint(endpoint).build().unwrap()).await;
    }

    let emulator = Emulator::builder()
        .response_messages(20)
        .listen("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    emulator.create_topic(TOPIC).unwrap();
    emulator
        .create_subscription(SUBSCRIPTION, TOPIC, |one| one.retain_acked_messages = true)
        .unwrap();
    publish(&emulator, 0..300);
    let endpoint = Endpoint::emulator(&emulator.local_addr().unwrap().to_string()).unwrap();

    // Acknowledged by somebody else: only a seek brings it back.
    let earlier = PubsubSource::builder(SUBSCRIPTION.parse().unwrap());
    let mut earlier = earlier.endpoint(endpoint.clone()).build().unwrap();
    for _ in 0..300 {
        earlier.next().await.unwrap().unwrap();
    }
    drop(earlier.snapshot(Epoch::new(1)).await.unwrap());
    earlier.commit(Epoch::new(1)).await.unwrap();
    earlier.close().await.unwrap();

    let plan = SplitPlan::new([SUBSCRIPTION.parse().unwrap()], 3).unwrap();
    let prepared = prepare(&plan)
        .endpoint(endpoint)
        .start(StartPosition::Earliest)
        .run(&mut Unrecorded)
        .await
        .unwrap();
    let (say, heard) = sync_channel(1000);
    let mut processes = Vec::new();
    for number in 0..3 {
        processes.push(Process::start(&prepared, &emulator, number, 3, say.clone()));
    }
    let mut all = BTreeSet::new();
    hear(&heard, &mut all, 300);

    processes.push(Process::start(&prepared, &emulator, 3, 4, say));
    let joined = emulator
        .wait_until(
            |seen| seen.subscription(SUBSCRIPTION).streams.len() == 4,
            LIMIT,
        )
        .await;
    assert!(joined, "the later replica reads too");
    publish(&emulator, 300..500);
    hear(&heard, &mut all, 500);
    assert_eq!(all, (0..500).collect::<BTreeSet<_>>());
    assert_eq!(emulator.observe().count(Method::Seek), 1);
}
