//! Tasks that are created on commit, once each.

mod asking;
mod clocks;
mod deadlines;
mod ending;
mod keeping;
mod queues;
mod recovering;
mod room;
mod setting_up;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use cloudtasks_sink::{CloudTasksSink, Delivery, SinkBuilder, SinkState};
use connector_core::{Checkpoint, Committed, Epoch, Receipt, Restored};
use futures::SinkExt;

use crate::world::{LONG, Order, World, orders};

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// Names are remembered for an hour, less the margin of ten minutes.
pub(crate) const WINDOW: Duration = Duration::from_secs(3_000);

/// A server that forgets names after an hour, and a clock of the job's own.
pub(crate) struct Stage {
    pub(crate) world: World,
    started: tokio::time::Instant,
    noon: SystemTime,
    /// Seconds by which the job's time of day is ahead of the server's.
    ahead: Arc<AtomicI64>,
}

/// A sink and the task that drives it.
pub(crate) struct Running {
    pub(crate) sink: CloudTasksSink<Order>,
    driver: tokio::task::AbortHandle,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::of(World::with(|emulator| emulator.task_names_kept(HOUR)))
    }

    pub(crate) fn of(world: World) -> Self {
        let noon = SystemTime::UNIX_EPOCH + world.emulator.now().as_unix();
        Self {
            world,
            started: tokio::time::Instant::now(),
            noon,
            ahead: Arc::default(),
        }
    }

    /// Sets the job's clock to so many seconds ahead of the server's.
    pub(crate) fn step_clock(&self, seconds: i64) {
        self.ahead.store(seconds, Ordering::Relaxed);
    }

    /// The server's time of day.
    pub(crate) fn today(&self) -> SystemTime {
        self.noon + self.started.elapsed()
    }

    pub(crate) fn sink(&self) -> SinkBuilder<Order> {
        let (started, noon, ahead) = (self.started, self.noon, Arc::clone(&self.ahead));
        self.world
            .sink()
            .delivery(Delivery::Staged {
                name_retention: HOUR,
            })
            .wall_clock(move || {
                let today = noon + started.elapsed();
                let ahead = ahead.load(Ordering::Relaxed);
                let step = Duration::from_secs(ahead.unsigned_abs());
                if ahead < 0 {
                    today - step
                } else {
                    today + step
                }
            })
    }

    pub(crate) fn start(&self, restored: impl IntoIterator<Item = Restored<SinkState>>) -> Running {
        run(self.sink().restore(restored))
    }

    /// Nothing of the sink reaches the server any more.
    pub(crate) async fn crash(&self, running: Running) {
        running.driver.abort();
        tokio::task::yield_now().await;
        self.world.emulator.drop_connections();
        drop(running);
    }
}

pub(crate) fn run(builder: SinkBuilder<Order>) -> Running {
    let (sink, driver) = builder.build_with_driver().unwrap();
    let driver = tokio::spawn(driver).abort_handle();
    Running { sink, driver }
}

impl Running {
    pub(crate) async fn feed(&mut self, ids: impl IntoIterator<Item = u32>) {
        for order in orders(ids) {
            self.sink.feed(order).await.unwrap();
        }
    }

    pub(crate) async fn take(&mut self, order: Order) {
        self.sink.feed(order).await.unwrap();
    }

    /// Takes a checkpoint; the state has been to a disk and back.
    pub(crate) async fn snapshot(&mut self, epoch: u64) -> Restored<SinkState> {
        let state = self.sink.snapshot(Epoch::new(epoch)).await.unwrap();
        let disk = postcard::to_stdvec(&state).unwrap();
        Restored::new(Epoch::new(epoch), postcard::from_bytes(&disk).unwrap())
    }

    pub(crate) fn commit(&mut self, epoch: u64) -> Receipt<Committed> {
        self.sink.commit(Epoch::new(epoch))
    }

    /// Takes a checkpoint and commits it to the end.
    pub(crate) async fn checkpoint(&mut self, epoch: u64) -> Restored<SinkState> {
        let saved = self.snapshot(epoch).await;
        settled(self.commit(epoch)).await;
        saved
    }
}

/// What a receipt says, within a day.
pub(crate) async fn settled(receipt: Receipt<Committed>) -> Committed {
    tokio::time::timeout(24 * LONG, receipt)
        .await
        .expect("a commit resolves")
        .unwrap()
}

pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The names of the tasks in a state.
pub(crate) fn names(saved: &Restored<SinkState>) -> Vec<String> {
    saved.state.tasks().iter().map(|task| task.name()).collect()
}
