//! One run from the first server to the figures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gcp_wire::{Connection, ConnectionOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

use super::clock;
use super::error::OrdersError;
use super::names::RunNames;
use super::options::Options;
use super::partner::{Partner, PartnerDoor};
use super::pipeline::PipelineSpec;
use super::process::{Departure, Program};
use super::progress::{Progress, Shown};
use super::publisher::{self, PlacedOrder};
use super::region_counter::RegionCounter;
use super::report::Report;
use super::resources::Resources;
use super::routes::Routes;
use super::server::Server;
use super::servers::Servers;
use super::state_dir::StateDir;
use super::supervisor::Supervisor;
use super::workload;

/// How often the parent looks at what has arrived.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long nothing may arrive before what is missing counts as lost. A killed pipeline's leases
/// end within a minute at most; a partner's call that failed is repeated within seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server deletes all of a run within milliseconds; one that does not answer may keep it, under
/// names that no other run uses.
const CLEAN_UP: Duration = Duration::from_secs(10);

/// A run in progress.
pub(crate) struct Run {
    patience: Duration,
    servers: Servers,
    resources: Resources,
    partner: Partner,
    routes: Arc<Routes>,
    counter: RegionCounter,
    state: StateDir,
    placed: Vec<PlacedOrder>,
    messages: Vec<Bytes>,
    supervisor: Supervisor,
    kill_every: Option<Duration>,
    rate: Option<u32>,
    progress: Progress,
    started: Instant,
}

impl Run {
    /// Starts the servers, creates what the run needs on them, and starts the pipeline.
    pub(crate) async fn start(options: &Options, program: &Program) -> Result<Self, OrdersError> {
        let state = StateDir::open(options.state.as_deref()).await?;
        let names = RunNames::fresh()?;
        let servers = Servers::start(options, program, &names).await?;
        let connect = |server: &Server| -> Result<Connection, OrdersError> {
            let connection = ConnectionOptions::default();
            Ok(Connection::unary(
                server.endpoint()?,
                server.credentials(),
                connection,
            )?)
        };
        let (pubsub, tasks) = (connect(&servers.pubsub)?, connect(&servers.tasks)?);
        let resources = Resources {
            pubsub,
            tasks,
            names,
        };
        if let Err(error) = resources.create().await {
            clean_up(&servers, &resources).await;
            return Err(error);
        }

        let what = "the partner's server";
        let door = PartnerDoor::open()
            .await
            .map_err(|source| OrdersError::Start { what, source })?;
        let customers = workload::customers();
        let routes = Routes::spread(&customers, &door.origin(), options.unrouted_share);
        let spec = PipelineSpec {
            pubsub: match &options.pipeline_by {
                Some(address) => Server {
                    address: address.clone(),
                    ..servers.pubsub.clone()
                },
                None => servers.pubsub.clone(),
            },
            tasks: servers.tasks.clone(),
            subscription: resources.names.subscription.clone(),
            regions: resources.names.regions.clone(),
            queues: resources.names.queues.clone(),
            routes: routes.clone(),
            partner_hosts: vec![door.host()],
            state: state.path().to_owned(),
            checkpoint_interval: options.checkpoint_interval,
            crash_after: options.crash_after,
            batch: options.batch,
            exactly_once: options.exactly_once,
        };
        let routes = Arc::new(routes);
        let partner = door.serve(Arc::clone(&routes));
        let counter = RegionCounter::start(&resources.pubsub, &resources.names);

        let count = usize::try_from(options.orders).unwrap_or(usize::MAX);
        let (placed, messages) = publisher::place(options.seed, count, clock::wall())?;
        let routed = placed
            .iter()
            .filter(|order| routes.of(&order.customer).is_some())
            .count();
        let progress = Progress::start(placed.len() as u64, routed as u64);
        let supervisor = Supervisor::start(program, spec, options.lose_state).await?;
        Ok(Self {
            patience: PATIENCE + options.checkpoint_interval,
            servers,
            resources,
            partner,
            routes,
            counter,
            state,
            placed,
            messages,
            supervisor,
            kill_every: options.kill_every,
            rate: options.rate,
            progress,
            started: clock::monotonic(),
        })
    }

    /// Publishes, watches until everything has arrived or nothing comes any more, stops the
    /// pipeline, and counts. What was created on a running server is deleted again in any case.
    pub(crate) async fn finish(mut self) -> Result<Report, OrdersError> {
        let outcome = self.follow().await;
        self.progress.finish();
        if outcome.is_err() {
            self.supervisor.kill().await;
        }
        clean_up(&self.servers, &self.resources).await;
        outcome
    }

    async fn follow(&mut self) -> Result<Report, OrdersError> {
        let watched = self.watch().await;
        let seconds = self.started.elapsed().as_secs_f64();
        if matches!(watched, Ok(()) | Err(OrdersError::Interrupted)) {
            self.supervisor.stop().await?;
        }
        watched?;
        self.counter.drain().await?;
        self.count(seconds).await
    }

    /// Ends when every order has arrived, or nothing has for too long.
    async fn watch(&mut self) -> Result<(), OrdersError> {
        let messages = std::mem::take(&mut self.messages);
        let (orders, routed) = (self.placed.len() as u64, self.routed());
        let topic = self.resources.names.orders.clone();
        let publishing =
            publisher::publish(self.resources.pubsub.clone(), topic, messages, self.rate);
        let interrupted = interrupted()?;
        tokio::pin!(publishing, interrupted);
        let mut published = false;
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut axe = self.kill_every.map(tokio::time::interval);
        if let Some(axe) = &mut axe {
            axe.set_missed_tick_behavior(MissedTickBehavior::Delay);
            axe.reset();
        }
        let (mut last, mut last_change) = (0, self.started);
        loop {
            let strike = async {
                match &mut axe {
                    Some(axe) => axe.tick().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                outcome = &mut publishing, if !published => {
                    outcome?;
                    published = true;
                }
                departure = self.supervisor.departed() => {
                    let departure = departure?;
                    if let Departure::Died(status) = &departure {
                        let text = format!("The pipeline died ({status}); it is started again.");
                        self.progress.say(&text);
                    }
                    let arrived = self.arrived();
                    self.supervisor.restart(departure, arrived, &mut self.state).await?;
                }
                // Its departure is noticed as that of any other that dies.
                _ = strike => self.supervisor.kill().await,
                error = self.counter.failed() => return Err(error),
                () = &mut interrupted => return Err(OrdersError::Interrupted),
                _ = look.tick() => {
                    self.supervisor.sample_memory();
                    let now = clock::monotonic();
                    let (regions, partner) = (self.counter.tally(), self.partner.tally());
                    let shown = Shown { published: regions.orders, called: partner.orders };
                    self.progress.show(now, shown);
                    if published && regions.orders == orders && partner.orders == routed {
                        return Ok(());
                    }
                    if self.arrived() != last {
                        (last, last_change) = (self.arrived(), now);
                    } else if now.duration_since(last_change) > self.patience {
                        self.progress.say("Nothing arrives any more; what is missing is lost.");
                        return Ok(());
                    }
                }
            }
        }
    }

    /// How much has arrived anywhere, repeated arrivals included.
    fn arrived(&self) -> u64 {
        self.counter.tally().messages + self.partner.tally().calls
    }

    fn is_routed(&self, order: &PlacedOrder) -> bool {
        self.routes.of(&order.customer).is_some()
    }

    fn routed(&self) -> u64 {
        self.placed
            .iter()
            .filter(|order| self.is_routed(order))
            .count() as u64
    }

    async fn count(&self, seconds: f64) -> Result<Report, OrdersError> {
        let waiting = self.resources.waiting_tasks().await;
        let waiting = waiting.map_err(|source| OrdersError::CountTasks { source })?;
        let (regions, partner) = (self.counter.tally(), self.partner.tally());
        let uncalled = self.partner.read(|book| {
            waiting
                .iter()
                .filter(|task| !book.was_called_by(task))
                .count() as u64
        });
        let orders = self.placed.len() as u64;
        if regions.strays + partner.refused > 0 {
            self.progress.say(&format!(
                "{} messages were in no place of theirs, {} calls were refused by the partner.",
                regions.strays, partner.refused
            ));
        }
        Ok(Report {
            orders,
            unrouted: orders - self.routed(),
            published_to_regions: regions.messages,
            distinct_published: regions.orders,
            tasks_created: partner.tasks + uncalled,
            partner_calls: partner.calls,
            distinct_partner_orders: partner.orders,
            lost: self.lost(),
            duplicate_publishes: regions.duplicates,
            checkpoints: self.state.checkpoints().await?,
            restarts: self.supervisor.restarts(),
            seconds: rounded(seconds, 1000.0),
            orders_per_second: rounded(orders as f64 / seconds, 10.0),
            peak_rss_mb: self.supervisor.peak_mib().map(|peak| rounded(peak, 10.0)),
        })
    }

    fn lost(&self) -> u64 {
        let arrived = |order: &PlacedOrder| {
            let id = order.event_id.as_str();
            self.counter.read(|book| book.knows(id))
                && (!self.is_routed(order) || self.partner.read(|book| book.knows(id)))
        };
        self.placed.iter().filter(|order| !arrived(order)).count() as u64
    }
}

/// Deletes what was created on servers that go on after the run.
async fn clean_up(servers: &Servers, resources: &Resources) {
    if !servers.outlive_the_run() {
        return;
    }
    let deleted = tokio::time::timeout(CLEAN_UP, resources.delete()).await;
    if deleted.is_err() {
        tracing::warn!("A server is too slow; resources of the run may stay on it.");
    }
}

/// Resolves at SIGINT or SIGTERM, either of which ends the run in order from this call on.
fn interrupted() -> Result<impl Future<Output = ()>, OrdersError> {
    let what = "the watch for signals";
    let caught = |kind| signal(kind).map_err(|source| OrdersError::Start { what, source });
    let mut interrupt = caught(SignalKind::interrupt())?;
    let mut terminate = caught(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// `figure` to the nearest of `parts` parts of one: more digits than were measured mislead.
fn rounded(figure: f64, parts: f64) -> f64 {
    (figure * parts).round() / parts
}
