//! Queues that take no tasks.

use std::time::Duration;

use cloudtasks_sink::Batch;
use gcp_emulator::{Code, Fault, Method, Rule, RuleId};

use super::{HOUR, Running, Stage, pass, run, settled};
use crate::world::{Order, Q1, Q2, queue};

/// Two records for a queue in trouble, then many for another.
async fn feed(running: &mut Running) {
    for id in 0..40 {
        let name = if id < 20 { Q1 } else { Q2 };
        let order = Order {
            id: id.to_string(),
            queue: queue(name),
        };
        running.take(order).await;
    }
}

fn trouble(stage: &Stage, code: Code) -> Vec<RuleId> {
    let faults = stage.world.emulator.faults();
    [Method::CreateTask, Method::BatchCreateTasks]
        .map(|method| {
            let rule = Rule::on(method).when(|call| call.resource() == Some(Q1));
            faults.add(rule.then(Fault::answer(code, "scripted")))
        })
        .to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_missing_or_closed_holds_up_only_its_own_tasks_and_is_asked_by_one() {
    for code in [
        Code::NotFound,
        Code::FailedPrecondition,
        Code::PermissionDenied,
        Code::Unauthenticated,
    ] {
        for batch in [None, Some(Batch::up_to(10))] {
            let stage = Stage::new();
            let rules = trouble(&stage, code);
            let mut builder = stage.sink();
            if let Some(batch) = batch {
                builder = builder.batching(batch);
            }
            let mut running = run(builder);
            feed(&mut running).await;
            running.snapshot(1).await;
            let first = running.commit(1);
            pass(Duration::from_secs(600)).await;
            assert_eq!(stage.world.created(Q2).len(), 20, "{code:?} {batch:?}");
            let stats = running.sink.stats();
            assert!(stats.held >= 19, "{stats:?}");
            // Twenty first attempts at most, then one a minute.
            assert!(stats.attempts <= 20 + 20 + 20, "{stats:?}");
            for rule in rules {
                stage.world.emulator.faults().remove(rule);
            }
            assert_eq!(settled(first).await.settled, 40);
            assert_eq!(stage.world.created(Q1).len(), 20);
            assert_eq!(running.sink.stats().held, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_queue_that_stays_missing_expire_and_later_epochs_are_not_held_up() {
    let stage = Stage::new();
    trouble(&stage, Code::NotFound);
    let mut running = stage.start(None);
    feed(&mut running).await;
    running.snapshot(1).await;
    let first = running.commit(1);
    for epoch in 2..5 {
        running
            .take(Order {
                id: epoch.to_string(),
                queue: queue(Q2),
            })
            .await;
        running.snapshot(epoch).await;
        drop(running.commit(epoch));
        pass(Duration::from_secs(60)).await;
        let there = 20 + usize::try_from(epoch).unwrap() - 1;
        assert_eq!(stage.world.created(Q2).len(), there);
    }
    for epoch in 5..20 {
        running.snapshot(epoch).await;
        drop(running.commit(epoch));
        pass(HOUR / 12).await;
    }
    assert_eq!(running.sink.expired().len(), 20);
    let committed = settled(first).await;
    assert_eq!((committed.settled, committed.retained), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn an_outage_longer_than_any_number_of_attempts_is_ridden_out() {
    let stage = Stage::new();
    let faults = stage.world.emulator.faults();
    let down = faults.add(Rule::on_any().then(Fault::answer(Code::Unavailable, "down")));
    let mut running = stage.start(None);
    running.feed(0..5).await;
    running.snapshot(1).await;
    let commit = running.commit(1);
    pass(HOUR / 2).await;
    faults.remove(down);
    assert_eq!(settled(commit).await.settled, 5);
}
