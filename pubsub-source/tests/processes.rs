//! Readers in processes of their own, which can be killed. Real time: bounded waits for conditions.

#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test that cannot go on fails"
)]

#[path = "processes/role.rs"]
mod role;
#[path = "processes/server.rs"]
mod server;

use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, sync_channel},
    time::{Duration, Instant},
};

use connector_core::{Checkpoint, Epoch};
use futures::StreamExt;
use pubsub_source::{Endpoint, PubsubSource};
use role::{Process, role, say};
use server::{SUBSCRIPTION, Server, serve};

const MESSAGES: u64 = 1000;

/// What each reader may hold.
const HELD: usize = 300;

const LEASE: Duration = Duration::from_secs(10);

/// Far more than a slow machine needs.
const LIMIT: Duration = Duration::from_secs(120);

/// Reads, and commits whenever nothing comes for a moment, or never.
fn read(address: &str, commits: bool) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut source = PubsubSource::builder(SUBSCRIPTION.parse().unwrap())
            .endpoint(Endpoint::emulator(address).unwrap())
            .outstanding(HELD)
            .first_outstanding(HELD)
            .max_extension(LEASE)
            .build()
            .unwrap();
        let mut epoch = Epoch::default();
        loop {
            let moment = Duration::from_millis(100);
            match tokio::time::timeout(moment, source.next()).await {
                Ok(message) => {
                    let message = message.unwrap().unwrap();
                    say(std::str::from_utf8(message.data()).unwrap());
                }
                Err(_) if commits => {
                    epoch = epoch.next();
                    source.snapshot(epoch).await.unwrap();
                    source.commit(epoch).await.unwrap();
                }
                Err(_) => {}
            }
        }
    });
}

fn reader(test: &str, role: &str, server: &Server) -> (Process, Receiver<u64>) {
    let mut process = Process::start(test, &format!("{role} {}", server.address));
    let (sender, numbers) = sync_channel(HELD);
    // A test that is over listens to nobody.
    process.listen(move |line| {
        sender.send(line.parse().unwrap()).ok();
    });
    (process, numbers)
}

/// Waits until so many different numbers were told, and answers them.
fn until(numbers: &Receiver<u64>, mut told: BTreeSet<u64>, count: usize) -> BTreeSet<u64> {
    while told.len() < count {
        told.insert(numbers.recv_timeout(LIMIT).unwrap());
    }
    told
}

#[test]
fn when_one_of_two_processes_is_killed_the_other_gets_all_that_is_left_within_its_lease() {
    match role().as_deref() {
        None => {}
        Some([role, messages]) if role == "server" => {
            serve(messages.parse().unwrap());
            return;
        }
        Some([role, address]) => {
            read(address, role == "worker");
            return;
        }
        Some(role) => panic!("{role:?} is no role"),
    }
    let test =
        "when_one_of_two_processes_is_killed_the_other_gets_all_that_is_left_within_its_lease";
    let mut server = Server::start(test, MESSAGES);
    let (mut holder, held) = reader(test, "holder", &server);
    let held = until(&held, BTreeSet::new(), HELD);
    let (_worker, numbers) = reader(test, "worker", &server);
    let all = usize::try_from(MESSAGES).unwrap();
    let got = until(&numbers, BTreeSet::new(), all - HELD);
    assert!(got.is_disjoint(&held), "what is held is held");
    assert_eq!(server.seen().lapses, 0);

    #[expect(clippy::disallowed_methods, reason = "real processes, real time")]
    let killed = Instant::now();
    holder.kill();
    let got = until(&numbers, got, all);
    assert!(killed.elapsed() < LEASE * 2, "{:?}", killed.elapsed());
    assert_eq!(got, (0..MESSAGES).collect());
    while server.seen().backlog > 0 {
        assert!(
            killed.elapsed() < LIMIT,
            "everything is acknowledged in the end"
        );
        std::thread::yield_now();
    }
}
