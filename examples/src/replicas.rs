//! A job with several readers: started once, crashed, and continued with one reader more.
//!
//! A topic has kept what was published to it since before anybody subscribed. The job makes its
//! own subscription, begins with the oldest message, and counts every order once, in parallel. Its
//! owner, [`run`], does once per start what must not be done by each reader: it prepares the job. The
//! readers (`replicas/reader.rs`) only read. Halfway all of them die; then there are three instead
//! of two, each of which gets the states of both.
//!
//! What a reader has counted is saved with each of its checkpoints, so a count is of messages that are
//! acknowledged, and of nothing else.

mod error;
mod reader;
mod report;
mod server;
mod start_file;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use checkpoint_store::{CheckpointStore, FileStore};
use clap::Parser;
use connector_core::Restored;
use pubsub_source::{
    Prepared, SourceState, SplitPlan, StartPosition, SubscriptionCreation, prepare,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use error::ReplicasError;
pub use report::Report;
pub use start_file::{StartFile, StartFileError};

use reader::{Reader, ReaderState};
use server::Server;

/// Readers of the first run, and of the second.
const RUNS: [usize; 2] = [2, 3];

/// Messages that a reader may have in hand: few, so that the crash comes in the middle of the orders.
const IN_HAND: usize = 100;

/// How long nothing may be counted before the run is given up: far more than a lease.
const PATIENCE: Duration = Duration::from_secs(60);

/// The flags of the `replicas` program.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "replicas",
    about = "A job that starts once, with several readers, a crash, and a reader more."
)]
#[non_exhaustive]
pub struct Options {
    /// How many orders to publish and to wait for
    #[arg(long, value_name = "N", default_value = "2000")]
    pub orders: NonZeroU32,
}

/// Runs the job once, over an embedded server, and returns what was counted.
///
/// # Errors
///
/// A [`ReplicasError`] when there is nothing to count.
///
/// # Cancel safety
///
/// Dropping the future ends the readers; the server and the state directory go with it.
pub async fn run(options: &Options) -> Result<Report, ReplicasError> {
    let directory = tempfile::tempdir().map_err(ReplicasError::Directory)?;
    let orders = options.orders.get();
    let mut job = Job {
        server: Server::start().await?,
        directory: directory.path().to_owned(),
        orders,
        counted: BTreeMap::new(),
        starts: 0,
        before_crash: 0,
        states: Vec::new(),
    };
    // History: nobody has subscribed yet.
    job.server.publish(0..orders / 2)?;
    for (run, readers) in RUNS.into_iter().enumerate() {
        let prepared = job.prepare(readers).await?;
        if run == 0 {
            job.server.publish(orders / 2..orders)?;
        }
        job.run(run, readers, &prepared).await?;
    }
    Ok(job.report())
}

/// The owner of the job.
struct Job {
    server: Server,
    directory: PathBuf,
    orders: u32,
    /// By order, how often it is in a durable count.
    counted: BTreeMap<u32, u32>,
    starts: u32,
    before_crash: usize,
    /// The states of all readers of the last run.
    states: Vec<Restored<SourceState>>,
}

impl Job {
    /// What is done once per start, whatever the number of readers.
    async fn prepare(&mut self, readers: usize) -> Result<Prepared, ReplicasError> {
        self.starts += 1;
        let store = FileStore::open(self.directory.join("start")).await?;
        let creation = SubscriptionCreation::builder(self.server.topic().clone()).build()?;
        let plan = SplitPlan::new([self.server.subscription().clone()], readers)?;
        let prepared = prepare(&plan)
            .endpoint(self.server.endpoint())
            .create(self.server.subscription().clone(), creation)
            .start(StartPosition::Earliest)
            .run(&mut StartFile::new(store))
            .await?;
        Ok(prepared)
    }

    /// Runs the readers until half of the orders are counted, and lets them die; or all, and ends
    /// them in order.
    async fn run(
        &mut self,
        run: usize,
        readers: usize,
        prepared: &Prepared,
    ) -> Result<(), ReplicasError> {
        let crashes = run + 1 < RUNS.len();
        let wanted = if crashes {
            self.orders / 2
        } else {
            self.orders
        };
        let (stop, stopped) = watch::channel(false);
        let (progress, mut news) = mpsc::channel(readers);
        let mut tasks = JoinSet::new();
        for number in 0..readers {
            let builder = prepared.reader(number, readers)?;
            let builder = builder.ok_or(ReplicasError::Idle { number })?;
            // In processes of their own the readers would get `prepared` and these states as bytes.
            let (source, driver) = builder
                .endpoint(self.server.endpoint())
                .outstanding(IN_HAND)
                .first_outstanding(IN_HAND)
                .max_extension(Duration::from_secs(10))
                .restore(self.states.clone())
                .build_with_driver()?;
            let store = FileStore::open(self.place(run, number)).await?;
            let newest = self.states.iter().map(|state| state.epoch).max();
            let reader = Reader::new(source, store, newest.unwrap_or_default());
            let (stopped, progress) = (stopped.clone(), progress.clone());
            tasks.spawn(async move {
                driver.await;
                Ok(())
            });
            tasks.spawn(reader.run(stopped, progress));
        }
        drop(progress);
        let before = u32::try_from(self.counted.len()).unwrap_or(u32::MAX);
        let mut counted = before;
        while counted < wanted {
            tokio::select! {
                biased;
                Some(ended) = tasks.join_next() => ended.map_err(ReplicasError::Task)??,
                more = tokio::time::timeout(PATIENCE, news.recv()) => match more {
                    Ok(Some(more)) => counted += more,
                    Ok(None) | Err(_) => {
                        return Err(ReplicasError::Stuck { counted, orders: self.orders });
                    }
                },
            }
        }
        if crashes {
            // Wherever they are: nothing is finished, released or saved.
            tasks.shutdown().await;
        } else {
            finish(tasks, &stop, news).await?;
        }
        self.collect(run, readers).await?;
        if crashes {
            self.before_crash = self.counted.len();
        }
        Ok(())
    }

    /// Reads what the readers have saved, once they are gone.
    async fn collect(&mut self, run: usize, readers: usize) -> Result<(), ReplicasError> {
        self.states.clear();
        for number in 0..readers {
            let store = FileStore::open(self.place(run, number)).await?;
            let Some(saved) = store.newest().await? else {
                continue;
            };
            let saved = saved.try_map(|bytes| serde_json::from_slice::<ReaderState>(&bytes));
            let saved = saved.map_err(ReplicasError::State)?;
            for order in &saved.state.counted {
                *self.counted.entry(*order).or_default() += 1;
            }
            self.states.push(saved.map(|state| state.source));
            store.close().await;
        }
        Ok(())
    }

    fn place(&self, run: usize, number: usize) -> PathBuf {
        self.directory.join(format!("run-{run}-reader-{number}"))
    }

    fn report(&self) -> Report {
        let twice = self.counted.values().filter(|count| **count > 1).count();
        let counted = self.counted.len();
        let orders = usize::try_from(self.orders).unwrap_or(usize::MAX);
        Report {
            orders,
            counted,
            before_crash: self.before_crash,
            lost: orders.saturating_sub(counted),
            counted_twice: twice,
            starts: self.starts,
            seeks: self.server.seeks(),
        }
    }
}

/// Lets readers end in order, each with a last checkpoint.
async fn finish(
    mut tasks: JoinSet<Result<(), ReplicasError>>,
    stop: &watch::Sender<bool>,
    news: mpsc::Receiver<u32>,
) -> Result<(), ReplicasError> {
    // Nobody listens any more when the readers are gone already.
    stop.send(true).unwrap_or_default();
    // A reader that has more to tell than there is room for would wait for it, and not stop.
    drop(news);
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(ReplicasError::Task)??;
    }
    Ok(())
}

/// The whole program: reads the command line, does what it says, and prints the figures.
///
/// Exit code 1 when orders were lost or counted twice, 2 when the run ended with an error.
#[must_use]
pub fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    match runtime.block_on(run(&options)) {
        Ok(report) => {
            report::print(&report);
            ExitCode::from(report.exit_status())
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    report::tell(error);
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn readers_that_have_more_to_tell_than_there_is_room_for_end_when_they_are_told_to() {
        let (stop, mut stopped) = watch::channel(false);
        let (progress, news) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // As a reader does: it looks whether it is to stop once its news are out.
            while progress.send(1).await.is_ok() {}
            stopped.changed().await.unwrap();
            Ok(())
        });
        let finished = tokio::time::timeout(PATIENCE, finish(tasks, &stop, news)).await;
        finished.unwrap().unwrap();
    }
}
