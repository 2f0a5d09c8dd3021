//! A whole job under random faults and crashes: records in, checkpoints, restarts, tasks out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cloudtasks_sink::{CloudTasksSink, RetryBudget, SinkState};
use connector_core::{Checkpoint, Epoch, Restored};
use futures::SinkExt;
use gcp_emulator::{Code, Fault, Method, Rule};

use crate::world::{Order, Q1, Q2, World, queue};

const RECORDS: usize = 400;

/// How often each fault happened.
type Tally = Arc<[AtomicU64; 8]>;

const NAMES: [&str; 8] = [
    "unavailable",
    "lost answer",
    "quota",
    "reset",
    "going away",
    "cut",
    "cut after effect",
    "slow",
];

/// What a host makes durable: the sink's state, and how far it had read its source.
struct Saved {
    restored: Restored<SinkState>,
    read: usize,
}

fn faults(world: &World, seed: u64, tally: &Tally) {
    let kinds = [
        Fault::answer(Code::Unavailable, "not now"),
        Fault::answer(Code::Unavailable, "lost").after_effect(),
        Fault::answer(Code::ResourceExhausted, "quota"),
        Fault::ResetStream(2),
        Fault::GoAway(0),
        Fault::DropConnection,
        Fault::DropConnection.after_effect(),
        Fault::Delay(Duration::from_secs(3)),
    ];
    for (kind, fault) in kinds.into_iter().enumerate() {
        let tally = Arc::clone(tally);
        let rule = Rule::on(Method::CreateTask).when(move |call| {
            let mut random = fastrand::Rng::with_seed(seed ^ (call.nth << 8) ^ kind as u64);
            let happens = random.u32(0..60) == 0;
            if happens {
                tally[kind].fetch_add(1, Ordering::Relaxed);
            }
            happens
        });
        world.emulator.faults().add(rule.then(fault));
    }
}

async fn run(seed: u64, tally: &Tally) -> (u64, u64) {
    let world = World::new();
    faults(&world, seed, tally);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut saved: Option<Saved> = None;
    let (mut crashes, mut checkpoints) = (0, 0);
    'incarnation: loop {
        let restored = saved.as_ref().map(|saved| saved.restored.clone());
        let mut epoch = restored
            .as_ref()
            .map_or(Epoch::default(), |restored| restored.epoch);
        let mut read = saved.as_ref().map_or(0, |saved| saved.read);
        let (mut sink, driver): (CloudTasksSink<Order>, _) = world
            .sink()
            .task_id(|order: &Order| order.id.clone())
            // Under so many faults eight attempts are soon spent.
            .retries(RetryBudget::new(
                50,
                Duration::from_millis(100),
                Duration::from_secs(1),
            ))
            .in_flight(random.usize(1..200))
            .restore(restored)
            .build_with_driver()
            .unwrap();
        let driver = tokio::spawn(driver);
        while read < RECORDS {
            let to = if read.is_multiple_of(3) { Q2 } else { Q1 };
            sink.feed(Order {
                id: read.to_string(),
                queue: queue(to),
            })
            .await
            .unwrap();
            read += 1;
            match random.u32(0..100) {
                0..3 => {
                    epoch = epoch.next();
                    let state = sink.snapshot(epoch).await.unwrap();
                    saved = Some(Saved {
                        restored: Restored::new(epoch, state),
                        read,
                    });
                    checkpoints += 1;
                    if random.bool() {
                        sink.commit(epoch).await.unwrap();
                    }
                }
                3 => {
                    epoch = epoch.next();
                    drop(sink.snapshot(epoch));
                    sink.abort(epoch);
                }
                4 if crashes < 6 => {
                    driver.abort();
                    tokio::task::yield_now().await;
                    drop(sink);
                    crashes += 1;
                    continue 'incarnation;
                }
                _ => {}
            }
        }
        epoch = epoch.next();
        sink.snapshot(epoch).await.unwrap();
        sink.commit(epoch).await.unwrap();
        sink.close().await.unwrap();
        break;
    }

    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for body in [world.bodies(Q1), world.bodies(Q2)].concat() {
        *seen.entry(body).or_default() += 1;
    }
    assert_eq!(
        seen.len(),
        RECORDS,
        "seed {seed}: every record became a task"
    );
    assert!(
        seen.values().all(|times| *times == 1),
        "seed {seed}: and none became two"
    );
    (crashes, checkpoints)
}

#[tokio::test(start_paused = true)]
async fn over_faults_and_crashes_every_record_becomes_exactly_one_named_task() {
    let tally: Tally = Arc::default();
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=12).collect(),
    };
    let (mut crashes, mut checkpoints) = (0, 0);
    for seed in &seeds {
        let (crashed, saved) = run(*seed, &tally).await;
        crashes += crashed;
        checkpoints += saved;
    }
    println!(
        "{} runs, {crashes} crashes, {checkpoints} checkpoints",
        seeds.len()
    );
    for (name, count) in NAMES.iter().zip(tally.iter()) {
        let count = count.load(Ordering::Relaxed);
        println!("{count} × {name}");
        assert!(count > 0 || seeds.len() == 1, "{name} never happened");
    }
    assert!((crashes > 0 && checkpoints > 0) || seeds.len() == 1);
}
