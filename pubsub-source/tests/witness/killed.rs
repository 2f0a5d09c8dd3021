//! A reader that is killed again and again.

use std::{
    process::{Child, Command},
    time::Duration,
};

use checkpoint_store::{CheckpointStore, FileStore};
use connector_core::{Checkpoint, CheckpointError, Epoch, Restored};
use futures::{StreamExt, stream::FuturesUnordered};
use pubsub_source::{PubsubSource, SourceState};
use serde::{Deserialize, Serialize};

use crate::world::*;

/// So many messages, on so many streams.
const MESSAGES: u64 = 100_000;
const STREAMS: usize = 4;

/// How often the reader is killed before it may come to its end.
const KILLS: usize = 6;

/// Names the subscription for the reader, which is this program again.
const SUBSCRIPTION: &str = "KILLED_READER_SUBSCRIPTION";
/// Names the directory of its checkpoints.
const DIRECTORY: &str = "KILLED_READER_DIRECTORY";

/// What the reader saves: which numbers it has processed, one bit each, with the source's state.
#[derive(Serialize, Deserialize)]
struct Saved {
    processed: Vec<u8>,
    source: SourceState,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_reader_that_is_killed_every_few_seconds_processes_every_message() {
    if let (Ok(subscription), Ok(directory)) =
        (std::env::var(SUBSCRIPTION), std::env::var(DIRECTORY))
    {
        read_all(&subscription, &directory).await;
        return;
    }
    let world = World::with(|subscription| subscription.ack_deadline_seconds = 10).await;
    let directory = tempfile::tempdir().unwrap();
    for first in (0..MESSAGES).step_by(1000) {
        world.publish_numbers(first..first + 1000).await;
    }
    let mut kills = 0;
    let mut reader = Reader::start(&world, directory.path());
    while kills < KILLS {
        let life = Duration::from_millis(2000 + fastrand::u64(..3000));
        if tokio::time::timeout(life, reader.ended()).await.is_ok() {
            break;
        }
        reader.kill();
        kills += 1;
        reader = Reader::start(&world, directory.path());
    }
    let ended = tokio::time::timeout(LONG * 3, reader.ended()).await;
    assert!(ended.expect("the last reader comes to its end"));
    assert!(kills >= 2, "too fast to be killed: {kills}");

    let store = FileStore::open(directory.path()).await.unwrap();
    let (epoch, processed, _) = newest(&store).await;
    assert_eq!(count(&processed), MESSAGES, "of epoch {epoch}");
    world.assert_all_acknowledged().await;
    println!("killed {kills} times, {epoch} epochs");
    world.delete().await;
}

/// The reader's whole life: it goes on from what is durable, and ends when everything is.
async fn read_all(subscription: &str, directory: &str) {
    let mut store = FileStore::take_over(directory).await.unwrap();
    let (newest, mut processed, source) = newest(&store).await;
    let mut epoch = Epoch::new(newest);
    let restored = source.map(|state| Restored::new(epoch, state));
    let mut source = PubsubSource::builder(subscription.parse().unwrap())
        .endpoint(google())
        .streams(STREAMS)
        .max_extension(SECOND * 10)
        .restore(restored)
        .build()
        .unwrap();
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut commits = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(committed) = commits.next() => {
                let committed: Result<Epoch, CheckpointError> = committed;
                store.settled(committed.unwrap()).await.unwrap();
                if count(&processed) == MESSAGES && commits.is_empty() && source.stats().leased == 0 {
                    source.close().await.unwrap();
                    return;
                }
            }
            _ = tick.tick() => {
                epoch = epoch.next();
                let state = source.snapshot(epoch).await.unwrap();
                let saved = Saved { processed: processed.clone(), source: state };
                store.save(epoch, serde_json::to_vec(&saved).unwrap().into()).await.unwrap();
                let commit = source.commit(epoch);
                commits.push(commit.map(move |_| epoch));
            }
            message = source.next() => {
                let number = number(&message.unwrap().unwrap());
                let (byte, bit) = place(number);
                processed[byte] |= bit;
            }
        }
    }
}

/// The newest durable epoch, what was processed by then, and the source's state.
async fn newest(store: &FileStore) -> (u64, Vec<u8>, Option<SourceState>) {
    let nothing = vec![0; usize::try_from(MESSAGES.div_ceil(8)).unwrap()];
    match store.newest().await.unwrap() {
        None => (0, nothing, None),
        Some(restored) => {
            let saved: Saved = serde_json::from_slice(&restored.state).unwrap();
            (restored.epoch.get(), saved.processed, Some(saved.source))
        }
    }
}

fn place(number: u64) -> (usize, u8) {
    (usize::try_from(number / 8).unwrap(), 1 << (number % 8))
}

fn count(processed: &[u8]) -> u64 {
    let ones = processed.iter().map(|byte| u64::from(byte.count_ones()));
    ones.sum()
}

/// This program again, as the reader.
struct Reader(Child);

impl Reader {
    fn start(world: &World, directory: &std::path::Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "killed::a_reader_that_is_killed_every_few_seconds_processes_every_message",
                "--exact",
                "--nocapture",
            ])
            .env(SUBSCRIPTION, world.subscription.as_str())
            .env(DIRECTORY, directory)
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Waits for its end: whether it was a good one.
    async fn ended(&mut self) -> bool {
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        loop {
            looks.tick().await;
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.success();
            }
        }
    }

    /// SIGKILL: nothing is given back, nothing is said.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A reader that has ended cannot be killed, and need not be.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
