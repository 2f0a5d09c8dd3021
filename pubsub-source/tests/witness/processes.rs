//! Readers in processes of their own, one of which is killed.

use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    time::Duration,
};

use connector_core::{Checkpoint, Epoch};
use futures::StreamExt;
use pubsub_source::PubsubSource;

use crate::{
    role::{Process, role, say},
    world::*,
};

/// Messages of one burst, which this server gives to whichever stream it likes.
const BURST: u64 = 20;

/// Bursts at least, and as many more as it takes until each reader had one.
const BURSTS: u64 = 20;

const LEASE: Duration = Duration::from_secs(10);

/// Reads, and commits whenever nothing comes for a moment, or never.
async fn work(subscription: &str, commits: bool) {
    let mut source = PubsubSource::builder(subscription.parse().unwrap())
        .endpoint(google())
        .max_extension(LEASE)
        .build()
        .unwrap();
    let mut epoch = Epoch::default();
    loop {
        let moment = Duration::from_millis(100);
        match tokio::time::timeout(moment, source.next()).await {
            Ok(message) => say(&number(&message.unwrap().unwrap()).to_string()),
            Err(_) if commits => {
                epoch = epoch.next();
                source.snapshot(epoch).await.unwrap();
                source.commit(epoch).await.unwrap();
            }
            Err(_) => {}
        }
    }
}

struct Reader {
    process: Process,
    told: Receiver<u64>,
    numbers: BTreeSet<u64>,
}

impl Reader {
    fn start(test: &str, role: &str, world: &World) -> Self {
        let mut process = Process::start(test, &format!("{role} {}", world.subscription()));
        let (sender, told) = sync_channel(1000);
        // A test that is over listens to nobody.
        process.listen(move |line| {
            sender.send(line.parse().unwrap()).ok();
        });
        let numbers = BTreeSet::new();
        Self {
            process,
            told,
            numbers,
        }
    }

    fn listen(&mut self) {
        match self.told.recv_timeout(Duration::from_millis(20)) {
            Ok(number) => self
                .numbers
                .extend([number].into_iter().chain(self.told.try_iter())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("a reader ended"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn when_one_of_two_processes_is_killed_the_other_gets_all_that_is_left_within_its_lease() {
    match role().as_deref() {
        None => {}
        Some([role, subscription]) => {
            return work(subscription, role == "worker").await;
        }
        Some(role) => panic!("{role:?} is no role"),
    }
    let test = "processes::when_one_of_two_processes_is_killed_the_other_gets_all_that_is_left_within_its_lease";
    let world = World::with(|subscription| subscription.ack_deadline_seconds = 10).await;
    let mut holder = Reader::start(test, "holder", &world);
    let mut worker = Reader::start(test, "worker", &world);
    let begun = now();
    let (mut published, mut bursts) = (0, 0);
    while bursts < BURSTS || holder.numbers.is_empty() || worker.numbers.is_empty() {
        assert!(begun.elapsed() < LONG, "one of them gets nothing");
        world.publish_numbers(published..published + BURST).await;
        (published, bursts) = (published + BURST, bursts + 1);
        let all = usize::try_from(published).unwrap();
        while holder.numbers.len() + worker.numbers.len() < all {
            assert!(begun.elapsed() < LONG, "some of {all} are missing");
            holder.listen();
            worker.listen();
        }
    }
    assert!(
        worker.numbers.is_disjoint(&holder.numbers),
        "what is held is held"
    );

    let killed = now();
    holder.process.kill();
    let all: BTreeSet<u64> = (0..published).collect();
    while worker.numbers != all {
        assert!(killed.elapsed() < LEASE * 2, "{:?}", killed.elapsed());
        worker.listen();
    }
    println!(
        "{} of {published} came again {:?} after the kill",
        holder.numbers.len(),
        killed.elapsed()
    );
    until_acknowledged(&mut worker).await;
    drop(worker);
    world.assert_all_acknowledged().await;
    world.delete().await;
}

/// Waits for two moments in which nothing came: the worker commits in each.
async fn until_acknowledged(worker: &mut Reader) {
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        worker.listen();
    }
}
